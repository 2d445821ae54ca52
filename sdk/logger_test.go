package kagzi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// logLines collects the lines of a worker's log, without their times.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey && len(groups) == 0 {
				return slog.Attr{}
			}
			return a
		}}))
}

// with returns the lines that contain a text, sorted: branches write in any order.
func (l *logLines) with(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for line := range strings.SplitSeq(l.text.String(), "\n") {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// messages returns the sorted messages that begin with "code".
func (l *logLines) messages() []string {
	lines := l.with("msg=\"code ")
	for i, line := range lines {
		_, line, _ = strings.Cut(line, "msg=\"code ")
		lines[i], _, _ = strings.Cut(line, "\"")
	}
	return lines
}

// logOf runs a workflow to its end and returns the worker's log.
func logOf(t *testing.T, fn func(ctx Context, in struct{}) (int, error), prepare ...func(f *fake)) *logLines {
	t.Helper()
	lines := &logLines{}
	withFake(t, func(t *testing.T, f *fake) {
		for _, p := range prepare {
			p(f)
		}
		w := testWorker(f)
		w.log = lines.logger()
		Handle(w, "w", fn)
		Handle(w, "child", func(ctx Context, in int) (int, error) { Sleep(ctx, "work", time.Hour); return in, nil })
		running(t, w)
		f.start("r", "w", "")
		f.await(t, "r")
	})
	return lines
}

func TestLogger(t *testing.T) {
	step := func(ctx Context, name string) {
		if _, err := Step(ctx, name, constant(1)); err != nil {
			t.Error(err)
		}
	}
	say := func(ctx Context, what string, args ...any) { Logger(ctx).Info("code "+what, args...) }
	for _, c := range []struct {
		name string
		code func(ctx Context, _ struct{}) (int, error)
		want []string
	}{
		{"writes each line once over several activations", func(ctx Context, _ struct{}) (int, error) {
			say(ctx, "begins")
			step(ctx, "a")
			say(ctx, "did a")
			Sleep(ctx, "nap", time.Hour)
			say(ctx, "slept")
			SleepUntil(ctx, "past", time.Time{})
			step(ctx, "b")
			Now(ctx)
			say(ctx, "did b")
			Sleep(ctx, "rest", time.Hour)
			say(ctx, "ends")
			return 0, nil
		}, []string{"begins", "did a", "did b", "ends", "slept"}},
		{"writes each line of branches once", func(ctx Context, _ struct{}) (int, error) {
			_, err := Map(ctx, []string{"x", "y", "z"}, func(ctx Context, item string) (int, error) {
				say(ctx, "begins "+item)
				step(ctx, "a-"+item)
				say(ctx, "did "+item)
				Sleep(ctx, "nap-"+item, time.Duration(item[0]-'w')*time.Hour)
				say(ctx, "slept "+item)
				step(ctx, "b-"+item)
				return 0, nil
			})
			say(ctx, "joined")
			return 0, err
		}, []string{"begins x", "begins y", "begins z", "did x", "did y", "did z", "joined", "slept x", "slept y",
			"slept z"}},
		{"writes lines before a wait for a branch once", func(ctx Context, _ struct{}) (int, error) {
			f := Go(ctx, func(ctx Context) (int, error) {
				Sleep(ctx, "nap", time.Hour)
				say(ctx, "slept")
				Sleep(ctx, "rest", time.Hour)
				return 0, nil
			})
			step(ctx, "a")
			say(ctx, "waits")
			return f.Wait(ctx)
		}, []string{"slept", "waits"}},
		{"writes lines around the wait for a child once", func(ctx Context, _ struct{}) (int, error) {
			c, err := StartChild[int](ctx, "c", "child", 1, ChildOptions{})
			if err != nil {
				return 0, err
			}
			say(ctx, "started")
			_, err = c.Wait(ctx)
			say(ctx, "waited")
			Sleep(ctx, "nap", time.Hour)
			return 0, err
		}, []string{"started", "waited"}},
		{"drops what deferred functions write in a suspension", func(ctx Context, _ struct{}) (int, error) {
			defer say(ctx, "returns")
			Sleep(ctx, "nap", time.Hour)
			return 0, nil
		}, []string{"returns"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 10 {
				equal(t, logOf(t, c.code).messages(), c.want)
			}
		})
	}

	t.Run("writes a line of which nothing is recorded after the worker was lost", func(t *testing.T) {
		lost := false
		lines := &logLines{}
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			w.log = lines.logger()
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				step(ctx, "a")
				if !lost {
					lost = true
					f.take("r", true)
					<-ctx.Done()
				}
				say(ctx, "did a")
				step(ctx, "b")
				return 0, nil
			})
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
		})
		equal(t, lines.messages(), []string{"did a"})
	})

	t.Run("carries run, type, step, attempt and trace id", func(t *testing.T) {
		const trace = "0af7651916cd43dd8448eb211c80319c"
		lines := logOf(t, func(ctx Context, _ struct{}) (int, error) {
			say(ctx, "in the workflow", "n", 1)
			derived := context.WithValue(context.Context(ctx), "key", "value") //nolint:staticcheck // any key does
			Logger(derived).WithGroup("g").Info("code in a derived context", "n", 2)
			return Step(ctx, "s", func(ctx context.Context) (int, error) {
				Logger(ctx).Info("code in the step")
				if Attempt(ctx) == 1 {
					return 0, errors.New("once more")
				}
				return 1, nil
			})
		}, func(f *fake) { f.traceparents = map[string]string{"r": "00-" + trace + "-b7ad6b7169203331-01"} })
		equal(t, lines.with("code "), []string{
			`level=INFO msg="code in a derived context" run=r type=w trace_id=` + trace + ` attempt=1 g.n=2`,
			`level=INFO msg="code in the step" run=r type=w trace_id=` + trace + ` step=s attempt=1`,
			`level=INFO msg="code in the step" run=r type=w trace_id=` + trace + ` step=s attempt=2`,
			`level=INFO msg="code in the workflow" run=r type=w trace_id=` + trace + ` attempt=1 n=1`,
		})
	})

	t.Run("is silent while a record is checked", func(t *testing.T) {
		var lines logLines
		w := NewWorker(WorkerOptions{Logger: lines.logger()})
		Handle(w, "w", func(ctx Context, _ int) (int, error) { say(ctx, "checked"); return 7, nil })
		r := recorded(completed, "1").with("7")
		r.run.WorkflowType = "w"
		if err := replayRecord(t.Context(), w, w.handlers["w"], r); err != nil {
			t.Fatal(err)
		}
		equal(t, lines.messages(), nil)
	})

	t.Run("is the default logger outside of workflow code", func(t *testing.T) {
		equal(t, Logger(t.Context()) == slog.Default(), true)
	})
}

func TestWorkerLogsFailures(t *testing.T) {
	t.Run("a step that is retried and then fails for good, and its run", func(t *testing.T) {
		lines := logOf(t, func(ctx Context, _ struct{}) (int, error) {
			_, err := Step(ctx, "charge", func(context.Context) (int, error) {
				return 0, WithType(errors.New("no card"), "declined")
			}, Retry{Attempts: 2})
			return 0, fmt.Errorf("order: %w", err)
		})
		equal(t, lines.with("level=WARN"), []string{
			`level=WARN msg="step failed for good" run=r type=w step=charge attempt=2 error="no card" error_type=declined`,
			`level=WARN msg="step failed; it will be retried" run=r type=w step=charge attempt=1 error="no card" error_type=declined retry_in=1s`,
		})
		equal(t, lines.with("level=ERROR"), []string{
			`level=ERROR msg="run failed" run=r type=w attempt=1 error="order: step charge: no card" error_type=declined`,
		})
	})
	t.Run("the stack of a panic", func(t *testing.T) {
		lines := logOf(t, func(Context, struct{}) (int, error) { return explode() })
		failed := lines.with(`msg="run failed"`)
		if len(failed) != 1 || !strings.Contains(failed[0], "stack=") || !strings.Contains(failed[0], "sdk.explode(") {
			t.Errorf("got %q, want the stack of explode", failed)
		}
	})
	t.Run("a run that is retried", func(t *testing.T) {
		lines := logOf(t, func(ctx Context, _ struct{}) (int, error) { return 0, errors.New("no") },
			func(f *fake) {
				f.verdicts = map[string]kagziv1.WorkflowStatus{"r": kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING}
			})
		equal(t, lines.with("run failed"), []string{
			`level=WARN msg="run failed; it will be retried" run=r type=w attempt=1 error=no`})
	})
}
