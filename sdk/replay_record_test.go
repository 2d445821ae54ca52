package kagzi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const recordedRun = "0199a000-0000-7000-8000-000000000001"

// recorded makes a record by hand.
func recorded(status kagziv1.WorkflowStatus, input string, steps ...*kagziv1.Step) *runRecord {
	for i, s := range steps {
		s.RunId, s.Sequence = recordedRun, int64(i+1)
		s.AttemptNumber = max(s.AttemptNumber, 1)
	}
	return newRecord(&kagziv1.Workflow{RunId: recordedRun, WorkflowType: "order", Namespace: "default",
		TaskQueue: "default",
		Status:    status, Input: &kagziv1.Payload{Data: []byte(input)}, Attempts: 1}, steps)
}

const (
	pending   = kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING
	sleeping  = kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING
	completed = kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED
	failed    = kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED
	cancelled = kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED
)

func (r *runRecord) with(output string) *runRecord {
	r.run.Output = &kagziv1.Payload{Data: []byte(output)}
	return r
}

func (r *runRecord) because(kind, message string) *runRecord {
	r.run.Error = &kagziv1.ErrorDetail{Type: kind, Message: message}
	return r
}

func done(name, output string) *kagziv1.Step {
	return &kagziv1.Step{Name: name, Kind: kagziv1.StepKind_STEP_KIND_FUNCTION,
		Status: kagziv1.StepStatus_STEP_STATUS_COMPLETED,
		Output: &kagziv1.Payload{Data: []byte(output)}}
}

func broken(name, message string, code kagziv1.ErrorCode) *kagziv1.Step {
	return &kagziv1.Step{Name: name, Kind: kagziv1.StepKind_STEP_KIND_FUNCTION,
		Status: kagziv1.StepStatus_STEP_STATUS_FAILED,
		Error:  &kagziv1.ErrorDetail{Message: message, Code: code}}
}

func slept(name string) *kagziv1.Step {
	return &kagziv1.Step{Name: name, Kind: kagziv1.StepKind_STEP_KIND_SLEEP,
		Status: kagziv1.StepStatus_STEP_STATUS_COMPLETED}
}

// sleepingIn is a sleep without a recorded end, even if its time has passed since.
func sleepingIn(name string) *kagziv1.Step {
	return &kagziv1.Step{Name: name, Kind: kagziv1.StepKind_STEP_KIND_SLEEP,
		Status:   kagziv1.StepStatus_STEP_STATUS_RUNNING,
		WakeUpAt: timestamppb.New(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))}
}

func never(t *testing.T) func(context.Context) (int, error) {
	return func(context.Context) (int, error) { t.Error("the code of a step ran"); return 0, nil }
}

func replayed[In, Out any](t *testing.T, r *runRecord, fn func(Context, In) (Out, error)) error {
	t.Helper()
	w := NewWorker(WorkerOptions{Logger: slog.New(slog.DiscardHandler), HandleSignals: []os.Signal{}})
	return replayRecord(t.Context(), w, typed(w, "order", fn), r)
}

func TestReplayOfARecord(t *testing.T) {
	order := func(t *testing.T) func(Context, int) (int, error) {
		return func(ctx Context, in int) (int, error) {
			a, err := Step(ctx, "a", never(t))
			if err != nil {
				return 0, err
			}
			Sleep(ctx, "night", 24*time.Hour)
			b, err := Step(ctx, "b", never(t), Retry{Attempts: 5})
			return in + a + b, err
		}
	}
	for _, c := range []struct {
		name   string
		record *runRecord
		want   string // "" when they agree
	}{
		{"a run that has completed", recorded(completed, "1", done("a", "2"), slept("night"), done("b", "3")).with("6"),
			""},
		{"a run before its first step", recorded(pending, "1"), ""},
		{"a run in the middle of a sleep", recorded(sleeping, "1", done("a", "2"), sleepingIn("night")), ""},
		{"a run between two steps", recorded(pending, "1", done("a", "2"), slept("night")), ""},
		{"a run whose step waits for its next attempt", recorded(sleeping, "1", done("a", "2"), slept("night"),
			&kagziv1.Step{Name: "b", Kind: kagziv1.StepKind_STEP_KIND_FUNCTION,
				Status:  kagziv1.StepStatus_STEP_STATUS_PENDING,
				RetryAt: timestamppb.New(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))}), ""},
		{"a run whose worker was lost in a step",
			recorded(pending, "1", broken("a", "lost", kagziv1.ErrorCode_ERROR_CODE_CRASHED)), ""},
		{"a run that failed", recorded(failed, "1", broken("a", "no card", 0)).because("", "step a: no card"), ""},
		{"a run that was cancelled", recorded(cancelled, "1", done("a", "2"), sleepingIn("night")), ""},
		{"an output of the same value in other words",
			recorded(completed, "1", done("a", "2"), slept("night"), done("b", "3")).with(" 6 "), ""},
		{"a step that is not in the code", recorded(pending, "1", done("a", "2"), done("audit", "0"), slept("night")),
			"at step audit: expected step audit, got step b"},
		{"a step that the code has under another name", recorded(pending, "1", done("first", "2")),
			"at step first: expected step first, got step a"},
		{"a step that is a sleep in the code", recorded(pending, "1", done("a", "2"), done("night", "2")),
			"at step night: expected step night, got sleep night"},
		{"a step that comes behind what the run waits for",
			recorded(sleeping, "1", done("a", "2"), sleepingIn("night"), done("c", "2")),
			"at step c: expected step c, got nothing beyond sleep night"},
		{"a recorded step after the end of the code",
			recorded(pending, "1", done("a", "2"), slept("night"), done("b", "3"), done("c", "4")),
			"at step c: expected step c, got the run completed with 6"},
		{"a result that cannot be read", recorded(pending, "1", done("a", `"two"`)),
			"at step a: expected a value that the code can read, got recorded result of step a: cannot be read as int: json: cannot unmarshal string into Go value of type int"},
		{"an input that cannot be read", recorded(pending, `"one"`),
			": expected a value that the code can read, got input of workflow type order: cannot be read as int: json: cannot unmarshal string into Go value of type int"},
		{"another output", recorded(completed, "1", done("a", "2"), slept("night"), done("b", "3")).with("7"),
			": expected the run to have completed with 7, got the run completed with 6"},
		{"a completed run that the code cannot complete",
			recorded(completed, "1", done("a", "2"), slept("night")).with("7"),
			"at step b: expected the run to have completed with 7, got step b"},
		{"a completed run that the code fails", recorded(completed, "1", broken("a", "no card", 0)).with("7"),
			": expected the run to have completed with 7, got the run failed: step a: no card"},
		{"a failed run that the code completes",
			recorded(failed, "1", done("a", "2"), slept("night"), done("b", "3")).because("", "overflow"),
			": expected the run to have failed: overflow, got the run completed with 6"},
		{"a run that failed with another error",
			recorded(failed, "1", broken("a", "no card", 0)).because("", "step a: no bank"),
			": expected the run to have failed: step a: no bank, got the run failed: step a: no card"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := replayed(t, c.record, order(t))
				check(t, err, c.want)
				if c.want == "" {
					equal(t, time.Since(began), 0) // nothing waits
				}
			})
		})
	}
}

func TestReplayHidesEndsCausedByTheEndOfTheRun(t *testing.T) {
	again := timestamppb.New(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	retrying := broken("a", "no card", 0)
	retrying.IsLatest, retrying.RetryAt = true, again
	running := broken("a", "the run ended", kagziv1.ErrorCode_ERROR_CODE_CANCELLED)
	running.IsLatest, running.Error.Type = true, kindRunEnded
	for name, step := range map[string]*kagziv1.Step{
		"a step that waited for its next attempt": retrying, "a step that ran": running} {
		err := replayed(t, recorded(cancelled, "1", step), func(ctx Context, _ int) (int, error) {
			n, err := Step(ctx, "a", never(t))
			t.Errorf("%s: the code saw it end with %v", name, err)
			return n, err
		})
		check(t, err, "")
	}
	err := replayed(t, recorded(failed, "1", broken("a", "no card", 0)).because("", "step a: no card"),
		func(ctx Context, _ int) (int, error) {
			return Step(ctx, "a", never(t))
		})
	check(t, err, "")
}

// The local clock may be behind the server's.
func TestReplayUsesTheClockOfTheRecord(t *testing.T) {
	moment := time.Now().Add(24 * time.Hour)
	late := func(s *kagziv1.Step, d time.Duration) *kagziv1.Step {
		s.CreatedAt = timestamppb.New(moment.Add(d))
		return s
	}
	nap := sleepingIn("nap")
	nap.WakeUpAt = timestamppb.New(moment)
	code := func(ctx Context, _ int) (int, error) {
		SleepUntil(ctx, "opening", moment) // it had passed, so nothing is recorded
		Sleep(ctx, "nap", time.Hour)
		return Step(ctx, "a", never(t))
	}
	check(t, replayed(t, recorded(pending, "0", late(nap, -time.Hour), late(done("a", "1"), 0)), code), "")
	check(t, replayed(t, recorded(pending, "0", late(nap, -time.Hour), late(done("a", "1"), -time.Second)),
		func(ctx Context, _ int) (int, error) {
			Sleep(ctx, "nap", time.Hour)
			return Step(ctx, "a", never(t))
		}), "at step a: expected step a, got nothing beyond sleep nap")
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	var d *Divergence
	if !errors.As(err, &d) {
		t.Fatalf("err = %v, want a Divergence", err)
	}
	if !strings.HasPrefix(want, ":") {
		want = " " + want
	}
	equal(t, d.Error(), "run "+recordedRun+" of type order diverges"+want)
}

func TestReplayOfBranches(t *testing.T) {
	fanOut := func(t *testing.T) func(Context, []int) (int, error) {
		return func(ctx Context, in []int) (int, error) {
			got, err := Map(ctx, in, func(ctx Context, n int) (int, error) {
				a, err := Step(ctx, fmt.Sprint("a-", n), never(t))
				if err != nil {
					return 0, err
				}
				Sleep(ctx, fmt.Sprint("s-", n), time.Hour)
				b, err := Step(ctx, fmt.Sprint("b-", n), never(t))
				return a + b, err
			})
			return len(got), err
		}
	}
	t.Run("each branch replays to the end of its record", func(t *testing.T) {
		for range 50 {
			check(t, replayed(t, recorded(sleeping, "[1,2,3]", done("a-3", "1"), sleepingIn("s-3"), done("a-1", "1"),
				slept("s-1"),
				done("b-1", "1")), fanOut(t)), "")
		}
	})
	t.Run("a missed step of a branch is found", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for range 50 {
				err := replayed(t, recorded(sleeping, "[1,2]", done("a-1", "1"), done("a-2", "1"), done("x-2", "1"),
					sleepingIn("s-2")), fanOut(t))
				var d *Divergence
				if !errors.As(err, &d) || d.Step != "x-2" || d.Expected != "step x-2" {
					t.Fatalf("err = %v", err)
				}
			}
		})
	})
	t.Run("a branch cut off by the run's end counts as recorded", func(t *testing.T) {
		left := func(ctx Context, _ int) (int, error) {
			Go(ctx, func(ctx Context) (int, error) {
				for i := range 20 {
					if _, err := Step(ctx, fmt.Sprint("left-", i), never(t)); err != nil {
						return 0, err
					}
				}
				return 0, nil
			})
			return 1, nil
		}
		for range 50 {
			check(t, replayed(t, recorded(completed, "0", done("left-0", "1"), done("left-1", "1"),
				done("left-2", "1")).with("1"), left), "")
		}
	})
	t.Run("goroutines of the author's own are waited for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			own := func(ctx Context, _ int) (int, error) {
				results := make(chan int)
				for i := range 3 {
					go func() {
						if i == 2 {
							<-time.After(100 * time.Millisecond) // longer than parkSettle
						}
						n, _ := Step(ctx, fmt.Sprint("own-", i), never(t))
						select {
						case results <- n:
						case <-ctx.Done():
						}
					}()
				}
				total := 0
				for range 3 {
					select {
					case n := <-results:
						total += n
					case <-ctx.Done():
						Sleep(ctx, "never", time.Hour)
					}
				}
				return total, nil
			}
			check(t, replayed(t, recorded(sleeping, "0", done("own-0", "1"), done("own-2", "1")), own), "")
			check(t, replayed(t, recorded(completed, "0", done("own-0", "1"), done("own-2", "1"),
				done("own-1", "1")).with("3"), own), "")
		})
	})
	t.Run("plain goroutines are waited for when the run looks idle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			branches := func(ctx Context, _ int) (int, error) {
				first := make(chan struct{})
				go func() {
					_, _ = Step(ctx, "own-1", never(t))
					close(first)
					<-time.After(100 * time.Millisecond)
					_, _ = Step(ctx, "own-2", never(t))
				}()
				<-first
				return Step(ctx, "main", never(t))
			}
			check(t, replayed(t, recorded(sleeping, "0", done("own-1", "1"), done("own-2", "1")), branches), "")
		})
	})
	t.Run("one name in two branches is found", func(t *testing.T) {
		err := replayed(t, recorded(pending, "[1,2]"), func(ctx Context, in []int) (int, error) {
			_, err := Map(ctx, in, func(ctx Context, _ int) (int, error) { return Step(ctx, "same", never(t)) })
			return 0, err
		})
		var d *Divergence
		if !errors.As(err, &d) || !strings.Contains(d.Got, "used by two goroutines or branches at once") {
			t.Fatalf("err = %v", err)
		}
	})
}

func TestReplayOfWhatTheSDKRecords(t *testing.T) {
	code := func(ctx Context, _ int) (string, error) {
		return fmt.Sprint(Now(ctx).Unix(), Random(ctx).IntN(1000), NewUUID(ctx)), nil
	}
	now := done("kagzi:now", `"2026-11-20T12:00:00Z"`)
	seed := done("kagzi:seed", `"`+strings.Repeat("A", 86)+`=="`)
	t.Run("recorded values are drawn again", func(t *testing.T) {
		err := replayed(t, recorded(completed, "0", now, seed).with(`"?"`), code)
		var d *Divergence
		if !errors.As(err, &d) || !strings.HasPrefix(d.Got, `the run completed with "1795176000`) {
			t.Fatalf("err = %v", err)
		}
	})
	t.Run("one that is not recorded is drawn, as a worker would", func(t *testing.T) {
		check(t, replayed(t, recorded(pending, "0", now), code), "")
		check(t, replayed(t, recorded(pending, "0", seed), code), "")
	})
	t.Run("a panic is a failure with its stack", func(t *testing.T) {
		err := replayed(t, recorded(completed, "0").with("1"), func(Context, int) (int, error) { panic("ouch") })
		check(t, err, ": expected the run to have completed with 1, got the run failed: panic: ouch")
		var d *Divergence
		if errors.As(err, &d); !strings.Contains(d.Stack, "replay_record_test.go") {
			t.Fatalf("stack = %s", d.Stack)
		}
		check(t, replayed(t, recorded(failed, "0").because("panic", "panic: 0xc000"), func(Context, int) (int, error) {
			panic("ouch")
		}), "")
	})
	t.Run("a panic ends the replay once all branches are done", func(t *testing.T) {
		for _, inBranch := range []bool{false, true} {
			code := func(ctx Context, in []int) (int, error) {
				fs := make([]*Future[int], len(in))
				for i, n := range in {
					fs[i] = Go(ctx, func(ctx Context) (int, error) {
						if n == 0 && inBranch {
							panic("ouch")
						}
						return Step(ctx, fmt.Sprint("a-", n), never(t))
					})
				}
				if !inBranch {
					panic("ouch")
				}
				for _, f := range fs {
					_, _ = f.Wait(ctx)
				}
				return 0, nil
			}
			for range 50 {
				check(t, replayed(t, recorded(failed, "[0,1,2]", done("a-1", "1"), done("a-2", "1")).because(
					"panic", "panic: ouch"), code), "")
			}
		}
	})
	t.Run("a panic ends code that waits for the panicked branch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			check(t, replayed(t, recorded(failed, "0", done("a", "1")).because("panic", "panic: ouch"),
				func(ctx Context, _ int) (int, error) {
					result := make(chan int)
					Go(ctx, func(ctx Context) (int, error) {
						n, _ := Step(ctx, "a", never(t))
						if n == 1 {
							panic("ouch")
						}
						result <- n
						return 0, nil
					})
					select {
					case n := <-result:
						return n, nil
					case <-ctx.Done():
						return 0, ctx.Err()
					}
				}), "")
		})
	})
	t.Run("completed steps of an earlier attempt may be missing", func(t *testing.T) {
		code := func(ctx Context, _ int) (int, error) { return Step(ctx, "a", never(t)) }
		old := "0199a000-0000-7000-8000-000000000000"
		r := recorded(completed, "0", done("undo", "1"), done("a", "1")).with("1")
		check(t, replayed(t, r, code), "at step undo: expected step undo, got the run completed with 1")
		r.run.RetriedFromRunId = &old
		check(t, replayed(t, r, code), "")
		r = recorded(sleeping, "0", sleepingIn("undo"), done("a", "1"))
		r.run.RetriedFromRunId = &old
		check(t, replayed(t, r, code), "at step undo: expected sleep undo, got the run completed with 1")
	})
	t.Run("open steps of an earlier attempt may be missing",
		func(t *testing.T) {
			code := func(ctx Context, _ int) (int, error) { return Step(ctx, "a", never(t)) }
			at := func(s *kagziv1.Step, seconds int64) *kagziv1.Step {
				s.CreatedAt = &timestamppb.Timestamp{Seconds: seconds}
				return s
			}
			missed := "at step wait: expected wait for a signal wait, got the run completed with 1"
			r := recorded(sleeping, "0", waitingFor("wait"), done("a", "1"))
			r.run.RetryPolicy, r.run.Attempts = &kagziv1.RetryPolicy{}, 2 // of a retried step
			check(t, replayed(t, r, code), missed)
			check(t, replayed(t, r.because("", "no bank"), code), "")
			ended := recorded(completed, "0", waitingFor("wait"), done("a", "1")).with("1")
			check(t, replayed(t, ended, code), missed)
			ended.run.Attempts, ended.run.StepRetries = 1, proto.Int32(3) // only steps were retried
			check(t, replayed(t, ended, code), missed)
			ended.run.Attempts = 2
			check(t, replayed(t, ended, code), "")
			set := at(done("a", "1"), 20)
			set.OverriddenBy = "ada"
			check(t, replayed(t, recorded(sleeping, "0", at(waitingFor("wait"), 10), set), code), "")
			check(t, replayed(t, recorded(sleeping, "0", at(waitingFor("wait"), 30), set), code), missed)
		})
	t.Run("code that comes to no end is given up with the context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := NewWorker(WorkerOptions{Logger: slog.New(slog.DiscardHandler)})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := replayRecord(ctx, w, typed(w, "order", func(ctx Context, _ int) (int, error) {
				<-ctx.Done()
				return 0, nil
			}), recorded(pending, "0"))
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("err = %v", err)
			}
		})
	})
	t.Run("a codec is used for the comparison too", func(t *testing.T) {
		codec := &base64Codec{seen: map[PayloadInfo]int{}}
		w := NewWorker(WorkerOptions{Logger: slog.New(slog.DiscardHandler), Codec: codec})
		r := recorded(completed, "MQ==", done("a", "Mg==")).with("IDMg")
		check(t, replayRecord(t.Context(), w, typed(w, "order", func(ctx Context, in int) (int, error) {
			a, err := Step(ctx, "a", never(t))
			return in + a, err
		}), r), "")
	})
	t.Run("a codec that panics at a run's end is reported", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := NewWorker(WorkerOptions{Logger: slog.New(slog.DiscardHandler), Codec: panicking{}})
			err := replayRecord(t.Context(), w, typed(w, "order", func(_ Context, in int) (int, error) {
				return in, nil
			}), recorded(completed, "1").with("1"))
			check(t, err,
				": expected the run to have completed with an output that cannot be decoded: codec: panic: no key, "+
					"got the run completed with an output that cannot be decoded: codec: panic: no key")
		})
	})
}

// panicking is a codec that cannot decode outputs.
type panicking struct{}

func (panicking) Encode(p Payload, _ PayloadInfo) (Payload, error) { return p, nil }

func (panicking) Decode(p Payload, info PayloadInfo) (Payload, error) {
	if info.Kind == PayloadOutput {
		panic("no key")
	}
	return p, nil
}
