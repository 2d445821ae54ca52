package kagzi

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/capsule"
	"google.golang.org/protobuf/encoding/protojson"
)

const childRun = "0199a000-0000-7000-8000-000000000002"

// entry is an entry of a handwritten capsule.
type entry struct{ name, text string }

func zipped(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		w, err := z.Create(e.name)
		if err == nil {
			_, err = w.Write([]byte(e.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// manifestOf returns the manifest of an export of records, the root first.
func manifestOf(records ...*runRecord) capsule.Manifest {
	m := capsule.Manifest{Format: capsule.Format, Version: 1, KagziVersion: "1.0.0", Namespace: "default",
		RootRunID: records[0].run.GetRunId()}
	for _, r := range records {
		m.Runs = append(m.Runs, capsule.ManifestRun{
			RunID: r.run.GetRunId(), WorkflowType: r.run.GetWorkflowType(), Status: r.run.GetStatus().String(),
			ParentRunID: r.run.GetParentRunId(), Directory: "runs/" + r.run.GetRunId()})
	}
	return m
}

// capsuleOf returns an export in the server's form.
func capsuleOf(t *testing.T, change func(m *capsule.Manifest), records ...*runRecord) []entry {
	t.Helper()
	m := manifestOf(records...)
	if change != nil {
		change(&m)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	entries := []entry{{capsule.ManifestName, string(text)}}
	write := protojson.MarshalOptions{UseProtoNames: true, Indent: "  "}
	for _, r := range records {
		steps := make([]string, len(r.steps))
		for i, s := range r.steps {
			steps[i] = write.Format(s)
		}
		at := "runs/" + r.run.GetRunId()
		entries = append(entries, entry{at + "/run.json", write.Format(r.run)},
			entry{at + "/steps.json", "[" + strings.Join(steps, ",") + "]"},
			entry{at + "/signals.json", "[]"}, entry{at + "/audit.json", "[]"})
	}
	return entries
}

func capsuleFile(t *testing.T, entries []entry) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "order.kagzi")
	if err := os.WriteFile(file, zipped(t, entries...), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func child(r *runRecord) *runRecord {
	parent := recordedRun
	r.run.RunId, r.run.ParentRunId, r.run.WorkflowType = childRun, &parent, "parcel"
	for _, s := range r.steps {
		s.RunId = childRun
	}
	return r
}

func TestCapsule(t *testing.T) {
	parent := func() *runRecord { return recorded(completed, "1", done("a", "2")).with("3") }
	parcel := func() *runRecord { return child(recorded(sleeping, `"x"`, done("pack", `"y"`), sleepingIn("s"))) }

	t.Run("lists its runs with the latest attempts of their steps", func(t *testing.T) {
		p := parent()
		first := broken("a", "busy", 0)
		first.Sequence, first.RunId, first.AttemptNumber = 1, recordedRun, 1
		p.steps[0].AttemptNumber, p.steps[0].IsLatest = 2, true
		p.steps = append([]*kagziv1.Step{first}, p.steps...)
		c, err := OpenCapsule(capsuleFile(t, capsuleOf(t, nil, p, parcel())))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		equal(t, c.Runs(), []CapsuleRun{{recordedRun, "order", StatusCompleted, ""},
			{childRun, "parcel", StatusSleeping, recordedRun}})
		r, err := c.load("")
		if err != nil {
			t.Fatal(err)
		}
		equal(t, len(r.steps), 1)
		equal(t, string(r.steps[0].GetOutput().GetData()), "2")
		equal(t, r.run.GetStatus(), completed)
		r, err = c.load(childRun)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, []string{r.steps[0].GetName(), r.steps[1].GetName()}, []string{"pack", "s"})
		_, err = c.load("0199a000-0000-7000-8000-00000000000f")
		equal(t, fmt.Sprint(err), `no run "0199a000-0000-7000-8000-00000000000f" in the capsule`)
	})

	t.Run("what a newer server adds does not matter", func(t *testing.T) {
		entries := capsuleOf(t, nil, parent())
		entries[0].text = strings.Replace(entries[0].text, "{", `{"mood":"good",`, 1)
		entries[1].text = strings.Replace(entries[1].text, "{", `{"mood":"good",`, 1)
		data := zipped(t, append(entries, entry{"notes/", ""}, entry{"notes/a.txt", "x"})...)
		c, err := readCapsule(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.load(""); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("the marked attempt of a step counts, else the last", func(t *testing.T) {
		attempt := func(n int32, latest bool) *kagziv1.Step {
			return &kagziv1.Step{Name: "a", AttemptNumber: n, IsLatest: latest}
		}
		for _, attempts := range [][]*kagziv1.Step{
			{attempt(1, false), attempt(2, false)}, {attempt(2, false), attempt(1, false)},
			{attempt(3, false), attempt(2, true), attempt(1, false)},
		} {
			r := newRecord(new(kagziv1.Workflow), attempts)
			equal(t, []int{len(r.steps), int(r.steps[0].GetAttemptNumber())}, []int{1, 2})
		}
	})

	for _, bad := range []struct {
		name    string
		entries func() []entry
		want    string
	}{
		{"no manifest", func() []entry { return []entry{{"x.json", "{}"}} }, "not a capsule: manifest.json is missing"},
		{"no JSON", func() []entry {
			return []entry{{capsule.ManifestName, "{"}}
		}, "not a capsule: manifest.json: unexpected end of JSON input"},
		{"another format", func() []entry {
			return capsuleOf(t, func(m *capsule.Manifest) { m.Format = "zip" }, parent())
		},
			`not a capsule: the manifest's format is "zip", want "kagzi-capsule"`},
		{"a newer version", func() []entry {
			return capsuleOf(t, func(m *capsule.Manifest) { m.Version, m.KagziVersion = 2, "9.0\x1b" }, parent())
		},
			`version 2 was written by a newer Kagzi ("9.0\x1b"); this one reads version 1`},
		{"no version", func() []entry {
			return capsuleOf(t, func(m *capsule.Manifest) { m.Version = 0 }, parent())
		}, "the manifest's version is 0, want 1"},
		{"no runs", func() []entry {
			return capsuleOf(t, func(m *capsule.Manifest) { m.Runs = nil }, parent())
		}, "0 runs, want 1 to 10001"},
		{"too many runs", func() []entry {
			return capsuleOf(t, func(m *capsule.Manifest) {
				m.Runs = make([]capsule.ManifestRun, capsule.MaxRuns+1)
			}, parent())
		}, "10002 runs, want 1 to 10001"},
		{"another root", func() []entry {
			return capsuleOf(t, func(m *capsule.Manifest) { m.RootRunID = childRun }, parent())
		},
			`the first run is "` + recordedRun + `", want root_run_id "` + childRun + `"`},
		{"a run twice", func() []entry {
			return capsuleOf(t, func(m *capsule.Manifest) { m.Runs[1] = m.Runs[0] }, parent(), parcel())
		},
			"run " + recordedRun + " is listed twice"},
		{"a child before its parent", func() []entry {
			return capsuleOf(t, func(m *capsule.Manifest) { m.Runs[1].ParentRunID = childRun }, parent(), parcel())
		}, "run " + childRun + ` is listed before its parent "` + childRun + `"`},
		{"an id that is a path", func() []entry {
			return capsuleOf(t, func(m *capsule.Manifest) { m.RootRunID, m.Runs[0].RunID = "../x", "../x" }, parent())
		}, `run 0 has the id "../x", want a UUID`},
		{"a directory elsewhere", func() []entry {
			return capsuleOf(t, func(m *capsule.Manifest) { m.Runs[0].Directory = "runs/../.." }, parent())
		},
			"run " + recordedRun + ` has the directory "runs/../..", want runs/` + recordedRun},
		{"an entry above", func() []entry { return append(capsuleOf(t, nil, parent()), entry{"../../evil", "x"}) },
			`an entry has the name "../../evil", want a plain relative path`},
		{"an entry from the root", func() []entry {
			return append(capsuleOf(t, nil, parent()), entry{"/etc/passwd", "x"})
		},
			`an entry has the name "/etc/passwd", want a plain relative path`},
		{"an entry on a drive", func() []entry { return append(capsuleOf(t, nil, parent()), entry{`c:\x`, "x"}) },
			`an entry has the name "c:\\x", want a plain relative path`},
		{"an entry twice", func() []entry {
			return append(capsuleOf(t, nil, parent()), entry{capsule.ManifestName, "{}"})
		},
			`two entries are named "manifest.json"`},
		{"too large a manifest", func() []entry {
			return []entry{{capsule.ManifestName, strings.Repeat(" ", capsule.MaxManifest+1)}}
		}, "not a capsule: manifest.json is larger than the limit of 8388608 bytes"},
		{"no run.json", func() []entry {
			return capsuleOf(t, nil, parent())[:1]
		}, "runs/" + recordedRun + "/run.json is missing"},
		{"the run.json of another", func() []entry {
			e := capsuleOf(t, nil, parent())
			e[1].text = `{"run_id":"x"}`
			return e
		}, "runs/" + recordedRun + `/run.json is about run "x"`},
		{"steps that are no array", func() []entry {
			e := capsuleOf(t, nil, parent())
			e[2].text = `{}`
			return e
		}, "runs/" + recordedRun + "/steps.json is not a JSON array"},
		{"steps that break off", func() []entry {
			e := capsuleOf(t, nil, parent())
			e[2].text = `[{"name":"a"}`
			return e
		}, "runs/" + recordedRun + "/steps.json is truncated"},
	} {
		t.Run("is refused with "+bad.name, func(t *testing.T) {
			data := zipped(t, bad.entries()...)
			c, err := readCapsule(bytes.NewReader(data), int64(len(data)))
			if err == nil {
				_, err = c.load("")
			}
			equal(t, strings.ReplaceAll(fmt.Sprint(err), "\u00a0", " "), bad.want)
		})
	}

	t.Run("a bomb is refused by what its headers say", func(t *testing.T) {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for i := range 4 {
			_, err := z.CreateRaw(&zip.FileHeader{
				Name: fmt.Sprint("bomb-", i), Method: zip.Deflate, UncompressedSize64: capsule.MaxBytes / 3})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := readCapsule(bytes.NewReader(b.Bytes()), int64(b.Len()))
		equal(t, fmt.Sprint(err), "more than the limit of 1073741824 bytes unpacked")
	})

	t.Run("a file that is missing or no zip is named", func(t *testing.T) {
		if _, err := OpenCapsule(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) ||
			!strings.Contains(err.Error(), "none") {
			t.Fatalf("err = %v", err)
		}
		file := filepath.Join(t.TempDir(), "text")
		if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenCapsule(file)
		equal(t, err.Error(), fmt.Sprintf("kagzi: capsule %q: not a capsule: zip: not a valid zip file", file))
	})
}

// testLog stands in for a *testing.T whose failure is the subject.
type testLog struct{ logs, fatals []string }

func (l *testLog) Helper()                      {}
func (l *testLog) Logf(f string, args ...any)   { l.logs = append(l.logs, fmt.Sprintf(f, args...)) }
func (l *testLog) Fatalf(f string, args ...any) { l.fatals = append(l.fatals, fmt.Sprintf(f, args...)) }

func TestReplayCapsule(t *testing.T) {
	order := func(ctx Context, in int) (int, error) {
		a, err := Step(ctx, "a", never(t))
		return in + a, err
	}
	quiet := ReplayOptions{Logger: slog.New(slog.DiscardHandler)}
	t.Run("passes where code and capsule agree", func(t *testing.T) {
		file := capsuleFile(t, capsuleOf(t, nil, recorded(completed, "1", done("a", "2")).with("3")))
		ReplayCapsule(t, file, order)
	})
	t.Run("fails at the divergence with step, expected and got, escaped", func(t *testing.T) {
		file := capsuleFile(t, capsuleOf(t, nil, recorded(completed, "1", done("a", "2")).with("\"\x1b[2J\"")))
		var l testLog
		ReplayCapsule(&l, file, order, quiet)
		equal(t, l.fatals, []string{"run " + recordedRun + ` of type order diverges
  step:     (input or end)
  expected: the run to have completed with "\x1b[2J"
  got:      the run completed with 3`})
	})
	t.Run("logs the stack of a panic", func(t *testing.T) {
		file := capsuleFile(t, capsuleOf(t, nil, recorded(completed, "1").with("3")))
		var l testLog
		ReplayCapsule(&l, file, func(Context, int) (int, error) { panic("ouch") }, quiet)
		if len(l.fatals) != 1 || len(l.logs) != 1 || !strings.Contains(l.logs[0], "capsule_test.go") {
			t.Fatalf("%q %q", l.fatals, l.logs)
		}
	})
	t.Run("replays a child by its id", func(t *testing.T) {
		file := capsuleFile(t, capsuleOf(t, nil, recorded(completed, "1"),
			child(recorded(completed, `"x"`, done("pack", `"y"`)).with(`"xy"`))))
		ReplayCapsule(t, file, func(ctx Context, in string) (string, error) {
			y, err := Step(ctx, "pack", constant("z"))
			return in + y, err
		}, ReplayOptions{RunID: childRun})
	})
	t.Run("refuses a capsule without payloads", func(t *testing.T) {
		for _, change := range []func(m *capsule.Manifest){func(m *capsule.Manifest) { m.Redacted = true }, nil} {
			r := recorded(completed, "1", done("a", ""))
			r.steps[0].Output.Metadata = map[string]string{"kagzi-redacted-sha256": "00", "kagzi-redacted-bytes": "1"}
			var l testLog
			ReplayCapsule(&l, capsuleFile(t, capsuleOf(t, change, r)), order, quiet)
			if len(l.fatals) != 1 || !strings.Contains(l.fatals[0], "exported without payloads") {
				t.Fatalf("%q", l.fatals)
			}
		}
	})
}
