package kagzi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// ReplayOptions say what is replayed. Every zero field means the default in brackets.
type ReplayOptions struct {
	RunID  string       // of a run of the capsule (the one that was exported)
	Codec  Codec        // the workers' codec (none)
	Logger *slog.Logger // (slog.Default())
}

// Replay runs a workflow function against the recorded results of a run, without a server, and without running the code of any
// step. Where a result is not recorded, the code is suspended as in production. It returns nil when code and record agree, and
// a *Divergence for the first place where they part: the code does not come to a step that is recorded, or comes to another kind
// of step in its place; a recorded value cannot be read; the run ended otherwise than the code does. As in production, steps are
// known by their names: the order in which the code comes to recorded ones does not matter.
//
// There is no limit of time, so the code can be stepped through in a debugger. Use Go and Map rather than goroutines of your own
// there: of those it cannot be told whether they are about to call, and they are given up after a quarter of a second.
func Replay[In, Out any](c *Capsule, fn func(ctx Context, in In) (Out, error), opts ReplayOptions) error {
	if fn == nil {
		return errors.New("kagzi: Replay: no function")
	}
	if c.Redacted() {
		return errors.New("kagzi: the capsule was exported without payloads, and cannot be replayed")
	}
	r, err := c.load(opts.RunID)
	if err != nil {
		return fmt.Errorf("kagzi: capsule: %w", err)
	}
	if r.redacted() {
		return fmt.Errorf("kagzi: run %s was exported without payloads, and cannot be replayed", r.run.GetRunId())
	}
	w := NewWorker(WorkerOptions{Codec: opts.Codec, Logger: opts.Logger})
	return replayRecord(context.Background(), w, typed(w, r.run.GetWorkflowType(), fn), r)
}

// TestingT is the part of *testing.T that ReplayCapsule uses.
type TestingT interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// ReplayCapsule is Replay as a test, for a capsule in a file: it fails at the first divergence, with the step, what was expected
// there and what the code did. Of several options the last holds.
//
//	func TestOrder4711(t *testing.T) { kagzi.ReplayCapsule(t, "testdata/order-4711.kagzi", Order) }
func ReplayCapsule[In, Out any](t TestingT, file string, fn func(ctx Context, in In) (Out, error), opts ...ReplayOptions) {
	t.Helper()
	var o ReplayOptions
	if len(opts) > 0 {
		o = opts[len(opts)-1]
	}
	c, err := OpenCapsule(file)
	if err != nil {
		t.Fatalf("%v", err)
		return
	}
	err = Replay(c, fn, o)
	if closeErr := c.Close(); err == nil && closeErr != nil {
		err = closeErr
	}
	var d *Divergence
	switch {
	case errors.As(err, &d):
		if d.Stack != "" {
			t.Logf("panic of the code:\n%s", d.Stack)
		}
		t.Fatalf("run %s of type %s diverges\n  step:     %s\n  expected: %s\n  got:      %s", printable(d.RunID), printable(d.WorkflowType),
			printable(cmp.Or(d.Step, "(input or end)")), printable(d.Expected), printable(d.Got))
	case err != nil:
		t.Fatalf("%v", err)
	}
}
