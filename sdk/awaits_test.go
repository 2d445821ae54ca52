package kagzi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/mux"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func goodRun(id string) *kagziv1.Workflow {
	return &kagziv1.Workflow{RunId: id, Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, Note: "all of it",
		Output: &kagziv1.Payload{Data: []byte(`"out of ` + id + `"`)}}
}

// results waits for runs and returns each outcome.
func results(ctx context.Context, c *Client, ids ...string) (all func() []string) {
	var group sync.WaitGroup
	got := make([]string, len(ids))
	for i, id := range ids {
		group.Go(func() {
			out, err := Result[string](ctx, c.Run(id))
			if got[i] = out; err != nil {
				got[i] = err.Error()
			}
		})
		synctest.Wait()
	}
	return func() []string { group.Wait(); return got }
}

// ends makes runs end.
func (d *desk) ends(runs ...*kagziv1.Workflow) {
	d.mu.Lock()
	before := d.ended
	d.ended = func(id string) *kagziv1.Workflow {
		for _, run := range runs {
			if run.RunId == id {
				return run
			}
		}
		return before(id)
	}
	d.mu.Unlock()
	d.tell()
}

func TestAwaits(t *testing.T) {
	t.Run("one stream carries all waits", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			all := results(t.Context(), c, "a", "b", "a")
			equal(t, d.took(), []string{"stream", "waits 1 forget 0", "waits 1 forget 0", "waits 1 forget 0"})
			d.ends(goodRun("a"), &kagziv1.Workflow{
				RunId: "b", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED,
				Error: &kagziv1.ErrorDetail{Message: "no"}})
			equal(t, all(), []string{"out of a", "run b failed: no", "out of a"})
			equal(t, len(d.took()), 0)
		})
	})
	t.Run("Wait gets all of the run, and Result its typed failure", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			d.ends(goodRun("a"), &kagziv1.Workflow{
				RunId: "b", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT, Error: &kagziv1.ErrorDetail{
					Message: "late", Type: "slow", Stack: "s", Code: kagziv1.ErrorCode_ERROR_CODE_TIMEOUT}})
			run, err := c.Run("a").Wait(t.Context())
			if err != nil || run.Note != "all of it" || run.RunID != "a" {
				t.Fatal(run, err)
			}
			_, err = Result[string](t.Context(), c.Run("b"))
			equal(t, err, error(&RunError{RunID: "b", Status: StatusTimedOut, Type: "slow", Message: "late",
				Code: CodeTimeout, Stack: "s"}))
			equal(t, []bool{errors.Is(err, ErrTimeout), errors.Is(err, ErrCancelled),
				errors.Is(err, context.DeadlineExceeded)}, []bool{true, false, false})
			failed, err := c.Run("b").Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			equal(t, error(failed.Error), error(&RunError{
				RunID: "b", Status: StatusTimedOut, Type: "slow", Message: "late", Code: CodeTimeout, Stack: "s"}))
		})
	})
	t.Run("it goes on with the run that goes on", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			first := &kagziv1.Workflow{RunId: "a", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED,
				ContinuedAsRunId: proto.String("b")}
			d.ends(first)
			all := results(t.Context(), c, "a")
			equal(t, d.took(), []string{"stream", "waits 1 forget 0", "waits 1 forget 0"})
			d.ends(goodRun("b"))
			equal(t, all(), []string{"out of b"})
			run, err := c.Run("a").Wait(t.Context())
			if err != nil || run.RunID != "b" {
				t.Fatal(run, err)
			}
		})
	})
	t.Run("a run that is not there is the error that it is alone", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			_, together := Result[string](t.Context(), c.Run("missing"))
			_, alone := c.workflows.WaitWorkflow(t.Context(), &kagziv1.WaitWorkflowRequest{RunId: "missing"})
			var e *Error
			if !errors.As(together, &e) || e.Code != CodeNotFound || e.Subject != "run" ||
				!proto.Equal(e.GRPCStatus().Proto(), status.Convert(alone).Proto()) {
				t.Errorf("%#v, want %v", together, alone)
			}
		})
	})
	t.Run("a caller that gives up is told, and the server forgets it", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			brief, giveUp := context.WithCancelCause(t.Context())
			gone, remains := results(brief, c, "a"), results(t.Context(), c, "b")
			d.took()
			giveUp(errStepTimeout)
			equal(t, gone(), []string{errStepTimeout.Error()})
			equal(t, d.took(), []string{"waits 0 forget 1"})
			d.ends(goodRun("a"), goodRun("b"))
			equal(t, remains(), []string{"out of b"})
		})
	})
	t.Run("a broken stream is reopened with its open waits", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			brief, giveUp := context.WithCancel(t.Context())
			all, gone := results(t.Context(), c, "a", "b"), results(brief, c, "c")
			d.took()
			d.cut()
			d.end(errCut)
			giveUp()
			gone()
			time.Sleep(10 * time.Second)
			equal(t, d.took(), []string{"stream", "waits 2 forget 0"})
			d.end(io.EOF) // the server closes it as idle
			time.Sleep(10 * time.Second)
			equal(t, d.took(), []string{"closed", "stream", "waits 2 forget 0"})
			d.ends(goodRun("a"), goodRun("b"))
			equal(t, all(), []string{"out of a", "out of b"})
		})
	})
	t.Run("reopens soon after every return of the server", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			all := results(t.Context(), c, "a")
			d.took()
			for range 10 {
				d.leave(true)
				d.cut()
				time.Sleep(5 * time.Second)
				equal(t, len(d.took()), 0)
				d.leave(false)
				time.Sleep(time.Second + mux.MaxAwaitsHerd)
				equal(t, d.took(), []string{"stream", "waits 1 forget 0"})
			}
			d.ends(goodRun("a"))
			equal(t, all(), []string{"out of a"})
		})
	})
	t.Run("an idle stream is closed, and opened for the next wait", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			d.ends(goodRun("a"))
			results(t.Context(), c, "a")()
			time.Sleep(mux.AwaitsIdle - time.Millisecond)
			results(t.Context(), c, "a")()
			d.took()
			time.Sleep(mux.AwaitsIdle - time.Millisecond)
			equal(t, len(d.took()), 0)
			time.Sleep(time.Millisecond)
			equal(t, d.took(), []string{"closed"})
			results(t.Context(), c, "a")()
			equal(t, d.took(), []string{"stream", "waits 1 forget 0"})
			remains := results(t.Context(), c, "b")
			time.Sleep(time.Hour)
			d.took()
			d.ends(goodRun("b"))
			equal(t, remains(), []string{"out of b"})
		})
	})
	t.Run("a server that knows only single waits gets them so", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			d.noBatch = true
			d.ends(goodRun("a"), goodRun("b"))
			equal(t, results(t.Context(), c, "a")(), []string{"out of a"})
			equal(t, d.took(), []string{"unknown", "wait a"})
			equal(t, results(t.Context(), c, "b")(), []string{"out of b"})
			equal(t, d.took(), []string{"wait b"})
		})
	})
	t.Run("a stream that is refused has each ask for itself", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			all := results(t.Context(), c, "a", "b")
			d.took()
			d.ends() // WaitWorkflow does not know the two runs
			d.end(status.Error(codes.Unauthenticated, "revoked"))
			equal(t, all(), []string{"kagzi: NOT_FOUND: no such run", "kagzi: NOT_FOUND: no such run"})
			asked := d.took()
			slices.Sort(asked)
			equal(t, asked, []string{"wait a", "wait b"})
			d.ends(goodRun("a"))
			equal(t, results(t.Context(), c, "a")(), []string{"out of a"})
			equal(t, d.took(), []string{"stream", "waits 1 forget 0"})
		})
	})
	t.Run("asks a server that recovered soon after long refusals", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			d.mu.Lock()
			d.noBatch, d.ill = true, status.Error(codes.Unavailable, "the database does not answer")
			d.mu.Unlock()
			all := results(t.Context(), c, "a")
			time.Sleep(time.Hour)
			d.mu.Lock()
			d.ill = nil
			d.mu.Unlock()
			d.ends(goodRun("a"))
			well := time.Now()
			equal(t, all(), []string{"out of a"})
			if late := time.Since(well); late > 9*time.Second {
				t.Errorf("it was told after %s", late)
			}
			if n := len(d.took()); n > 3600 {
				t.Errorf("it asked %d times in an hour", n)
			}
		})
	})
	t.Run("an unused stream ends while there is no server", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			d.refuse = func() error { return errCut }
			brief, giveUp := context.WithTimeout(t.Context(), time.Minute)
			defer giveUp()
			equal(t, results(brief, c, "a")(), []string{context.DeadlineExceeded.Error()})
			if n := len(d.took()); n < 10 || n > 200 {
				t.Errorf("tried %d times in a minute", n)
			}
			time.Sleep(2 * mux.AwaitsIdle)
			d.took()
			time.Sleep(time.Hour)
			equal(t, len(d.took()), 0)
		})
	})
	t.Run("a broken stream without waits is not reopened or logged", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			var log bytes.Buffer
			c.awaits.Log = slog.New(slog.NewTextHandler(&log, nil))
			d.ends(goodRun("a"))
			results(t.Context(), c, "a")()
			d.took()
			d.cut()
			d.end(errCut)
			time.Sleep(mux.AwaitsIdle / 2)
			equal(t, len(d.took()), 0)
			equal(t, log.String(), "")
			equal(t, results(t.Context(), c, "a")(), []string{"out of a"})
			equal(t, d.took(), []string{"stream", "waits 1 forget 0"})
		})
	})
	t.Run("an id that cannot be sent leaves the other waits alone", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			all := results(t.Context(), c, "a")
			d.took()
			equal(t, results(t.Context(), c, "caf\xc3")(),
				[]string{"kagzi: INVALID_ARGUMENT: run_id: is not valid UTF-8"})
			equal(t, d.took(), nil)
			d.ends(goodRun("a"))
			equal(t, all(), []string{"out of a"})
		})
	})
	t.Run("a second stream takes what the first has no room for", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			for i := range mux.MaxAwaiting {
				go func() { _, _ = c.awaits.Await(t.Context(), fmt.Sprint(i), false) }()
			}
			synctest.Wait()
			d.took()
			all := results(t.Context(), c, "more")
			equal(t, d.took(), []string{"stream", "waits 1 forget 0"})
			d.ends(goodRun("more"))
			equal(t, all(), []string{"out of more"})
		})
	})
	t.Run("the client's end is the end of its waits", func(t *testing.T) {
		withDesk(t, func(t *testing.T, d *desk, c *Client) {
			all := results(t.Context(), c, "a")
			_ = c.Close()
			equal(t, len(all()[0]) > 0, true)
			if _, err := Result[string](t.Context(), c.Run("a")); err == nil {
				t.Error("a result without a connection")
			}
		})
	})
}
