package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// A ledger is a file in which workflow code records what it does while servers and workers are
// killed.

// entry is one line of it. The lines of all processes are in the order in which they were written.
type entry struct {
	Kind  string // "begin": a step's code runs; "seen": the previous step had returned this
	Run   string
	Step  int
	Value string
}

// ledger is one process's handle of the file.
type ledger struct{ file *os.File }

func openLedger(path string) (*ledger, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &ledger{f}, err
}

func (l *ledger) write(entries ...entry) error {
	var text []byte
	for _, e := range entries {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	_, err := l.file.Write(text) // one write, so that lines of two processes do not mix
	return err
}

func readLedger(t testing.TB, path string) []entry {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var entries []entry
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil { // a process can be killed within a line
			entries = append(entries, e)
		}
	}
	return entries
}

const flowSteps = 3

// flow has three steps with short sleeps between them. Each execution of a step returns a different
// result.
func (l *ledger) flow(tell func(entry)) func(ctx kagzi.Context, run string) (string, error) {
	return func(ctx kagzi.Context, run string) (string, error) {
		last := ""
		for i := range flowSteps {
			before := last
			value, err := kagzi.Step(ctx, fmt.Sprintf("s%d", i), func(context.Context) (string, error) {
				// This code runs, so the previous step is on the server's disk.
				entries := []entry{{Kind: "begin", Run: run, Step: i}}
				if i > 0 {
					entries = append(entries, entry{Kind: "seen", Run: run, Step: i - 1, Value: before})
				}
				if err := l.write(entries...); err != nil {
					return "", err
				}
				tell(entries[0])
				return fmt.Sprintf("%s/%d by %d at %d", run, i, os.Getpid(), time.Now().UnixNano()), nil
			})
			if err != nil {
				return "", err
			}
			last = value
			if i == 0 {
				kagzi.Sleep(ctx, "nap", 10*time.Millisecond)
			}
		}
		return last, nil
	}
}

// checkLedger compares the code's record with the database: no step ran again after its result was
// acknowledged, and each acknowledged result is the recorded one.
func (s *Server) checkLedger(t testing.TB, path string, runs map[string]string) {
	t.Helper()
	seen := map[string]string{} // "run/step": the acknowledged result
	for _, e := range readLedger(t, path) {
		key := fmt.Sprintf("%s/%d", e.Run, e.Step)
		acknowledged, ok := seen[key]
		switch {
		case e.Kind == "begin" && ok:
			t.Errorf("step %s ran again after its result was recorded", key)
		case e.Kind == "seen" && ok && acknowledged != e.Value:
			t.Errorf("step %s was %q, and later %q", key, acknowledged, e.Value)
		case e.Kind == "seen":
			seen[key] = e.Value
		}
	}
	ctx := within(t, time.Minute)
	for name, id := range runs {
		w := s.get(t, id)
		if w.Status != completed {
			t.Errorf("run %s is %s: %v", name, w.Status, w.Error)
			continue
		}
		steps, err := s.admin().ListSteps(ctx, &kagziv1.ListStepsRequest{RunId: id})
		if err != nil {
			t.Fatal(err)
		}
		recorded := map[string]string{}
		for _, step := range steps.Steps {
			if step.IsLatest && step.Kind == kagziv1.StepKind_STEP_KIND_FUNCTION {
				var value string
				if err := json.Unmarshal(step.Output.GetData(), &value); err != nil ||
					step.Status != kagziv1.StepStatus_STEP_STATUS_COMPLETED {
					t.Errorf("step %s of run %s is %s with %q", step.Name, name, step.Status, step.Output.GetData())
				}
				recorded[step.Name] = value
			}
		}
		for i := range flowSteps {
			key := fmt.Sprintf("%s/%d", name, i)
			if want, ok := seen[key]; ok && recorded[fmt.Sprintf("s%d", i)] != want {
				t.Errorf("step %s is recorded as %q, but %q was acknowledged", key,
					recorded[fmt.Sprintf("s%d", i)], want)
			}
		}
		var output string
		if err := json.Unmarshal(w.Output.GetData(), &output); err != nil ||
			output != recorded[fmt.Sprintf("s%d", flowSteps-1)] {
			t.Errorf("run %s returned %q, its last step %q", name, output, recorded[fmt.Sprintf("s%d", flowSteps-1)])
		}
	}
}
