package kagzi

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

// stepsIn returns the calls about steps.
func stepsIn(log []string) []string {
	return slices.DeleteFunc(slices.Clone(log), func(call string) bool { return !strings.HasSuffix(call, " s") })
}

func TestStartInAStepNamesTheStep(t *testing.T) {
	clientOf := func(t *testing.T, f *fake, o ClientOptions) *Client {
		o.DialOptions, o.Logger = f.dial(), slog.New(slog.DiscardHandler)
		c, err := NewClient(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	// starts runs code in a step, and returns the run that it started.
	starts := func(t *testing.T, f *fake, code func(ctx context.Context) (*Run, error)) *fakeRun {
		w := testWorker(f)
		Handle(w, "w", func(ctx Context, _ struct{}) (string, error) {
			return Step(ctx, "s", func(ctx context.Context) (string, error) {
				run, err := code(ctx)
				if err != nil {
					return "", err
				}
				return run.ID(), nil
			}, Retry{Attempts: 1})
		})
		running(t, w)
		f.start("r", "w", "")
		id := strings.Trim(string(f.await(t, "r").Output.GetData()), `"`)
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.runs[id]
	}
	t.Run("the step is announced once, however many runs it starts", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			c := testClient(t, f)
			made := starts(t, f, func(ctx context.Context) (*Run, error) {
				if _, err := StartMany(ctx, c, "other", []int{1, 2}, StartOptions{Queue: "nobody"}); err != nil {
					return nil, err
				}
				time.Sleep(2 * announceAfter)
				return Start(ctx, c, "other", 3, StartOptions{Queue: "nobody"})
			})
			equal(t, []string{made.GetParentRunId(), made.GetParentStepId()}, []string{"r", "s"})
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, r := range f.order[1:] {
				equal(t, r.GetParentRunId(), "r")
			}
			equal(t, len(f.order), 4)
			equal(t, stepsIn(f.log), []string{"begin s", "complete s"})
		})
	})
	t.Run("a step that starts nothing is one write", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) { return Step(ctx, "s", constant(1)) })
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			f.mu.Lock()
			defer f.mu.Unlock()
			equal(t, stepsIn(f.log), []string{"complete s"})
		})
	})
	t.Run("a client of another server or namespace names no parent", func(t *testing.T) {
		for _, o := range []ClientOptions{{Address: "passthrough:///elsewhere"},
			{Address: "passthrough:///fake", Namespace: "other"}} {
			withFake(t, func(t *testing.T, f *fake) {
				c := clientOf(t, f, o)
				made := starts(t, f, func(ctx context.Context) (*Run, error) {
					return Start(ctx, c, "other", 1, StartOptions{Queue: "nobody"})
				})
				equal(t, made.GetParentRunId()+made.GetParentStepId(), "")
			})
		}
	})
	t.Run("outside of steps there is no parent", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			run, err := Start(t.Context(), testClient(t, f), "other", 1, StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			equal(t, f.runs[run.ID()].GetParentRunId(), "")
		})
	})
}
