package kagzi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/mux"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// crowd is a set of concurrent starts.
type crowd struct {
	group sync.WaitGroup
	mu    sync.Mutex
	runs  map[int]string
	errs  map[int]error
}

// start starts run i and waits until its call is queued or blocked.
func (w *crowd) start(ctx context.Context, c *Client, i int, opts StartOptions) {
	w.group.Go(func() {
		run, err := Start(ctx, c, "w", i, opts)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.runs == nil {
			w.runs, w.errs = map[int]string{}, map[int]error{}
		}
		if w.errs[i] = err; err == nil {
			w.runs[i] = run.ID()
		}
	})
	synctest.Wait()
}

// all waits for the starts and checks that those from..to each have their own run.
func (w *crowd) all(t *testing.T, from, to int) {
	t.Helper()
	w.group.Wait()
	for i := from; i <= to; i++ {
		if w.errs[i] != nil || w.runs[i] != fmt.Sprint("run-", i) {
			t.Errorf("start %d: %q, %v", i, w.runs[i], w.errs[i])
		}
	}
}

func TestStarts(t *testing.T) {
	t.Run("one alone goes by itself, at once", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			began := time.Now()
			for i := range 3 {
				if run, err := Start(t.Context(), c, "w", i, StartOptions{}); err != nil ||
					run.ID() != fmt.Sprint("run-", i) {
					t.Fatal(run, err)
				}
			}
			equal(t, d.took(), []string{"one", "one", "one"})
			equal(t, time.Since(began), 0)
		})
	})
	t.Run("concurrent starts share a call, each with its own run", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			d.held = make(chan struct{})
			var w crowd
			for i := range 10 {
				w.start(t.Context(), c, i, StartOptions{})
			}
			equal(t, d.took(), []string{"one"})
			d.held <- struct{}{}
			equal(t, d.took(), []string{"batch of 9"})
			w.start(t.Context(), c, 10, StartOptions{})
			close(d.held)
			w.all(t, 0, 10)
			equal(t, d.took(), []string{"one"})
		})
	})
	t.Run("one is held back for 20 ms at most", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			d.held = make(chan struct{})
			var w crowd
			for i := range 4 {
				w.start(t.Context(), c, i, StartOptions{})
			}
			time.Sleep(mux.MaxQueued - time.Millisecond)
			equal(t, d.took(), []string{"one"})
			time.Sleep(time.Millisecond)
			equal(t, d.took(), []string{"batch of 3"})
			w.start(t.Context(), c, 4, StartOptions{})
			time.Sleep(mux.MaxQueued)
			equal(t, d.took(), []string{"one"})
			close(d.held)
			w.all(t, 0, 4)
		})
	})
	t.Run("a refused start in a batch has its own error", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			_, alone := Start(t.Context(), c, "w", 0, StartOptions{ExternalID: "taken"})
			d.held = make(chan struct{})
			var w crowd
			for i := range 3 {
				w.start(t.Context(), c, i, StartOptions{})
			}
			w.start(t.Context(), c, 3, StartOptions{ExternalID: "taken"})
			close(d.held)
			w.all(t, 0, 2)
			equal(t, d.took(), []string{"one", "one", "batch of 3"})
			var one, many *Error
			if !errors.As(alone, &one) || !errors.As(w.errs[3], &many) {
				t.Fatal(alone, w.errs[3])
			}
			equal(t, []any{many.Code, many.Message, many.Subject, many.SubjectID, many.Metadata},
				[]any{one.Code, one.Message, one.Subject, one.SubjectID, one.Metadata})
			if !proto.Equal(many.GRPCStatus().Proto(), one.GRPCStatus().Proto()) {
				t.Errorf("status %v, want %v", many.GRPCStatus().Proto(), one.GRPCStatus().Proto())
			}
			_, err := StartMany(t.Context(), c, "w", []int{0}, StartOptions{ExternalID: "taken"})
			equal(t, status.Code(errors.Unwrap(err.(interface{ Unwrap() []error }).Unwrap()[0])),
				codes.FailedPrecondition)
		})
	})
	t.Run("one that cannot be sent leaves the others alone", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			d.held = make(chan struct{})
			var w crowd
			for i := range 3 {
				w.start(t.Context(), c, i, StartOptions{})
			}
			var err error // of a request that Start would refuse
			w.group.Go(func() {
				_, err = c.starts.Start(t.Context(), "", false, &kagziv1.StartWorkflowRequest{Version: "\xff"})
			})
			synctest.Wait()
			close(d.held)
			w.all(t, 0, 2)
			equal(t, status.Code(err), codes.InvalidArgument)
			equal(t, d.took(), []string{"one", "one", "one"})
		})
	})
	t.Run("a start that cannot be sent names the bad option", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			for want, o := range map[string]StartOptions{
				`option Tags has "of": "caf\xc3", want UTF-8`:    {Tags: map[string]string{"of": "caf\xc3"}},
				`option Requirements has "\xff": "", want UTF-8`: {Requirements: map[string]string{"\xff": ""}},
				`option ExternalID is "\xff", want UTF-8`:        {ExternalID: "\xff"},
				`option RequestID is "\xff", want UTF-8`:         {RequestID: "\xff"},
			} {
				_, err := Start(t.Context(), c, "w", 0, o)
				equal(t, fmt.Sprint(err), "kagzi: start of workflow type w: "+want)
			}
			_, err := StartMany(t.Context(), c, "w", []int{0, 1}, StartOptions{}, func(i int, o *StartOptions) {
				o.Version = "v\xff"[:i+1]
			})
			equal(t, fmt.Sprint(err), `start 1: kagzi: start of workflow type w: option Version is "v\xff", want UTF-8`)
			equal(t, len(d.took()), 0)
		})
	})
	t.Run("a caller that gives up affects no other caller", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			d.held = make(chan struct{})
			var w crowd
			brief, giveUp := context.WithCancel(t.Context())
			w.start(t.Context(), c, 0, StartOptions{})
			for i := 1; i < 5; i++ {
				w.start(t.Context(), c, i, StartOptions{})
			}
			w.start(brief, c, 5, StartOptions{})
			d.held <- struct{}{}
			equal(t, d.took(), []string{"one", "batch of 5"})
			giveUp()
			synctest.Wait()
			w.mu.Lock()
			equal(t, errors.Is(w.errs[5], context.Canceled), true)
			w.mu.Unlock()
			equal(t, len(d.took()), 0)
			close(d.held)
			w.all(t, 0, 4)
		})
	})
	t.Run("a call that nobody waits for ends or is not sent", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			d.held = make(chan struct{})
			var w crowd
			brief, giveUp := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, errStepTimeout)
			defer giveUp()
			for i := range 3 {
				w.start(brief, c, i, StartOptions{})
			}
			d.held <- struct{}{}
			equal(t, d.took(), []string{"one", "batch of 2"})
			w.start(brief, c, 3, StartOptions{})
			w.start(brief, c, 5, StartOptions{})
			time.Sleep(10 * time.Millisecond)
			w.group.Wait()
			equal(t, d.took(), []string{"given up"})
			equal(t, w.errs[1] == errStepTimeout, true)
			close(d.held)
			w.start(t.Context(), c, 4, StartOptions{})
			w.all(t, 4, 4)
			equal(t, d.took(), []string{"one"})
		})
	})
	t.Run("a broken connection repeats the call; runs start once", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			d.held = make(chan struct{})
			var w crowd
			for i := range 6 {
				w.start(t.Context(), c, i, StartOptions{})
			}
			d.held <- struct{}{}
			equal(t, d.took(), []string{"one", "batch of 5"})
			d.cut() // it was carried out, but the answer is lost
			close(d.held)
			w.all(t, 0, 5)
			again := d.took()
			equal(t, again[len(again)-1], "batch of 5")
			if len(d.starts) != 6 {
				t.Errorf("%d request ids for 6 starts", len(d.starts))
			}
		})
	})
	t.Run("options changed after a given-up start are not sent", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			d.held = make(chan struct{})
			var w crowd
			brief, giveUp := context.WithCancel(t.Context())
			opts := StartOptions{Tags: map[string]string{"who": "ada"}, Requirements: map[string]string{"gpu": "a"},
				Retry: &Retry{NonRetryable: []string{"a"}}}
			w.start(t.Context(), c, 0, StartOptions{})
			w.start(brief, c, 1, opts)
			w.start(t.Context(), c, 2, StartOptions{})
			d.leave(true)
			d.cut()
			time.Sleep(mux.MaxQueued)
			synctest.Wait() // both are in a call that waits for the server
			giveUp()
			synctest.Wait()
			w.mu.Lock()
			equal(t, errors.Is(w.errs[1], context.Canceled), true)
			w.mu.Unlock()
			opts.Tags["who"], opts.Requirements["gpu"], opts.Retry.NonRetryable[0] = "bob", "b", "b"
			close(d.held)
			d.leave(false)
			w.group.Wait()
			sent := d.sent["1"]
			equal(t, []string{sent.GetTags()["who"], sent.GetRequirements()["gpu"],
				sent.GetRetryPolicy().GetNonRetryableErrors()[0]}, []string{"ada", "a", "a"})
		})
	})
	t.Run("a server that is away is away for all", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			d.held = make(chan struct{})
			var w crowd
			for i := range 3 {
				w.start(t.Context(), c, i, StartOptions{})
			}
			d.answer = func(int) error { return status.Error(codes.Unavailable, "away") }
			close(d.held)
			w.group.Wait()
			for i := range 3 {
				equal(t, status.Code(w.errs[i]), codes.Unavailable)
			}
		})
	})
	t.Run("a server that starts only one at a time gets them so", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			d.noBatch, d.held = true, make(chan struct{})
			var w crowd
			for i := range 3 {
				w.start(t.Context(), c, i, StartOptions{})
			}
			d.held <- struct{}{}
			equal(t, d.took(), []string{"one", "unknown", "one", "one"})
			for i := 3; i < 6; i++ {
				w.start(t.Context(), c, i, StartOptions{})
			}
			equal(t, d.took(), []string{"one", "one", "one"})
			close(d.held)
			w.all(t, 0, 5)
		})
	})
	t.Run("no call is larger than the server takes", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			d.held = make(chan struct{})
			var w crowd
			w.start(t.Context(), c, 0, StartOptions{})
			for i := range MaxBatch + 5 {
				w.group.Go(func() { _, _ = Start(t.Context(), c, "w", i, StartOptions{}) })
			}
			d.took()
			close(d.held)
			w.group.Wait()
			equal(t, d.took(), []string{"batch of 1000", "batch of 5"})
			d.held = make(chan struct{})
			w.start(t.Context(), c, 0, StartOptions{})
			text := make([]byte, 40<<10)
			for range 120 { // 40 KiB each, a third more as JSON
				w.group.Go(func() { _, _ = Start(t.Context(), c, "w", text, StartOptions{}) })
			}
			w.group.Go(func() { _, _ = Start(t.Context(), c, "w", make([]byte, mux.AloneBytes), StartOptions{}) })
			equal(t, d.took(), []string{"one", "one"})
			close(d.held)
			w.group.Wait()
			equal(t, d.took(), []string{"batch of 75", "batch of 45"})
		})
	})
	t.Run("each has its caller's trace; own metadata goes alone", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			d.held = make(chan struct{})
			var w crowd
			in := func(span byte) context.Context {
				return trace.ContextWithSpanContext(t.Context(),
					trace.NewSpanContext(trace.SpanContextConfig{
						TraceID: trace.TraceID{1}, SpanID: trace.SpanID{span}, TraceFlags: 1}))
			}
			for i := range 3 {
				w.start(in(byte(i+1)), c, i, StartOptions{})
			}
			w.start(t.Context(), c, 3, StartOptions{})
			w.start(metadata.AppendToOutgoingContext(in(9), "tenant", "x"), c, 4, StartOptions{})
			equal(t, d.took(), []string{"one", "one"})
			close(d.held)
			w.all(t, 0, 4)
			equal(t, d.took(), []string{"batch of 3"})
			const traceOne = "00-01000000000000000000000000000000-"
			equal(t, d.traces, map[string]string{
				"0": traceOne + "0100000000000000-01", "1": traceOne + "0200000000000000-01",
				"2": traceOne + "0300000000000000-01", "3": "",
				"4": traceOne + "0900000000000000-01",
			})
		})
	})
}

func TestStartManyIsolatesTheOptionsOfEachRun(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk, c *Client) {
		opts := StartOptions{Tags: map[string]string{"batch": "7"}, Requirements: map[string]string{"arch": "arm"},
			StepRetry: &Retry{Attempts: 2}, RunRetry: &Retry{NonRetryable: []string{"a"}}}
		_, err := StartMany(t.Context(), c, "w", []int{0, 1, 2}, opts, func(i int, o *StartOptions) {
			if i == 1 {
				o.Tags["first"], o.Requirements["gpu"], o.StepRetry.Attempts = "no", "yes", 5
				o.RunRetry.NonRetryable[0] = "b"
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"map[batch:7] map[arch:arm] 2 [a]",
			"map[batch:7 first:no] map[arch:arm gpu:yes] 5 [b]", "map[batch:7] map[arch:arm] 2 [a]"} {
			sent := d.sent[fmt.Sprint(i)]
			equal(t, fmt.Sprint(sent.GetTags(), sent.GetRequirements(), sent.GetRetryPolicy().GetMaximumAttempts(),
				sent.GetRunRetryPolicy().GetNonRetryableErrors()), want)
		}
		// the caller's options are unchanged
		equal(t, fmt.Sprint(opts.Tags, opts.Requirements, opts.StepRetry.Attempts, opts.RunRetry.NonRetryable),
			"map[batch:7] map[arch:arm] 2 [a]")
	})
}
