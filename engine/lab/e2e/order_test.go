package e2e

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// ordered registers a worker that knows the order of results.
func ordered(r *kagziv1.RegisterRequest) { r.BuildId = "build-1" }

// taken opens a session of a worker and gives it a new run.
func (s *Server) taken(t *testing.T, change ...func(*kagziv1.RegisterRequest)) (*sessionWorker, *kagziv1.Task) {
	t.Helper()
	w := s.session(t, change...)
	w.grant(1)
	s.start(t)
	return w, receive(t, "a task", w.tasks)
}

func awaiting(task *kagziv1.Task, step, signal string) *kagziv1.SessionRequest {
	ask := &kagziv1.AwaitSignalRequest{
		RunId: task.RunId, LeaseToken: task.LeaseToken, StepName: step, SignalName: signal, Hold: true}
	return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_AwaitSignal{AwaitSignal: ask}}
}

func (s *Server) signal(t *testing.T, run, name, data string) {
	t.Helper()
	fine(s.workflows().SignalWorkflow(within(t, 20*time.Second),
		&kagziv1.SignalWorkflowRequest{RunId: run, Name: name, Payload: text(data)}))(t)
}

// The holder is told on its own server and on another, and the row stays as it is until it asks.
func TestAWorkerIsToldAtOnceWhatItsRunWaitsFor(t *testing.T) {
	eachBackend(t, func(t *testing.T, url string) {
		s := New(t, openStore(t, url), patient)
		others := []*Server{s}
		if strings.HasPrefix(url, "postgres:") {
			others = append(others, New(t, openStore(t, url), patient))
		}
		w, task := s.taken(t, ordered)
		for n, from := range others {
			step := "wait:" + itoa(n)
			if a := w.do(awaiting(task, step, "go")).GetAwaitedSignal(); a == nil || a.Payload != nil || a.Settled != 0 {
				t.Fatalf("the wait is answered with %v", a)
			}
			from.signal(t, task.RunId, "go", "now")
			hint := receive(t, "a hint that a wait is over", w.waits)
			if hint.RunId != task.RunId || hint.LeaseToken != task.LeaseToken || hint.StepName != step {
				t.Errorf("hint %v, want step %s of the run", hint, step)
			}
			if row := s.steps(t, task.RunId)[n]; row.Status != kagziv1.StepStatus_STEP_STATUS_RUNNING {
				t.Errorf("the wait is %s before its holder asks", row.Status)
			}
			a := w.do(awaiting(task, step, "go")).GetAwaitedSignal()
			if string(a.GetPayload().GetData()) != "now" || a.Settled != int64(n+1) {
				t.Errorf("the answer is %v, want the signal with place %d", a, n+1)
			}
		}
		child := w.do(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_StartChild{
			StartChild: &kagziv1.StartChildRequest{StepName: "kid", LeaseToken: task.LeaseToken,
				Child: &kagziv1.StartWorkflowRequest{WorkflowType: "kid", ParentRunId: task.RunId}}}}).GetStartedChild()
		nurse := others[len(others)-1].register(t, func(r *kagziv1.RegisterRequest) { r.WorkflowTypes = []string{"kid"} })
		nurse.complete(t, nurse.take(t), "grown up")
		if hint := receive(t, "a hint that the child has ended", w.waits); hint.StepName != "kid" {
			t.Errorf("hint %v, want the child's step", hint)
		}
		history := fine(s.workers().GetHistory(within(t, 20*time.Second),
			&kagziv1.GetHistoryRequest{RunId: task.RunId}))(t).History
		if kid := history[len(history)-1]; kid.Status != kagziv1.StepStatus_STEP_STATUS_RUNNING || kid.Output != nil {
			t.Errorf("the history shows the child as %s before the holder asks", kid.Status)
		}
		list := s.steps(t, task.RunId)
		if kid := list[len(list)-1]; kid.Settled != -1 || kid.ChildType != "kid" {
			t.Errorf("the list shows the child %v, want its type, and that the holder does not know its end", kid)
		}
		ended := w.do(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_AwaitChildren{
			AwaitChildren: &kagziv1.AwaitChildrenRequest{
				RunId: task.RunId, LeaseToken: task.LeaseToken, ChildRunIds: []string{child.GetChildRunId()}}}})
		steps := ended.GetAwaitedChildren().GetSteps()
		if len(steps) != 1 || steps[0].Settled != int64(len(others)+1) || string(steps[0].Output.Data) != "grown up" {
			t.Errorf("the wait for the child is answered with %v", ended)
		}
	})
}

func TestASignalThatTheCodeNeverGotReachesTheNextRun(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		w, task := s.taken(t, ordered)
		s.signal(t, task.RunId, "stop", "please")
		s.signal(t, task.RunId, "read", "x")
		for _, name := range []string{"stop", "read"} {
			if a := w.do(awaiting(task, name, name)); a.GetAwaitedSignal().GetPayload() == nil {
				t.Fatalf("wait for %s: %v", name, a)
			}
		}
		w.grant(1)
		end := w.do(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_CompleteWorkflow{
			CompleteWorkflow: &kagziv1.CompleteWorkflowRequest{RunId: task.RunId, LeaseToken: task.LeaseToken,
				ContinueAs: &kagziv1.StartWorkflowRequest{Input: text("next")}, Unreceived: []string{"stop"}}}})
		next := receive(t, "the next run", w.tasks)
		if next.RunId != end.GetCompletedWorkflow().GetContinuedAsRunId() {
			t.Fatalf("task of %s, want of the next run: %v", next.RunId, end)
		}
		if a := w.do(awaiting(next, "stop", "stop")).GetAwaitedSignal(); string(a.GetPayload().GetData()) != "please" {
			t.Errorf("the next run gets %v, want the signal", a)
		}
		s.signal(t, next.RunId, "late", "1")
		s.signal(t, next.RunId, "late", "2")
		w.do(w.runDone(next, "done"))
		if n := s.await(t, next.RunId).UnreadSignals; n != 2 {
			t.Errorf("%d unread signals, want 2", n)
		}
		if n := s.get(t, task.RunId).UnreadSignals; n != 0 {
			t.Errorf("%d unread signals of the run that continued, want none", n)
		}
	})
}

// A worker without a build id expects that a sleep ends its lease, as older ones do.
func TestASleepThatIsOverKeepsTheLeaseOfAWorkerThatKnowsTheOrder(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		past := func(task *kagziv1.Task, name string) *kagziv1.SessionRequest {
			return &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Sleep{Sleep: &kagziv1.SleepRequest{
				RunId: task.RunId, LeaseToken: task.LeaseToken, StepName: proto.String(name), Branch: "1",
				Until: timestamppb.New(time.Now().Add(-time.Hour))}}}
		}
		w, task := s.taken(t, ordered)
		if a := w.do(past(task, "nap")); a.GetSleeping().GetSettled() != 1 {
			t.Fatalf("a sleep that is over is answered with %v", a)
		}
		if a := w.do(w.stepDone(task, "pay", "paid")).GetCompletedStep(); a.GetStep().GetSettled() != 2 {
			t.Errorf("the step after it is answered with %v", a)
		}
		w.do(w.runDone(task, "done"))
		row := s.steps(t, task.RunId)[0]
		if row.Settled != 1 || row.Branch != "1" || row.Status != kagziv1.StepStatus_STEP_STATUS_COMPLETED {
			t.Errorf("row %v, want the completed sleep of branch 1", row)
		}
		w.hangUp()

		w, task = s.taken(t)
		w.grant(1)
		if a := w.do(past(task, "nap")); a.GetSleeping() == nil {
			t.Fatalf("a sleep of an older worker: %v", a)
		}
		again := receive(t, "the run again", w.tasks)
		if again.RunId != task.RunId || again.LeaseToken == task.LeaseToken || again.History[0].Settled != 1 {
			t.Errorf("task %v, want the same run with its sleep completed", again)
		}
	})
}
