package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// voyage is a workflow with one of everything: a step that fails at first, a timer, a signal, two
// children, and a wait that decides how far it goes.
func voyage(ctx kagzi.Context, ship string) (string, error) {
	crew, err := kagzi.Step(ctx, "hire", func(step context.Context) (string, error) {
		if kagzi.Attempt(step) == 1 {
			return "", errors.New("nobody came")
		}
		return "crew of " + ship, nil
	}, kagzi.Retry{Initial: time.Millisecond})
	if err != nil {
		return "", err
	}
	kagzi.Sleep(ctx, "tide", 5*time.Millisecond)
	wind, err := kagzi.WaitSignal[string](ctx, "wind", 0)
	if err != nil {
		return "", err
	}
	ports, err := kagzi.Map(ctx, []string{"Aden", "Goa"}, func(ctx kagzi.Context, port string) (string, error) {
		return kagzi.RunChild[string](ctx, "call-at-"+port, "call", port, kagzi.ChildOptions{})
	})
	if err != nil {
		return "", err
	}
	home, err := kagzi.WaitSignal[string](ctx, "home", 0)
	if err != nil {
		return "", err
	}
	kagzi.Note(ctx, "home again")
	return kagzi.Step(ctx, "log", func(context.Context) (string, error) {
		return strings.Join(append([]string{crew, wind, home}, ports...), ", "), nil
	})
}

func call(ctx kagzi.Context, port string) (string, error) {
	return kagzi.Step(ctx, "anchor", func(context.Context) (string, error) { return "at " + port, nil })
}

const homecoming = "crew of Argo, west, ashore, at Aden, at Goa"

// export writes a run into a file.
func export(t testing.TB, run *kagzi.Run, o kagzi.ExportOptions) (file string, capsule []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := run.Export(within(t, 20*time.Second), &b, o); err != nil {
		t.Fatalf("export: %v", err)
	}
	file = filepath.Join(t.TempDir(), "run.kagzi")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, b.Bytes()
}

// unpacked returns all files of a capsule, concatenated.
func unpacked(t testing.TB, capsule []byte) string {
	t.Helper()
	var all strings.Builder
	for _, f := range fine(zip.NewReader(bytes.NewReader(capsule), int64(len(capsule))))(t).File {
		r := fine(f.Open())(t)
		fine(io.Copy(&all, r))(t)
		r.Close()
	}
	return all.String()
}

// likeness returns what an import must keep of a run's steps: everything but the ids.
func (s *Server) likeness(t testing.TB, run string) (lines []string) {
	t.Helper()
	for _, step := range s.steps(t, run) {
		lines = append(lines, fmt.Sprintf("%d %s %s %s attempt %d latest %t: %q %q signal %q", step.Sequence, step.Name,
			step.Kind, step.Status,
			step.AttemptNumber, step.IsLatest, step.Output.GetData(), step.Error.GetMessage(), step.SignalName))
	}
	return lines
}

func TestARunMovesToAnotherDatabaseAsACapsule(t *testing.T) {
	eachBackend(t, func(t *testing.T, url string) {
		other := "postgres"
		if _, embedded := cutSQLite(url); !embedded {
			other = "sqlite"
		}
		from, to := New(t, openStore(t, url), patient), New(t, openStore(t, freshURL(t, other)), patient)
		_, stop := from.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "voyage", voyage)
			kagzi.Handle(w, "call", call)
		})
		ctx, c, far := within(t, time.Minute), from.client(t), to.client(t)
		run := fine(kagzi.Start(ctx, c, "voyage", "Argo",
			kagzi.StartOptions{ExternalID: "argo", Tags: map[string]string{"sea": "red"}}))(t)
		if err := errors.Join(kagzi.Signal(ctx, run, "wind", "west", kagzi.SignalOptions{ID: "w1"}),
			kagzi.Signal(ctx, run, "spare", "x", kagzi.SignalOptions{})); err != nil {
			t.Fatal(err)
		}
		from.until(t, run.ID(), "waiting for its homecoming",
			func(w *kagziv1.Workflow, steps map[string]*kagziv1.Step) bool {
				return w.Status == sleeping && steps["home"] != nil
			})
		stop()
		file, capsule := export(t, run, kagzi.ExportOptions{})

		// The capsule replays as the run went, and a replay finds a divergence.
		kagzi.ReplayCapsule(t, file, voyage, kagzi.ReplayOptions{Logger: quiet})
		opened := fine(kagzi.OpenCapsule(file))(t)
		if n := len(opened.Runs()); n != 3 || opened.Runs()[0].RunID != run.ID() {
			t.Errorf("the capsule holds %v", opened.Runs())
		}
		err := kagzi.Replay(opened, func(ctx kagzi.Context, ship string) (string, error) {
			return kagzi.Step(ctx, "hoist", func(context.Context) (string, error) {
				t.Error("a step ran in a replay")
				return "", nil
			})
		}, kagzi.ReplayOptions{Logger: quiet})
		var d *kagzi.Divergence
		if !errors.As(err, &d) || d.Step == "" || d.Expected == "" || d.Got == "" {
			t.Errorf("other code diverges with %v", err)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}

		imported := fine(far.Import(ctx, bytes.NewReader(capsule), kagzi.ImportOptions{RequestID: "once"}))(t)
		if imported.ID() == run.ID() {
			t.Error("the imported run has its old id")
		}
		again := fine(far.Import(ctx, bytes.NewReader(capsule), kagzi.ImportOptions{RequestID: "once"}))(t)
		if again.ID() != imported.ID() || !again.AlreadyExisted() ||
			len(to.find(t, &kagziv1.ListWorkflowsRequest{})) != 3 {
			t.Errorf("the same import again made %s", again.ID())
		}
		w, before := to.get(t, imported.ID()), from.get(t, run.ID())
		if !w.Paused || w.Status != pending || w.ExternalId != "argo" || w.Tags["sea"] != "red" ||
			string(w.Input.Data) != `"Argo"` || w.StepCount != before.StepCount || w.Attempts != before.Attempts {
			t.Errorf("imported it is %v, was %v", w, before)
		}
		if got, want := to.likeness(t, imported.ID()), from.likeness(t, run.ID()); !slices.Equal(got, want) {
			t.Errorf("its steps are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		signals := fine(to.workflows().ListSignals(ctx, &kagziv1.ListSignalsRequest{RunId: imported.ID()}))(t).Signals
		if len(signals) != 2 || signals[0].SignalId != "w1" || signals[0].GetStepName() != "wind" ||
			signals[1].Name != "spare" || signals[1].StepName != nil {
			t.Errorf("its signals are %v", signals)
		}
		children := to.find(t, &kagziv1.ListWorkflowsRequest{ParentRunId: proto.String(imported.ID())})
		if len(children) != 2 || children[0].Status != completed || len(to.steps(t, children[0].RunId)) != 1 {
			t.Errorf("its children are %v", children)
		}
		// The imported run continues where the original was: recorded steps do not run again.
		var mu sync.Mutex
		ran := map[string]int{}
		to.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "voyage", func(ctx kagzi.Context, ship string) (string, error) {
				mu.Lock()
				ran[kagzi.Info(ctx).RunID]++
				mu.Unlock()
				return voyage(ctx, ship)
			})
			kagzi.Handle(w, "call", func(ctx kagzi.Context, port string) (string, error) {
				t.Error("a child ran again")
				return "", nil
			})
		})
		if err := kagzi.Signal(ctx, imported, "home", "ashore", kagzi.SignalOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := to.get(t, imported.ID()); !got.Paused {
			t.Errorf("before it is resumed it is %v", got)
		}
		if err := imported.Resume(ctx, "moved"); err != nil {
			t.Fatal(err)
		}
		if got := fine(kagzi.Result[string](ctx, imported))(t); got != homecoming {
			t.Errorf("it returns %q, want %q", got, homecoming)
		}
		if got := from.get(t, run.ID()); got.Status != sleeping {
			t.Errorf("the run that was exported is %s", got.Status)
		}
	})
}

func TestAnEndedRunIsExportedReplayedAndImportedAsItEnded(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "voyage", voyage)
			kagzi.Handle(w, "call", call)
		})
		ctx, c := within(t, time.Minute), s.client(t)
		run := fine(kagzi.Start(ctx, c, "voyage", "Argo", kagzi.StartOptions{}))(t)
		for name, v := range map[string]string{"wind": "west", "home": "ashore"} {
			if err := kagzi.Signal(ctx, run, name, v, kagzi.SignalOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if got := fine(kagzi.Result[string](ctx, run))(t); got != homecoming {
			t.Errorf("it returns %q, want %q", got, homecoming)
		}
		file, capsule := export(t, run, kagzi.ExportOptions{})
		kagzi.ReplayCapsule(t, file, voyage, kagzi.ReplayOptions{Logger: quiet})
		imported := fine(c.Import(ctx, bytes.NewReader(capsule), kagzi.ImportOptions{}))(t)
		if got := fine(kagzi.Result[string](ctx, imported))(t); got != homecoming {
			t.Errorf("imported it returns %q", got)
		}
		if got, want := s.likeness(t, imported.ID()), s.likeness(t, run.ID()); !slices.Equal(got, want) {
			t.Errorf("its steps are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}

		file, redacted := export(t, run, kagzi.ExportOptions{RedactPayloads: true})
		for _, secret := range []string{`"Argo"`, `"ashore"`, `"west"`, `"at Goa"`} {
			wire := base64.StdEncoding.EncodeToString([]byte(secret))
			if got := unpacked(t, redacted); strings.Contains(got, wire) || strings.Contains(got, secret) ||
				!strings.Contains(unpacked(t, capsule), wire) {
				t.Errorf("of two capsules only the redacted one is not to hold %s", secret)
			}
		}
		opened := fine(kagzi.OpenCapsule(file))(t)
		defer opened.Close()
		if err := kagzi.Replay(opened, voyage, kagzi.ReplayOptions{Logger: quiet}); !opened.Redacted() || err == nil {
			t.Errorf("the replay of a redacted capsule: %v, want it refused", err)
		}
		_, err := c.Import(ctx, bytes.NewReader(redacted), kagzi.ImportOptions{})
		wantRefused(t, "the import of a redacted capsule", err, codes.InvalidArgument, codeInvalid,
			"without payloads")
		for name, bad := range map[string][]byte{
			"nothing": nil, "no zip": []byte("hello"), "half a capsule": capsule[:len(capsule)/2],
		} {
			_, err := c.Import(ctx, bytes.NewReader(bad), kagzi.ImportOptions{})
			wantRefused(t, "the import of "+name, err, codes.InvalidArgument, codeInvalid, "")
		}
		if err := c.Run("0198a3c4-1b2d-7e6f-8a9b-0c1d2e3f4a5b").Export(
			ctx, &bytes.Buffer{}, kagzi.ExportOptions{}); err == nil {
			t.Error("a run that is not there was exported")
		}
		if n := len(s.find(t, &kagziv1.ListWorkflowsRequest{WorkflowType: ptr("voyage")})); n != 2 {
			t.Errorf("there are %d voyages, want the one that was made and the one that was imported", n)
		}
	})
}

func TestAnImportedRunRetriesItsChild(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		var fixed atomic.Bool
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "parent", func(ctx kagzi.Context, _ string) (string, error) {
				return kagzi.RunChild[string](ctx, "child", "child", "", kagzi.ChildOptions{})
			})
			kagzi.Handle(w, "child", func(kagzi.Context, string) (string, error) {
				if !fixed.Load() {
					return "", kagzi.NonRetryable(errors.New("not yet"))
				}
				return "done", nil
			})
		})
		ctx, c := within(t, time.Minute), s.client(t)
		run := fine(kagzi.Start(ctx, c, "parent", "",
			kagzi.StartOptions{RunRetry: &kagzi.Retry{Attempts: 2, Initial: time.Hour}}))(t)
		s.until(t, run.ID(), "about to be tried again", func(w *kagziv1.Workflow, steps map[string]*kagziv1.Step) bool {
			return w.Attempts == 2 && steps["child"].GetRetryAt() != nil
		})
		_, capsule := export(t, run, kagzi.ExportOptions{})
		imported := fine(c.Import(ctx, bytes.NewReader(capsule), kagzi.ImportOptions{}))(t)
		fixed.Store(true)
		s.Jump(2 * time.Hour)
		if err := imported.Resume(ctx, "moved"); err != nil {
			t.Fatal(err)
		}
		if got := fine(kagzi.Result[string](ctx, imported))(t); got != "done" {
			t.Errorf("it returns %q", got)
		}
	})
}

// A capsule holds the key of a run, and not its place.
func TestAnImportedRunTakesItsTurnAtThePlacesOfItsKey(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "held", func(ctx kagzi.Context, _ string) (string, error) {
				return kagzi.WaitSignal[string](ctx, "go", 0)
			})
		})
		ctx, c := within(t, time.Minute), s.client(t)
		waits := func(run string) {
			s.until(t, run, "waiting for its signal", func(w *kagziv1.Workflow, _ map[string]*kagziv1.Step) bool {
				return w.Status == sleeping && w.HasPlace
			})
		}
		run := fine(kagzi.Start(ctx, c, "held", "", kagzi.StartOptions{
			ConcurrencyKey: "k", ConcurrencyLimit: 1, ConcurrencyScope: kagzi.ScopeOpen}))(t)
		waits(run.ID())
		_, capsule := export(t, run, kagzi.ExportOptions{})
		imported := fine(c.Import(ctx, bytes.NewReader(capsule), kagzi.ImportOptions{}))(t)
		w := s.get(t, imported.ID())
		if w.HasPlace || w.ConcurrencyKey != "k" || w.ConcurrencyLimit != 1 ||
			w.ConcurrencyScope != kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN {
			t.Errorf("imported it is %v, want its key without a place", w)
		}
		if err := imported.Resume(ctx, "moved"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the imported run waits for the place of the exported one", func() bool {
			return strings.Contains(s.explained(t, imported.ID()).Summary, "1 of 1 taken by "+run.ID())
		})
		if err := kagzi.Signal(ctx, run, "go", "on", kagzi.SignalOptions{}); err != nil {
			t.Fatal(err)
		}
		wantOutput(t, s.await(t, run.ID()), `"on"`)
		waits(imported.ID())
		_, again := export(t, run, kagzi.ExportOptions{})
		ended := fine(c.Import(ctx, bytes.NewReader(again), kagzi.ImportOptions{}))(t)
		if got := s.get(t, ended.ID()); got.Status != completed || got.HasPlace {
			t.Errorf("the run that had ended is imported as %v", got)
		}
		if err := kagzi.Signal(ctx, imported, "go", "too", kagzi.SignalOptions{}); err != nil {
			t.Fatal(err)
		}
		wantOutput(t, s.await(t, imported.ID()), `"too"`)
	})
}
