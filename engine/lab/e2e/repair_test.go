package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// shop is an SDK worker whose orders reserve, charge and ship; charging fails while it is broken.
type shop struct {
	broken atomic.Bool
	mu     sync.Mutex
	ran    []string
}

func (s *shop) order(ctx kagzi.Context, in string) (string, error) {
	out := in
	for _, name := range []string{"reserve", "charge", "ship"} {
		got, err := kagzi.Step(ctx, name, func(context.Context) (string, error) {
			s.mu.Lock()
			s.ran = append(s.ran, name)
			s.mu.Unlock()
			if name == "charge" && s.broken.Load() {
				return "", kagzi.NonRetryable(errors.New("card declined"))
			}
			return name + " " + in, nil
		})
		if err != nil {
			return "", err
		}
		out += "; " + got
	}
	return out, nil
}

// takeRan returns what has run since the last call.
func (s *shop) takeRan() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ran := strings.Join(s.ran, " ")
	s.ran = nil
	return ran
}

// audit returns what was done to a run, oldest first: "Method(reason) detail".
func (s *Server) audit(t testing.TB, subject string) (lines []string) {
	t.Helper()
	for _, e := range fine(s.admin().ListAuditEvents(
		within(t, 20*time.Second), &kagziv1.ListAuditEventsRequest{Namespace: "default", SubjectId: ptr(subject)}))(
		t).Events {
		if e.Actor != "local" || !strings.HasPrefix(e.Peer, "127.0.0.1:") || e.Outcome != "ok" || e.At == nil ||
			e.Subject != "run" || e.SubjectId != subject {
			t.Errorf("the audit event is %v", e)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s(%s) %s", e.Method, e.Reason, e.Detail)))
	}
	slices.Reverse(lines)
	return lines
}

func TestARunIsRepairedByTheSDK(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		shop := &shop{}
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) { kagzi.Handle(w, "order", shop.order) })
		ctx, c := within(t, time.Minute), s.client(t)
		failing := func() *kagzi.Run {
			shop.broken.Store(true)
			run := fine(kagzi.Start(ctx, c, "order", "o1",
				kagzi.StartOptions{ExternalID: "order-1", Tags: map[string]string{"k": "v"}}))(t)
			if _, err := kagzi.Result[string](ctx, run); err == nil {
				t.Fatal("the order did not fail")
			}
			shop.broken.Store(false)
			shop.takeRan()
			return run
		}
		const whole = "o1; reserve o1; charge o1; ship o1"
		for name, r := range map[string]struct {
			opts kagzi.RetryOptions
			ran  string
			want string
		}{
			"from the step that failed": {kagzi.RetryOptions{Reason: "bank is back"}, "charge ship", whole},
			"from any step":             {kagzi.RetryOptions{FromStep: "reserve"}, "reserve charge ship", whole},
			"from the very start":       {kagzi.RetryOptions{Restart: true}, "reserve charge ship", whole},
			"with another input": {kagzi.RetryOptions{Restart: true, Input: kagzi.InputOf("o2")},
				"reserve charge ship", "o2; reserve o2; charge o2; ship o2"},
		} {
			old := failing()
			again := fine(old.Retry(ctx, r.opts))(t)
			if got := fine(kagzi.Result[string](ctx, again))(t); got != r.want {
				t.Errorf("%s it returns %q, want %q", name, got, r.want)
			}
			if ran := shop.takeRan(); ran != r.ran {
				t.Errorf("%s there ran %q, want %q", name, ran, r.ran)
			}
			w := s.get(t, again.ID())
			if w.GetRetriedFromRunId() != old.ID() || w.ExternalId != "order-1" || w.Tags["k"] != "v" ||
				w.Attempts != 1 || w.StepCount != 3 {
				t.Errorf("%s it is %v", name, w)
			}
			if before := s.get(t, old.ID()); before.Status != failed || before.StepCount != 2 {
				t.Errorf("the run that was tried again has become %v", before)
			}
			if got := s.audit(t, old.ID()); len(got) != 1 ||
				!strings.HasPrefix(got[0], "RetryWorkflow("+r.opts.Reason+")") {
				t.Errorf("%s the audit says %q", name, got)
			}
			_, err := again.Retry(ctx, kagzi.RetryOptions{})
			wantRefused(t, "a retry of what has completed", err, codes.FailedPrecondition, codePrecondition,
				"COMPLETED")
		}
	})
}

func TestAStepThatCannotSucceedIsOverridden(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		shop := &shop{}
		shop.broken.Store(true)
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) { kagzi.Handle(w, "order", shop.order) })
		ctx, c := within(t, time.Minute), s.client(t)
		run := fine(kagzi.Start(ctx, c, "order", "o1", kagzi.StartOptions{}))(t)
		fine(run.Wait(ctx))(t)
		if err := kagzi.OverrideStep(ctx, run, "charge", "paid in cash", ""); detailOf(
			err).Metadata["field"] != "reason" {
			t.Errorf("an override without a reason: %v", err)
		}
		if err := kagzi.OverrideStep(ctx, run, "charge", "paid in cash", "the shop's own till"); err != nil {
			t.Fatal(err)
		}
		shop.takeRan()
		again := fine(run.Retry(ctx, kagzi.RetryOptions{}))(t)
		if got := fine(kagzi.Result[string](ctx, again))(t); got != "o1; reserve o1; paid in cash; ship o1" {
			t.Errorf("after the override it returns %q", got)
		}
		if ran := shop.takeRan(); ran != "ship" {
			t.Errorf("after the override there ran %q", ran)
		}
		var attempts []string
		for _, step := range s.steps(t, run.ID()) {
			if step.Name == "charge" {
				attempts = append(attempts, fmt.Sprintf(
					"%d %s %q by %q: %s, latest %t", step.AttemptNumber, step.Status, step.Error.GetMessage(),
					step.OverriddenBy, step.OverrideReason, step.IsLatest))
			}
		}
		want := []string{
			`1 STEP_STATUS_FAILED "card declined" by "": , latest false`,
			`2 STEP_STATUS_COMPLETED "" by "local": the shop's own till, latest true`,
		}
		if !slices.Equal(attempts, want) {
			t.Errorf("the attempts of the step are\n%s\nwant\n%s", strings.Join(attempts, "\n"),
				strings.Join(want, "\n"))
		}
		if got := s.audit(t, run.ID()); len(got) != 2 ||
			!strings.HasPrefix(got[0], "OverrideStep(the shop's own till) ") || !strings.Contains(got[0], "charge") {
			t.Errorf("the audit says %q", got)
		}
		wantRefused(t, "an override of a step that was not begun", kagzi.OverrideStep(ctx, run, "nothing", 1, "why"),
			codes.NotFound, codeNotFound, "nothing")
	})
}

func TestAPausedRunIsOverriddenAndContinues(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		began, over := make(chan struct{}, 10), make(chan struct{}, 10)
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "stuck", func(ctx kagzi.Context, _ int) (string, error) {
				return kagzi.Step(ctx, "forever", func(step context.Context) (string, error) {
					began <- struct{}{}
					<-step.Done()
					over <- struct{}{}
					return "", step.Err()
				})
			})
		})
		ctx, c := within(t, time.Minute), s.client(t)
		run := fine(kagzi.Start(ctx, c, "stuck", 0, kagzi.StartOptions{}))(t)
		receive(t, "the step", began)
		s.until(t, run.ID(), "in its step", func(_ *kagziv1.Workflow, steps map[string]*kagziv1.Step) bool {
			return steps["forever"].GetStatus() == kagziv1.StepStatus_STEP_STATUS_RUNNING
		})
		wantRefused(t, "an override of a run at work", kagzi.OverrideStep(ctx, run, "forever", "x", "why"),
			codes.FailedPrecondition, codePrecondition, "RUNNING")
		if err := run.Resume(ctx, "nothing to resume"); err != nil {
			t.Error(err)
		}
		for range 2 { // again is fine, and no change
			if err := run.PauseNow(ctx, "look into it"); err != nil {
				t.Fatal(err)
			}
		}
		receive(t, "the end of the step's context", over)
		if w := s.get(t, run.ID()); !w.Paused || w.Status != pending || w.WorkerId != nil {
			t.Errorf("paused it is %v", w)
		}
		if err := kagzi.OverrideStep(ctx, run, "forever", "by hand", "it never ends"); err != nil {
			t.Fatal(err)
		}
		wantEmpty(t, "the step while the run is paused", began)
		if err := run.Resume(ctx, "found it"); err != nil {
			t.Fatal(err)
		}
		if got := fine(kagzi.Result[string](ctx, run))(t); got != "by hand" {
			t.Errorf("resumed it returns %q", got)
		}
		wantEmpty(t, "the step that was overridden", began)
		if got, want := s.audit(t, run.ID()), []string{
			"PauseWorkflow(look into it)", "OverrideStep(it never ends) forever",
			"ResumeWorkflow(found it)"}; !slices.Equal(got, want) {
			t.Errorf("the audit says %q, want %q", got, want)
		}
		// A failure can be recorded too; the code then gets it.
		doomed := fine(kagzi.Start(ctx, c, "stuck", 0, kagzi.StartOptions{}))(t)
		receive(t, "the step", began)
		s.until(t, doomed.ID(), "in its step", func(_ *kagziv1.Workflow, steps map[string]*kagziv1.Step) bool {
			return steps["forever"] != nil
		})
		if err := errors.Join(doomed.PauseNow(ctx, ""),
			doomed.OverrideStepError(ctx, "forever", kagzi.WithType(errors.New("given up"), "hopeless"), "why"),
			doomed.Resume(ctx, "")); err != nil {
			t.Fatal(err)
		}
		_, err := kagzi.Result[string](ctx, doomed)
		var end *kagzi.RunError
		if !errors.As(err, &end) || end.Status != kagzi.StatusFailed || end.Type != "hopeless" ||
			!strings.Contains(end.Message, "given up") {
			t.Errorf("with a failure in the step's place it ends with %v", err)
		}
		wantRefused(t, "a pause of an ended run", run.Pause(ctx, ""), codes.FailedPrecondition, codePrecondition,
			"COMPLETED")
		wantRefused(t, "an override of a completed run", kagzi.OverrideStep(ctx, run, "forever", "x", "why"),
			codes.FailedPrecondition, codePrecondition, "COMPLETED")
	})
}

func TestAPauseKeepsARunFromTheWorkersAndItsTimersWait(t *testing.T) {
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		w := s.register(t)
		run := s.start(t)
		task := w.take(t)
		fine(s.workers().Sleep(ctx, &kagziv1.SleepRequest{
			RunId: run, StepId: "nap", Duration: hour, LeaseToken: task.LeaseToken}))(t)
		fine(s.workflows().PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{RunId: run}))(t)
		s.Jump(2 * time.Hour)
		w.wantNothing(t, "a paused run whose timer is over")
		if got := fine(s.workflows().ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{RunId: run}))(
			t).Workflow; got.Paused {
			t.Errorf("resumed it is %v", got)
		}
		task = w.take(t)
		if task.RunId != run || task.History[0].Status != kagziv1.StepStatus_STEP_STATUS_COMPLETED {
			t.Errorf("resumed it is handed out as %v", task)
		}
		fine(s.workflows().PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{RunId: run, Now: true}))(t)
		_, err := s.workers().CompleteWorkflow(ctx,
			&kagziv1.CompleteWorkflowRequest{RunId: run, LeaseToken: task.LeaseToken})
		wantRefused(t, "the end of a run that was paused meanwhile", err, codes.FailedPrecondition,
			codeLeaseLost, "PENDING")
		fine(s.workflows().CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: run}))(t)
		if got := s.get(t, run); got.Status != cancelled || got.Paused {
			t.Errorf("cancelled while it was paused it is %v", got)
		}
	})
}

func TestRetriesThatAreRepeatedOrRefused(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		w := s.register(t)
		run := s.start(t, func(r *kagziv1.StartWorkflowRequest) { r.ExternalId = "order" })
		w.failFor(t, w.take(t), "x")
		retry := func(change func(*kagziv1.RetryWorkflowRequest)) (*kagziv1.RetryWorkflowResponse, error) {
			r := &kagziv1.RetryWorkflowRequest{RunId: run}
			change(r)
			return s.workflows().RetryWorkflow(ctx, r)
		}
		for name, change := range map[string]func(*kagziv1.RetryWorkflowRequest){
			"from_step": func(r *kagziv1.RetryWorkflowRequest) { r.Restart, r.FromStep = true, "s" },
			"input":     func(r *kagziv1.RetryWorkflowRequest) { r.Input = text("x") },
		} {
			_, err := retry(change)
			wantRefused(t, name, err, codes.InvalidArgument, codeInvalid, name)
		}
		_, err := retry(func(r *kagziv1.RetryWorkflowRequest) { r.FromStep = "nothing" })
		wantRefused(t, "a step that was not begun", err, codes.NotFound, codeNotFound, "nothing")
		first := fine(retry(func(r *kagziv1.RetryWorkflowRequest) { r.RequestId = "once" }))(t)
		if again := fine(retry(func(r *kagziv1.RetryWorkflowRequest) { r.RequestId = "once" }))(
			t); again.NewRunId != first.NewRunId || again.AlreadyRunning {
			t.Errorf("the same request again: %v, want the first answer", again)
		}
		_, err = retry(func(r *kagziv1.RetryWorkflowRequest) { r.RequestId, r.Restart = "once", true })
		wantRefused(t, "the same request for something else", err, codes.FailedPrecondition, codeConflict,
			first.NewRunId)
		if again := fine(retry(func(*kagziv1.RetryWorkflowRequest) {}))(t); again.NewRunId != first.NewRunId ||
			!again.AlreadyRunning {
			t.Errorf("another retry while one is active: %v, want that one", again)
		}
		w.failFor(t, w.take(t), "again")
		other := s.start(t, func(r *kagziv1.StartWorkflowRequest) { r.ExternalId = "order" })
		_, err = retry(func(*kagziv1.RetryWorkflowRequest) {})
		wantRefused(t, "a retry while another run has the id", err, codes.AlreadyExists, codeConflict, other)
		_, err = s.workflows().RetryWorkflow(ctx, &kagziv1.RetryWorkflowRequest{RunId: other})
		wantRefused(t, "a retry of an open run", err, codes.FailedPrecondition, codePrecondition, "PENDING")
	})
}

// bulk runs a bulk operation and returns each progress message.
func (s *Server) bulk(t testing.TB, r *kagziv1.BulkWorkflowsRequest) (all []*kagziv1.BulkWorkflowsProgress) {
	t.Helper()
	stream := fine(s.workflows().BulkWorkflows(within(t, 30*time.Second), r))(t)
	for {
		p, err := stream.Recv()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestManyRunsAreEndedAndRetriedByAFilter(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		const runs = 150
		batch := &kagziv1.StartWorkflowsRequest{}
		for i := range runs {
			batch.Requests = append(batch.Requests,
				&kagziv1.StartWorkflowRequest{WorkflowType: "t", Tags: map[string]string{"batch": fmt.Sprint(i % 3)}})
		}
		fine(s.workflows().StartWorkflows(within(t, 20*time.Second), batch))(t)
		ended := s.finished(t)
		last := func(r *kagziv1.BulkWorkflowsRequest, matched, done, failed int64) *kagziv1.BulkWorkflowsProgress {
			t.Helper()
			all := s.bulk(t, r)
			for i, p := range all {
				if p.Done+p.Failed > p.Matched || i > 0 && p.Done < all[i-1].Done {
					t.Errorf("progress %d is %v", i, p)
				}
			}
			end := all[len(all)-1]
			if end.Matched != matched || end.Done != done || end.Failed != failed {
				t.Errorf("%s ends with %v, want %d matched, %d done, %d failed", r.Action, end, matched, done, failed)
			}
			return end
		}
		byTag := func(n string) *kagziv1.ListWorkflowsRequest {
			return &kagziv1.ListWorkflowsRequest{Tags: map[string]string{"batch": n}}
		}
		last(&kagziv1.BulkWorkflowsRequest{Action: kagziv1.BulkAction_BULK_ACTION_CANCEL, Filter: byTag("0"),
			Reason: "recall", Limit: 20}, 20, 20, 0)
		last(&kagziv1.BulkWorkflowsRequest{Action: kagziv1.BulkAction_BULK_ACTION_CANCEL, Filter: byTag("0"),
			Reason: "recall"}, 50, 50, 0)
		last(&kagziv1.BulkWorkflowsRequest{Action: kagziv1.BulkAction_BULK_ACTION_TERMINATE, Filter: byTag("1")}, 50,
			50, 0)
		end := last(&kagziv1.BulkWorkflowsRequest{
			Action: kagziv1.BulkAction_BULK_ACTION_TERMINATE,
			Filter: &kagziv1.ListWorkflowsRequest{Statuses: []kagziv1.WorkflowStatus{pending, completed}}}, 51, 50, 1)
		if end.LastRunId != ended || end.LastError.GetMetadata()["status"] != "COMPLETED" {
			t.Errorf("the one that failed is told as %v", end)
		}
		for status, want := range map[kagziv1.WorkflowStatus]int{cancelled: 50, terminated: 100, pending: 0} {
			if got := len(s.find(t, &kagziv1.ListWorkflowsRequest{StatusFilter: status.Enum()})); got != want {
				t.Errorf("%d runs are %s, want %d", got, status, want)
			}
		}
		retry := &kagziv1.BulkWorkflowsRequest{Action: kagziv1.BulkAction_BULK_ACTION_RETRY,
			Filter: &kagziv1.ListWorkflowsRequest{StatusFilter: cancelled.Enum()}, Reason: "after all"}
		if end := last(retry, 50, 50, 0); end.Unchanged != 0 {
			t.Errorf("the retry ends with %v, want nothing unchanged", end)
		}
		if end := last(retry, 50, 50, 0); end.Unchanged != 50 { // a repetition starts nothing more, and says so
			t.Errorf("the repeated retry ends with %v, want 50 unchanged", end)
		}
		again := s.find(t, &kagziv1.ListWorkflowsRequest{StatusFilter: pending.Enum()})
		if len(again) != 50 || again[0].GetRetriedFromRunId() == "" || again[0].Tags["batch"] != "0" {
			t.Errorf("%d runs were tried again", len(again))
		}
		if got := s.audit(t, again[0].GetRetriedFromRunId()); len(got) != 2 || got[0] != "CancelWorkflow(recall)" ||
			!strings.HasPrefix(got[1], "RetryWorkflow(after all)") {
			t.Errorf("the audit says %q", got)
		}
		last(&kagziv1.BulkWorkflowsRequest{Action: kagziv1.BulkAction_BULK_ACTION_CANCEL, Filter: byTag("none")}, 0, 0,
			0)
		for field, r := range map[string]*kagziv1.BulkWorkflowsRequest{
			"action": {Filter: byTag("0")}, "filter": {Action: 1}, "limit": {Action: 1, Filter: byTag("0"), Limit: -1},
			"filter.workflow_type": {Action: 1, Filter: &kagziv1.ListWorkflowsRequest{WorkflowType: ptr("a b")}},
		} {
			stream := fine(s.workflows().BulkWorkflows(within(t, 20*time.Second), r))(t)
			_, err := stream.Recv()
			wantRefused(t, "bulk without a good "+field, err, codes.InvalidArgument, codeInvalid, "")
			if got := detailOf(err).Metadata["field"]; got != field {
				t.Errorf("a bad %s is refused naming %q", field, got)
			}
		}
	})
}
