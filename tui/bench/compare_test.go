package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// reported returns a report with one figure of each of some workloads.
func reported(value float64, ids ...string) *report {
	r := &report{Cores: 2, Repeat: 1, Server: serverReport{Backend: "sqlite"}}
	for _, id := range ids {
		r.Workloads = append(r.Workloads, workloadReport{Workload: id, Runs: 10, Figures: []spread{
			{Name: "throughput", Unit: "runs/s", Median: value, Min: value, Max: value},
			{Name: "start to result p50", Unit: "ms", Median: 2 * value}}})
	}
	return r
}

func written(t *testing.T, content any) string {
	t.Helper()
	data, is := content.([]byte)
	if !is {
		var err error
		if data, err = json.Marshal(content); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "before.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFiguresAreSetAgainstThoseOfAnEarlierReport(t *testing.T) {
	chosen, err := choose("W1,W2")
	if err != nil {
		t.Fatal(err)
	}
	before := reported(200, "W2", "W1", "W3")
	before.Workloads[1].Figures = before.Workloads[1].Figures[:1]
	old, err := earlier(written(t, before), chosen)
	if err != nil {
		t.Fatal(err)
	}
	r := reported(300, "W1", "W2")
	if differs := r.compare(old, "before.json"); len(differs) > 0 {
		t.Errorf("differs in %q, want in nothing", differs)
	}
	for _, w := range r.Workloads {
		if got := w.Figures[0].Against; got == nil || *got != (against{200, 1.5}) {
			t.Errorf("%s is set against %+v, want 200 and 1.5", w.Workload, got)
		}
	}
	if got := r.Workloads[0].Figures[1].Against; got != nil {
		t.Errorf("a figure that the file does not have is set against %+v", got)
	}
	var out bytes.Buffer
	if err := r.print(&out, options{}); err != nil {
		t.Fatal(err)
	}
	var row []string
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "W2") {
			row = strings.Fields(line)
		}
	}
	if want := []string{"W2", "throughput", "300", "runs/s", "200", "1.50"}; len(row) < 6 || !slices.Equal(row[:6], want) {
		t.Errorf("the row is %q, want it to begin with %q; the report:\n%s", row, want, &out)
	}
	out.Reset()
	if err := r.print(&out, options{asJSON: true}); err != nil || !strings.Contains(out.String(), `"ratio": 1.5`) {
		t.Errorf("the document has no ratio (%v):\n%s", err, &out)
	}
}

func TestAComparisonNamesWhatElseDiffers(t *testing.T) {
	old, r := reported(1, "W1"), reported(1, "W1")
	old.Server.Backend, old.Worker, old.Workloads[0].Runs = "postgres", "python worker.py", 7
	got := strings.Join(r.compare(old, "f"), "; ")
	for _, want := range []string{"database: sqlite here, postgres in f", "worker: none here, python worker.py in f",
		"W1: 10 runs, 0 in flight here, 7 runs, 0 in flight in f"} {
		if !strings.Contains(got, want) {
			t.Errorf("differs in %q, want also %q", got, want)
		}
	}
}

func TestFilesThatCannotBeComparedAreRefused(t *testing.T) {
	chosen, err := choose("W1,W2,W8")
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ file, says string }{
		"no file":          {filepath.Join(t.TempDir(), "none.json"), "name a file written by kagzi bench --json"},
		"no JSON":          {written(t, []byte("W1 20 runs/s")), "is not a report of kagzi bench --json"},
		"another document": {written(t, map[string]any{"runs": 3}), "has no workloads"},
		"other workloads":  {written(t, reported(1, "W1", "W3")), "has W1,W3 and not W2,W8; measure only what it has with --workload W1,W3"},
	} {
		_, err := earlier(c.file, chosen)
		var exit *exitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitUsage || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(err.Error(), c.file) {
			t.Errorf("%s: %v, want a usage error with the file that says %q", what, err, c.says)
		}
	}
}

func TestAWorkerInAnotherLanguageFitsSomeWorkloads(t *testing.T) {
	for list, fits := range map[string]bool{"W1,W2,W3,W4,W5,W15,W17": true, "W1,W8": false, "W13": false} {
		chosen, err := choose(list)
		if err != nil {
			t.Fatal(err)
		}
		err = options{worker: "worker"}.suits(chosen)
		if fits != (err == nil) || err != nil && !strings.Contains(err.Error(), "choose from --workload W1,W2,W3,W4,W5,W15,W17") {
			t.Errorf("%s: %v, want it to fit: %t", list, err, fits)
		}
		if err := (options{}).suits(chosen); err != nil {
			t.Errorf("%s with the bench's own worker: %v", list, err)
		}
	}
}

func TestTheTypesOfAWorkloadAreServed(t *testing.T) {
	text, err := os.ReadFile("WORKERS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range workloads {
		for _, name := range w.types {
			if !strings.Contains(string(text), "| `"+name+"` | ") {
				t.Errorf("WORKERS.md does not say what %s does, which %s runs", name, w.id)
			}
		}
	}
}
