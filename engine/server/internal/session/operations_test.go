package session

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestAContinuationIsReadWithWhatItNames(t *testing.T) {
	b := &servertest.Books{}
	answer, err := newTestService(b).completeWorkflow(t.Context(), engine.Sequenced{}, &kagziv1.CompleteWorkflowRequest{
		Namespace: "team", RunId: servertest.AnID, LeaseToken: servertest.AToken,
		ContinueAs: &kagziv1.StartWorkflowRequest{
			Input: &kagziv1.Payload{Data: []byte("in")}, RequestId: "r", ConcurrencyKey: "k",
			Timeouts: &kagziv1.TimeoutConfig{ExecutionTimeoutMs: 1000},
		},
	})
	p := servertest.Last[engine.CompleteRunParams](b)
	next := p.ContinueAs
	if err != nil || next == nil || answer.ContinuedAsRunId != next.ID.String() ||
		answer.Status != kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED {
		t.Fatalf("answer %v, %v", answer, err)
	}
	if next.Namespace != "team" || next.Queue != "" || next.Type != "" || next.RequestID != "" ||
		string(next.Input.Data) != "in" || next.Bytes != 2 ||
		next.ConcurrencyLimit != 1 || next.Timeouts.Execution != time.Second || !next.DeadlineAt.IsZero() {
		t.Errorf("next = %+v", next.Run)
	}
	answer, err = newTestService(b).completeWorkflow(
		t.Context(), engine.Sequenced{}, &kagziv1.CompleteWorkflowRequest{
			RunId: servertest.AnID, LeaseToken: servertest.AToken})
	if err != nil || answer.Status != kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED ||
		answer.ContinuedAsRunId != "" {
		t.Errorf("a run that was to be cancelled: %v, %v", answer, err)
	}
}

func TestAFailedHandlerIsLogged(t *testing.T) {
	for _, c := range []struct {
		verdict engine.RunVerdict
		logged  bool
	}{
		{engine.RunVerdict{Status: engine.RunFailed, Handler: true}, true},
		{engine.RunVerdict{Status: engine.RunFailed}, false},
		{engine.RunVerdict{Status: engine.RunCancelled, Handler: true}, false},
		{engine.RunVerdict{Status: engine.RunPending, Handler: true,
			Verdict: engine.Verdict{Retry: true, RetryAt: servertest.Began}}, false},
	} {
		var log bytes.Buffer
		s := newTestService(&servertest.Books{Verdict: c.verdict})
		s.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		answer, err := s.failWorkflow(t.Context(), engine.Sequenced{},
			&kagziv1.FailWorkflowRequest{RunId: servertest.AnID, LeaseToken: servertest.AToken,
				Error: &kagziv1.ErrorDetail{}})
		if err != nil || answer.Status != kagziv1.WorkflowStatus(c.verdict.Status) {
			t.Errorf("%+v: %v, %v", c.verdict, answer, err)
		}
		if logged := strings.Contains(log.String(),
			"failure handler failed; no handler is started for it"); logged != c.logged {
			t.Errorf("%+v: logged %v, want %v", c.verdict, logged, c.logged)
		}
	}
}

func TestARetryIsLoggedOnceWithItsRunStepFailuresAndDelay(t *testing.T) {
	for _, c := range []struct {
		verdict engine.Verdict
		want    []string
	}{
		{engine.Verdict{Retry: true, RetryAt: servertest.Began.Add(time.Minute), Failures: 3},
			[]string{"step will be retried", "step=pay failures=3", "run will be retried",
				servertest.AnID + " failures=3"}},
		// the failure was reported before
		{engine.Verdict{Retry: true, RetryAt: servertest.Began.Add(time.Minute)}, nil},
		{engine.Verdict{}, nil},
	} {
		var log bytes.Buffer
		verdict := c.verdict
		s := newTestService(&servertest.Books{StepVerdict: verdict,
			Verdict: engine.RunVerdict{Status: engine.RunFailed, Verdict: verdict}})
		s.log = slog.New(slog.NewTextHandler(&log, nil))
		answer, err := s.failStep(t.Context(), engine.Sequenced{},
			&kagziv1.FailStepRequest{RunId: servertest.AnID, LeaseToken: servertest.AToken, StepId: "pay",
				Error: &kagziv1.ErrorDetail{}})
		if err != nil {
			t.Fatal(err)
		}
		if left := max(0, servertest.Began.Add(time.Minute).Sub(
			s.store.Now())); verdict.Retry != (answer.RetryIn != nil) || answer.RetryIn.AsDuration() != left &&
			verdict.Retry {
			t.Errorf("%+v: the retry is told to be due in %v, want %v", verdict, answer.RetryIn, left)
		}
		if _, err := s.failWorkflow(t.Context(), engine.Sequenced{},
			&kagziv1.FailWorkflowRequest{RunId: servertest.AnID, LeaseToken: servertest.AToken,
				Error: &kagziv1.ErrorDetail{}}); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%+v: %q is not in the log:\n%s", verdict, want, log.String())
			}
		}
		if n := strings.Count(log.String(), "run="+servertest.AnID); n != strings.Count(log.String(), "delay=") ||
			(c.want != nil) != (n == 2) || c.want == nil && n != 0 {
			t.Errorf("%+v: the run is named %d times:\n%s", verdict, n, log.String())
		}
	}
}

func TestAStartTimeIsAcceptedUnlessItIsImpossible(t *testing.T) {
	for what, c := range map[string]struct {
		told *timestamppb.Timestamp
		want time.Time
	}{
		"of now": {timestamppb.New(servertest.Began), servertest.Began},
		"of a day and an hour ago": {timestamppb.New(servertest.Began.Add(-25 * time.Hour)),
			servertest.Began.Add(-25 * time.Hour)},
		"of a clock that is ahead": {timestamppb.New(servertest.Began.Add(time.Hour)),
			servertest.Began.Add(time.Hour)},
		"that is not told":               {nil, time.Time{}},
		"of a clock that was never set":  {timestamppb.New(time.Unix(5, 0)), time.Time{}},
		"of a clock that lies far ahead": {timestamppb.New(servertest.Began.Add(400 * 24 * time.Hour)), time.Time{}},
	} {
		if got, err := startedOf(c.told, servertest.Began); err != nil || !got.Equal(c.want) {
			t.Errorf("a beginning %s is %s, %v, want %s", what, got, err, c.want)
		}
	}
}

func TestASignalIsAnsweredByWhatItsStepBecame(t *testing.T) {
	request := &kagziv1.AwaitSignalRequest{RunId: servertest.AnID, LeaseToken: servertest.AToken, StepName: "s",
		SignalName: "go", Timeout: durationpb.New(time.Second), Hold: true}
	done := engine.Step{Name: "s", Kind: engine.StepSignal, Status: engine.StepCompleted}
	late, failed := done, done
	late.TimedOut, failed.Status = true, engine.StepFailed
	for _, c := range []struct {
		awaited engine.AwaitedSignal
		want    *kagziv1.AwaitSignalResponse
		kind    engine.Kind
	}{
		{engine.AwaitedSignal{Waiting: true}, &kagziv1.AwaitSignalResponse{}, 0},
		{engine.AwaitedSignal{Step: done}, &kagziv1.AwaitSignalResponse{Payload: &kagziv1.Payload{}}, 0},
		{engine.AwaitedSignal{Step: late}, &kagziv1.AwaitSignalResponse{TimedOut: true}, 0},
		{engine.AwaitedSignal{Step: failed}, nil, engine.KindConflict},
	} {
		b := &servertest.Books{Awaited: c.awaited}
		got, err := newTestService(b).awaitSignal(t.Context(), engine.Sequenced{}, request)
		if !proto.Equal(got, c.want) || engine.KindOf(err) != c.kind {
			t.Errorf("%+v is answered with %v, %v, want %v", c.awaited, got, err, c.want)
		}
		if p := servertest.Last[engine.AwaitSignalParams](b); p.Timeout != time.Second || !p.Hold || p.Signal != "go" ||
			p.ID.IsZero() {
			t.Errorf("asked with %+v", p)
		}
	}
}

func TestAChildIsStartedInItsParentsNamespace(t *testing.T) {
	b := &servertest.Books{}
	s := newTestService(b)
	ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{})
	answer, err := s.startChild(ctx, engine.Sequenced{}, &kagziv1.StartChildRequest{
		StepName: "c", LeaseToken: servertest.AToken,
		ParentClosePolicy: kagziv1.ParentClosePolicy_PARENT_CLOSE_POLICY_CANCEL,
		Child: &kagziv1.StartWorkflowRequest{Namespace: "team", WorkflowType: "t", ParentRunId: servertest.AnID,
			RequestId: "dropped"},
	})
	p := servertest.Last[engine.StartChildParams](b)
	if err != nil || answer.ChildRunId != p.Child.ID.String() || answer.StepId != p.ID.String() ||
		answer.Step.GetName() != "c" {
		t.Fatalf("answer %v, %v", answer, err)
	}
	if p.Lease.Namespace != "team" || p.Lease.RunID.String() != servertest.AnID || p.Child.Namespace != "team" ||
		p.Child.Queue != "default" ||
		p.Child.ParentClose != engine.CloseCancel || p.Child.RequestID != "" || s.recorder.Mark().Started != 1 {
		t.Errorf("asked with %+v", p)
	}
}

// farAway is books to which the way takes a second.
type farAway struct{ *servertest.Books }

func (f farAway) GetRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error) {
	time.Sleep(time.Second)
	return f.Books.GetRun(ctx, namespace, id)
}

func TestManyChildrenAreReadSeveralAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &servertest.Books{}
		var want []string
		for i := range 2*readsAtOnce + 1 {
			id := servertest.SomeID(i)
			b.Runs = append(b.Runs, engine.Run{ID: id, Status: engine.RunCompleted})
			b.Children = append(b.Children, engine.Step{ChildRunID: id, Status: engine.StepCompleted})
			want = append(want, id.String())
		}
		s := newTestService(farAway{b})
		begun := time.Now()
		answer, err := s.awaitChildren(t.Context(), engine.Sequenced{},
			&kagziv1.AwaitChildrenRequest{RunId: servertest.AnID, LeaseToken: servertest.AToken, ChildRunIds: want})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, run := range answer.Finished {
			got = append(got, run.RunId)
		}
		if took := time.Since(begun); took != 3*time.Second || !slices.Equal(got, want) {
			t.Errorf("%d of %d children, in their order: %t, after %v; want all, as asked for, after 3s", len(got),
				len(want), slices.Equal(got, want), took)
		}
	})
}

func TestChildrenAreAnsweredInOrderAsFarAsTheyFit(t *testing.T) {
	b := &servertest.Books{}
	var ids []string
	for i := range 4 {
		id := servertest.SomeID(i)
		output := engine.Payload{Data: make([]byte, 1500<<10)}
		b.Runs = append(b.Runs, engine.Run{ID: id, Status: engine.RunCompleted, Input: output, Output: output})
		b.Children = append(b.Children, engine.Step{
			Name: fmt.Sprint(i), ChildRunID: id, Status: engine.StepCompleted, Output: output})
		ids = append(ids, id.String())
	}
	slices.Reverse(ids)
	b.Runs = slices.Delete(b.Runs, 3, 4) // the first asked for is gone
	answer, err := newTestService(b).awaitChildren(t.Context(), engine.Sequenced{}, &kagziv1.AwaitChildrenRequest{
		RunId: servertest.AnID, LeaseToken: servertest.AToken, ChildRunIds: append(ids, ids[0]), Any: true, Hold: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	var names, finished []string
	for _, step := range answer.Steps {
		names = append(names, step.Name)
	}
	for _, run := range answer.Finished {
		finished = append(finished, run.RunId)
		if run.Output == nil || run.Input != nil {
			t.Error("a finished child comes without its output, or with its input")
		}
	}
	if !slices.Equal(names, []string{"3", "2"}) || !slices.Equal(finished, ids[1:3]) {
		t.Errorf("steps %v and runs %v, want two of each, the last first", names, finished)
	}
	if p := servertest.Last[engine.AwaitChildrenParams](b); len(p.Children) != 4 || !p.Any || !p.Hold {
		t.Errorf("asked with %+v", p)
	}
	b.Children = nil
	if answer, err := newTestService(b).awaitChildren(
		t.Context(), engine.Sequenced{}, &kagziv1.AwaitChildrenRequest{
			RunId: servertest.AnID, LeaseToken: servertest.AToken, ChildRunIds: ids}); err != nil ||
		len(answer.Steps)+len(answer.Finished) != 0 {
		t.Errorf("parked: %v, %v", answer, err)
	}
}

func TestANoteGoesByItsTokenAlone(t *testing.T) {
	b := &servertest.Books{}
	for _, namespace := range []string{"", "team"} {
		if _, err := newTestService(b).setNote(t.Context(), engine.Sequenced{}, namespace,
			&kagziv1.SetNote{RunId: servertest.AnID, LeaseToken: servertest.AToken, Note: "half done"}); err != nil {
			t.Fatal(err)
		}
		if p := servertest.Last[engine.SetNoteParams](b); p.Lease.Namespace != namespace || p.Note != "half done" ||
			p.Lease.RunID.String() != servertest.AnID {
			t.Errorf("asked with %+v", p)
		}
	}
}

func TestAWaitIsRefusedBeyondItsLimits(t *testing.T) {
	now := time.Now()
	moment := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(now.Add(d)) }
	const most = engine.MaxDelay
	for what, c := range map[string]struct {
		request *kagziv1.SleepRequest
		field   string // the answer names it; empty: it counts
	}{
		"an hour":     {&kagziv1.SleepRequest{Duration: durationpb.New(time.Hour)}, ""},
		"the longest": {&kagziv1.SleepRequest{Duration: durationpb.New(most)}, ""},
		"longer": {&kagziv1.SleepRequest{Duration: durationpb.New(most + time.Millisecond)},
			"duration"},
		"nothing":            {&kagziv1.SleepRequest{}, "duration"},
		"until long ago":     {&kagziv1.SleepRequest{Until: moment(-most)}, ""},
		"until the farthest": {&kagziv1.SleepRequest{Until: moment(most)}, ""},
		"until later":        {&kagziv1.SleepRequest{Until: moment(most + time.Hour)}, "until"},
		"an hour, and until one": {&kagziv1.SleepRequest{
			Duration: durationpb.New(time.Hour), Until: moment(time.Hour)}, "until"},
	} {
		b := &servertest.Books{}
		c.request.RunId, c.request.LeaseToken, c.request.StepId = servertest.AnID, servertest.AToken, "nap"
		_, err := newTestService(b).sleep(t.Context(), engine.Sequenced{}, c.request, false)
		if field := servertest.FieldOf(err); field != c.field || b.Changes() != 1 && c.field == "" ||
			b.Changes() != 0 && c.field != "" {
			t.Errorf("%s: %v after %d changes, want it to name %q", what, err, b.Changes(), c.field)
		}
	}
	for n, field := range map[int]string{0: "child_run_ids", 1: "", maxAwaited: "", maxAwaited + 1: "child_run_ids"} {
		b, ids := &servertest.Books{}, make([]string, n)
		for i := range ids {
			ids[i] = servertest.SomeID(i).String()
		}
		_, err := newTestService(b).awaitChildren(
			t.Context(), engine.Sequenced{}, &kagziv1.AwaitChildrenRequest{
				RunId: servertest.AnID, LeaseToken: servertest.AToken, ChildRunIds: ids})
		if servertest.FieldOf(err) != field {
			t.Errorf("a wait for %d children: %v, want it to name %q", n, err, field)
		}
	}
}
