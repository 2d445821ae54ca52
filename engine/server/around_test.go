package server

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

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// door is a server over the books, for calls that need no connection.
func door(b *servertest.Books) *Server {
	return New(b, nil, Options{})
}

func TestACancelTellsWhetherTheRunEndedOrItsCodeWasTold(t *testing.T) {
	until := servertest.Began.Add(time.Minute)
	b := &servertest.Books{End: engine.RunEnd{Status: engine.RunRunning, Changed: true, GraceUntil: until}}
	s := door(b)
	answer, err := s.CancelWorkflow(t.Context(), &kagziv1.CancelWorkflowRequest{RunId: servertest.AnID, Grace: durationpb.New(time.Minute), Reason: "enough"})
	p := servertest.Last[engine.EndRunParams](b)
	if err != nil || answer.Cancelled || !answer.Requested || !answer.GraceUntil.AsTime().Equal(until) || p.Grace != time.Minute || p.Reason != "enough" {
		t.Errorf("told: %v, %v, asked with %+v", answer, err, p)
	}
	if p.By.Name != "local" || p.AuditID.IsZero() {
		t.Errorf("asked by %+v, noted as %s", p.By, p.AuditID)
	}
	if s.recorder.Mark().Finished != 0 {
		t.Error("a run whose code was told counts as finished")
	}
	b.End = engine.RunEnd{Status: engine.RunCancelled, Changed: true}
	answer, err = s.CancelWorkflow(t.Context(), &kagziv1.CancelWorkflowRequest{RunId: servertest.AnID})
	if err != nil || !answer.Cancelled || answer.Requested || s.recorder.Mark().Finished != 1 {
		t.Errorf("ended: %v, %v", answer, err)
	}
}

func TestTheActorIsWhereTheCallCameFrom(t *testing.T) {
	b := &servertest.Books{}
	_, conn := serve(t, b)
	if _, err := kagziv1.NewWorkflowServiceClient(conn).PauseWorkflow(t.Context(), &kagziv1.PauseWorkflowRequest{RunId: servertest.AnID, Reason: "why"}); err != nil {
		t.Fatal(err)
	}
	p := servertest.Last[engine.SteerParams](b)
	if p.By != (engine.Actor{Name: "local", Peer: "bufconn"}) || p.Reason != "why" || p.Namespace != "default" || p.RunID.String() != servertest.AnID {
		t.Errorf("asked with %+v", p)
	}
}

func TestAContinuationIsReadWithWhatItNames(t *testing.T) {
	b := &servertest.Books{}
	answer, err := door(b).completeWorkflow(t.Context(), &kagziv1.CompleteWorkflowRequest{
		Namespace: "team", RunId: servertest.AnID, LeaseToken: aToken, ContinueAs: &kagziv1.StartWorkflowRequest{
			Input: &kagziv1.Payload{Data: []byte("in")}, RequestId: "r", ConcurrencyKey: "k", Timeouts: &kagziv1.TimeoutConfig{ExecutionTimeoutMs: 1000},
		},
	})
	p := servertest.Last[engine.CompleteRunParams](b)
	next := p.ContinueAs
	if err != nil || next == nil || answer.ContinuedAsRunId != next.ID.String() || answer.Status != kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED {
		t.Fatalf("answer %v, %v", answer, err)
	}
	if next.Namespace != "team" || next.Queue != "" || next.Type != "" || next.RequestID != "" || string(next.Input.Data) != "in" || next.Bytes != 2 ||
		next.ConcurrencyLimit != 1 || next.Timeouts.Execution != time.Second || !next.DeadlineAt.IsZero() {
		t.Errorf("next = %+v", next.Run)
	}
	answer, err = door(b).completeWorkflow(t.Context(), &kagziv1.CompleteWorkflowRequest{RunId: servertest.AnID, LeaseToken: aToken})
	if err != nil || answer.Status != kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED || answer.ContinuedAsRunId != "" {
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
		{engine.RunVerdict{Status: engine.RunPending, Handler: true, Verdict: engine.Verdict{Retry: true, RetryAt: servertest.Began}}, false},
	} {
		var log bytes.Buffer
		s := New(&servertest.Books{Verdict: c.verdict}, nil, Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		answer, err := s.failWorkflow(t.Context(), &kagziv1.FailWorkflowRequest{RunId: servertest.AnID, LeaseToken: aToken, Error: &kagziv1.ErrorDetail{}})
		if err != nil || answer.Status != kagziv1.WorkflowStatus(c.verdict.Status) {
			t.Errorf("%+v: %v, %v", c.verdict, answer, err)
		}
		if logged := strings.Contains(log.String(), "failure handler failed; no handler is started for it"); logged != c.logged {
			t.Errorf("%+v: logged %v, want %v", c.verdict, logged, c.logged)
		}
	}
}

func TestARetryIsLoggedOnceWithItsRunStepFailuresAndDelay(t *testing.T) {
	for _, c := range []struct {
		verdict engine.Verdict
		want    []string
	}{
		{engine.Verdict{Retry: true, RetryAt: servertest.Began.Add(time.Minute), Failures: 3}, []string{"step will be retried", "step=pay failures=3", "run will be retried", servertest.AnID + " failures=3"}},
		{engine.Verdict{Retry: true, RetryAt: servertest.Began.Add(time.Minute)}, nil}, // the failure was reported before
		{engine.Verdict{}, nil},
	} {
		var log bytes.Buffer
		verdict := c.verdict
		s := New(&servertest.Books{StepVerdict: verdict, Verdict: engine.RunVerdict{Status: engine.RunFailed, Verdict: verdict}}, nil, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		answer, err := s.failStep(t.Context(), &kagziv1.FailStepRequest{RunId: servertest.AnID, LeaseToken: aToken, StepId: "pay", Error: &kagziv1.ErrorDetail{}})
		if err != nil {
			t.Fatal(err)
		}
		if left := max(0, servertest.Began.Add(time.Minute).Sub(s.now())); verdict.Retry != (answer.RetryIn != nil) || answer.RetryIn.AsDuration() != left && verdict.Retry {
			t.Errorf("%+v: the retry is told to be due in %v, want %v", verdict, answer.RetryIn, left)
		}
		if _, err := s.failWorkflow(t.Context(), &kagziv1.FailWorkflowRequest{RunId: servertest.AnID, LeaseToken: aToken, Error: &kagziv1.ErrorDetail{}}); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%+v: %q is not in the log:\n%s", verdict, want, log.String())
			}
		}
		if n := strings.Count(log.String(), "run="+servertest.AnID); n != strings.Count(log.String(), "delay=") || (c.want != nil) != (n == 2) || c.want == nil && n != 0 {
			t.Errorf("%+v: the run is named %d times:\n%s", verdict, n, log.String())
		}
	}
}

func TestABeginningIsTakenAsItIsToldUnlessItCannotBe(t *testing.T) {
	for what, c := range map[string]struct {
		told *timestamppb.Timestamp
		want time.Time
	}{
		"of now":                         {timestamppb.New(servertest.Began), servertest.Began},
		"of a day and an hour ago":       {timestamppb.New(servertest.Began.Add(-25 * time.Hour)), servertest.Began.Add(-25 * time.Hour)},
		"of a clock that is ahead":       {timestamppb.New(servertest.Began.Add(time.Hour)), servertest.Began.Add(time.Hour)},
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
	request := &kagziv1.AwaitSignalRequest{RunId: servertest.AnID, LeaseToken: aToken, StepName: "s", SignalName: "go", Timeout: durationpb.New(time.Second), Hold: true}
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
		got, err := door(b).awaitSignal(t.Context(), request)
		if !proto.Equal(got, c.want) || engine.KindOf(err) != c.kind {
			t.Errorf("%+v is answered with %v, %v, want %v", c.awaited, got, err, c.want)
		}
		if p := servertest.Last[engine.AwaitSignalParams](b); p.Timeout != time.Second || !p.Hold || p.Signal != "go" || p.ID.IsZero() {
			t.Errorf("asked with %+v", p)
		}
	}
}

func TestAChildIsStartedInItsParentsNamespace(t *testing.T) {
	b := &servertest.Books{}
	s := door(b)
	ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{})
	answer, err := s.startChild(ctx, &kagziv1.StartChildRequest{
		StepName: "c", LeaseToken: aToken, ParentClosePolicy: kagziv1.ParentClosePolicy_PARENT_CLOSE_POLICY_CANCEL,
		Child: &kagziv1.StartWorkflowRequest{Namespace: "team", WorkflowType: "t", ParentRunId: servertest.AnID, RequestId: "dropped"},
	})
	p := servertest.Last[engine.StartChildParams](b)
	if err != nil || answer.ChildRunId != p.Child.ID.String() || answer.StepId != p.ID.String() || answer.Step.GetName() != "c" {
		t.Fatalf("answer %v, %v", answer, err)
	}
	if p.Lease.Namespace != "team" || p.Lease.RunID.String() != servertest.AnID || p.Child.Namespace != "team" || p.Child.Queue != "default" ||
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
		s := door(b)
		s.store = farAway{b}
		begun := time.Now()
		answer, err := s.awaitChildren(t.Context(), &kagziv1.AwaitChildrenRequest{RunId: servertest.AnID, LeaseToken: aToken, ChildRunIds: want})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, run := range answer.Finished {
			got = append(got, run.RunId)
		}
		if took := time.Since(begun); took != 3*time.Second || !slices.Equal(got, want) {
			t.Errorf("%d of %d children, in their order: %t, after %v; want all, as asked for, after 3s", len(got), len(want), slices.Equal(got, want), took)
		}
	})
}

func TestChildrenAreAnsweredInTheOrderAskedForAsFarAsThereIsRoom(t *testing.T) {
	b := &servertest.Books{}
	var ids []string
	for i := range 4 {
		id := servertest.SomeID(i)
		output := engine.Payload{Data: make([]byte, 1500<<10)}
		b.Runs = append(b.Runs, engine.Run{ID: id, Status: engine.RunCompleted, Input: output, Output: output})
		b.Children = append(b.Children, engine.Step{Name: fmt.Sprint(i), ChildRunID: id, Status: engine.StepCompleted, Output: output})
		ids = append(ids, id.String())
	}
	slices.Reverse(ids)
	b.Runs = slices.Delete(b.Runs, 3, 4) // the first asked for is gone
	answer, err := door(b).awaitChildren(t.Context(), &kagziv1.AwaitChildrenRequest{
		RunId: servertest.AnID, LeaseToken: aToken, ChildRunIds: append(ids, ids[0]), Any: true, Hold: true,
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
	if answer, err := door(b).awaitChildren(t.Context(), &kagziv1.AwaitChildrenRequest{RunId: servertest.AnID, LeaseToken: aToken, ChildRunIds: ids}); err != nil ||
		len(answer.Steps)+len(answer.Finished) != 0 {
		t.Errorf("parked: %v, %v", answer, err)
	}
}

func TestANoteGoesByItsTokenAlone(t *testing.T) {
	b := &servertest.Books{}
	for _, namespace := range []string{"", "team"} {
		if _, err := door(b).setNote(t.Context(), namespace, &kagziv1.SetNote{RunId: servertest.AnID, LeaseToken: aToken, Note: "half done"}); err != nil {
			t.Fatal(err)
		}
		if p := servertest.Last[engine.SetNoteParams](b); p.Lease.Namespace != namespace || p.Note != "half done" || p.Lease.RunID.String() != servertest.AnID {
			t.Errorf("asked with %+v", p)
		}
	}
}

func TestAnOverrideSaysWhoAndWhy(t *testing.T) {
	b := &servertest.Books{}
	answer, err := door(b).OverrideStep(t.Context(), &kagziv1.OverrideStepRequest{
		RunId: servertest.AnID, StepName: "s", Reason: "why", Result: &kagziv1.OverrideStepRequest_Error{Error: &kagziv1.ErrorDetail{Message: "m"}},
	})
	p := servertest.Last[engine.OverrideStepParams](b)
	if err != nil || answer.Step.OverriddenBy != "local" || answer.Step.OverrideReason != "why" || p.Output != nil || p.Failure.Message != "m" {
		t.Errorf("%v, %v, asked with %+v", answer, err, p)
	}
	if _, err = door(b).OverrideStep(t.Context(), &kagziv1.OverrideStepRequest{
		RunId: servertest.AnID, StepName: "s", Reason: "why", Result: &kagziv1.OverrideStepRequest_Output{Output: &kagziv1.Payload{Data: []byte("o")}},
	}); err != nil {
		t.Fatal(err)
	}
	if p := servertest.Last[engine.OverrideStepParams](b); p.Failure != nil || string(p.Output.Data) != "o" {
		t.Errorf("asked with %+v", p)
	}
}

func TestARepeatedSignalIsToldApart(t *testing.T) {
	for id, want := range map[string]bool{"first": false, "again": true} {
		answer, err := door(&servertest.Books{}).SignalWorkflow(t.Context(), &kagziv1.SignalWorkflowRequest{RunId: servertest.AnID, Name: "go", SignalId: id})
		if err != nil || answer.AlreadyDelivered != want {
			t.Errorf("%s: %v, %v", id, answer, err)
		}
	}
}

func TestKeepRoundTrips(t *testing.T) {
	keep := map[string]*durationpb.Duration{}
	for name := range wire.Outcomes {
		keep[name] = durationpb.New(time.Hour + time.Duration(len(name))*time.Minute)
	}
	b := &servertest.Books{}
	answer, err := door(b).CreateNamespace(t.Context(), &kagziv1.CreateNamespaceRequest{Namespace: "team", Keep: keep, Retention: durationpb.New(time.Hour)})
	if err != nil || !answer.Namespace.Enabled || answer.Namespace.Retention.AsDuration() != time.Hour || len(answer.Namespace.Keep) != 5 {
		t.Fatalf("%v, %v", answer, err)
	}
	for name, d := range keep {
		if !proto.Equal(answer.Namespace.Keep[name], d) {
			t.Errorf("%s is kept %s, want %s", name, answer.Namespace.Keep[name], d)
		}
	}
}

func TestAnUpdateOfANamespaceChangesOnlyWhatItNames(t *testing.T) {
	was := engine.Namespace{
		Name: "team", DisplayName: "Team", Description: "d", Enabled: true, Retention: time.Hour, FailureQueue: "q",
		Keep: map[engine.RunStatus]time.Duration{engine.RunFailed: time.Hour},
	}
	for _, c := range []struct {
		what   string
		call   func(*Server) error
		change func(*engine.Namespace)
		method string
	}{
		{"a name", func(s *Server) error {
			_, err := s.UpdateNamespace(context.Background(), &kagziv1.UpdateNamespaceRequest{Namespace: "team", DisplayName: proto.String("T")})
			return err
		}, func(n *engine.Namespace) { n.DisplayName = "T" }, "UpdateNamespace"},
		{"all that can be taken away", func(s *Server) error {
			_, err := s.UpdateNamespace(context.Background(), &kagziv1.UpdateNamespaceRequest{
				Namespace: "team", Description: proto.String(""), Retention: &durationpb.Duration{}, Keep: &kagziv1.Keep{}, FailureTaskQueue: proto.String(""),
			})
			return err
		}, func(n *engine.Namespace) { n.Description, n.Retention, n.Keep, n.FailureQueue = "", 0, nil, "" }, "UpdateNamespace"},
		{"off", func(s *Server) error {
			_, err := s.DisableNamespace(context.Background(), &kagziv1.DisableNamespaceRequest{Namespace: "team"})
			return err
		}, func(n *engine.Namespace) { n.Enabled = false }, "DisableNamespace"},
		{"on", func(s *Server) error {
			_, err := s.EnableNamespace(context.Background(), &kagziv1.EnableNamespaceRequest{Namespace: "team"})
			return err
		}, func(*engine.Namespace) {}, "EnableNamespace"},
	} {
		b := &servertest.Books{Namespaces: map[string]engine.Namespace{"team": was}}
		if err := c.call(door(b)); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		want := was
		c.change(&want)
		p := servertest.Last[engine.NamespaceParams](b)
		if diff := cmp.Diff(want, p.Namespace); diff != "" || p.Method != c.method {
			t.Errorf("%s by %s:\n%s", c.what, p.Method, diff)
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
		"an hour":                {&kagziv1.SleepRequest{Duration: durationpb.New(time.Hour)}, ""},
		"the longest":            {&kagziv1.SleepRequest{Duration: durationpb.New(most)}, ""},
		"longer":                 {&kagziv1.SleepRequest{Duration: durationpb.New(most + time.Millisecond)}, "duration"},
		"nothing":                {&kagziv1.SleepRequest{}, "duration"},
		"until long ago":         {&kagziv1.SleepRequest{Until: moment(-most)}, ""},
		"until the farthest":     {&kagziv1.SleepRequest{Until: moment(most)}, ""},
		"until later":            {&kagziv1.SleepRequest{Until: moment(most + time.Hour)}, "until"},
		"an hour, and until one": {&kagziv1.SleepRequest{Duration: durationpb.New(time.Hour), Until: moment(time.Hour)}, "until"},
	} {
		b := &servertest.Books{}
		c.request.RunId, c.request.LeaseToken, c.request.StepId = servertest.AnID, aToken, "nap"
		_, err := door(b).sleep(t.Context(), c.request)
		if field := servertest.FieldOf(err); field != c.field || b.Changes() != 1 && c.field == "" || b.Changes() != 0 && c.field != "" {
			t.Errorf("%s: %v after %d changes, want it to name %q", what, err, b.Changes(), c.field)
		}
	}
	for n, field := range map[int]string{0: "child_run_ids", 1: "", maxAwaited: "", maxAwaited + 1: "child_run_ids"} {
		b, ids := &servertest.Books{}, make([]string, n)
		for i := range ids {
			ids[i] = servertest.SomeID(i).String()
		}
		_, err := door(b).awaitChildren(t.Context(), &kagziv1.AwaitChildrenRequest{RunId: servertest.AnID, LeaseToken: aToken, ChildRunIds: ids})
		if servertest.FieldOf(err) != field {
			t.Errorf("a wait for %d children: %v, want it to name %q", n, err, field)
		}
	}
}

func TestAKeyIsReadAsFarAsItsMakerDecides(t *testing.T) {
	globs := make([]string, engine.MaxKeyGlobs+1)
	for i := range globs {
		globs[i] = fmt.Sprint("q", i)
	}
	for what, c := range map[string]struct {
		key   *kagziv1.Key
		field string
	}{
		"with an id":         {&kagziv1.Key{KeyId: servertest.AnID}, "key.key_id"},
		"made before":        {&kagziv1.Key{CreatedAt: timestamppb.Now()}, "key.created_at"},
		"used before":        {&kagziv1.Key{LastUsedAt: timestamppb.Now()}, "key.last_used_at"},
		"revoked":            {&kagziv1.Key{RevokedAt: timestamppb.Now()}, "key.revoked_at"},
		"for many queues":    {&kagziv1.Key{TaskQueues: globs}, "key.task_queues"},
		"for many types":     {&kagziv1.Key{WorkflowTypes: globs}, "key.workflow_types"},
		"without a real end": {&kagziv1.Key{ExpiresAt: &timestamppb.Timestamp{Seconds: -1}}, "key.expires_at"},
	} {
		if _, err := keyOf(c.key); servertest.FieldOf(err) != c.field {
			t.Errorf("a key %s: %v, want it to name %s", what, err, c.field)
		}
	}
	got, err := keyOf(&kagziv1.Key{
		Name: "n", Role: kagziv1.KeyRole_KEY_ROLE_WORKER, Namespaces: []string{"b", "a", "b"}, TaskQueues: globs[1:], WorkflowTypes: []string{"t", "t"},
		ExpiresAt: timestamppb.New(servertest.Began),
	})
	want := engine.APIKey{Name: "n", Role: engine.RoleWorker, Namespaces: []string{"a", "b"}, Queues: globs[1:], Types: []string{"t"}, ExpiresAt: servertest.Began}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("it is read otherwise, %v:\n%s", err, diff)
	}
}

func TestAPreviewShowsTheNextTicks(t *testing.T) {
	now := time.Now()
	soon, err := door(&servertest.Books{}).PreviewSchedule(t.Context(), &kagziv1.PreviewScheduleRequest{CronExpr: "* * * * *"})
	if err != nil || len(soon.Ticks) != 5 || !soon.Ticks[0].AsTime().After(now) || soon.Ticks[0].AsTime().Sub(now) > 2*time.Minute {
		t.Errorf("of every minute, from now on: %v, %v", soon, err)
	}
	after := timestamppb.New(servertest.Began)
	answer, err := door(&servertest.Books{}).PreviewSchedule(t.Context(), &kagziv1.PreviewScheduleRequest{CronExpr: "0 9 * * *", TimeZone: "Europe/Berlin", After: after})
	if err != nil || len(answer.Ticks) != 5 || !answer.Ticks[0].AsTime().Equal(time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)) {
		t.Errorf("%v, %v", answer, err)
	}
	answer, err = door(&servertest.Books{}).PreviewSchedule(t.Context(), &kagziv1.PreviewScheduleRequest{CronExpr: "0 0 0 1 1 ? 2027", Count: 100, After: after})
	if err != nil || len(answer.Ticks) != 1 {
		t.Errorf("an expression with one tick left: %v, %v", answer, err)
	}
}
