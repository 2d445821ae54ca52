package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func ofBuild(id string) func(*kagziv1.RegisterRequest) {
	return func(r *kagziv1.RegisterRequest) { r.BuildId = id }
}

// divergence is a report: the code made one call while it owed another.
func divergence(made, owed string) *kagziv1.Divergence {
	d := &kagziv1.Divergence{Owed: []*kagziv1.Call{{Name: owed, Kind: kagziv1.StepKind_STEP_KIND_FUNCTION}}}
	if made != "" {
		d.Made = []*kagziv1.Call{{Name: made, Kind: kagziv1.StepKind_STEP_KIND_SIGNAL, Branch: "2.1", Detail: "paid"}}
	}
	return d
}

// diverge releases a run with a report of divergence.
func (w *unaryWorker) diverge(t testing.TB, task *kagziv1.Task, d *kagziv1.Divergence) {
	t.Helper()
	fine(w.workers().ReleaseTask(within(t, 20*time.Second), &kagziv1.ReleaseTaskRequest{
		RunId: task.RunId, LeaseToken: task.LeaseToken, Divergence: d}))(t)
}

func (s *Server) resume(t testing.TB, run string) *kagziv1.Workflow {
	t.Helper()
	return fine(s.workflows().ResumeWorkflow(within(t, 20*time.Second),
		&kagziv1.ResumeWorkflowRequest{RunId: run}))(t).Workflow
}

// untilDiverged waits until the run is paused because each build in service has diverged.
func (s *Server) untilDiverged(t testing.TB, run string) {
	t.Helper()
	s.until(t, run, "paused as diverged", func(w *kagziv1.Workflow, _ map[string]*kagziv1.Step) bool {
		return w.Paused && w.PauseReason == "diverged"
	})
}

func builds(w *kagziv1.Workflow) (ids []string) {
	for _, d := range w.Divergences {
		ids = append(ids, d.BuildId)
	}
	return ids
}

// TestADivergedRunGoesFromBuildToBuildUntilAllHaveReported has the builds on two servers, where the
// database allows it.
func TestADivergedRunGoesFromBuildToBuildUntilAllHaveReported(t *testing.T) {
	eachPair(t, patient, func(t *testing.T, one, other *Server) {
		first, second := one.register(t, ofBuild("b1")), other.register(t, ofBuild("b2"))
		run := one.start(t)
		task := first.take(t)
		first.completeStep(t, task, "pay", "paid")
		first.diverge(t, task, divergence("charge", "pay"))
		first.wantNothing(t, "a worker of the build that has diverged")
		one.register(t, ofBuild("b1")).wantNothing(t, "another worker of the same build")

		task = second.take(t)
		if task.RunId != run || task.Attempt != 1 || len(task.History) != 1 {
			t.Errorf("the other build got %v, want the run on its first attempt with its record", task)
		}
		got := one.get(t, run)
		d := got.Divergences[0]
		if len(got.Divergences) != 1 || d.BuildId != "b1" || d.ReportedAt == nil || d.Made[0].Name != "charge" ||
			d.Made[0].Branch != "2.1" || d.Made[0].Detail != "paid" ||
			d.Made[0].Kind != kagziv1.StepKind_STEP_KIND_SIGNAL || d.Owed[0].Name != "pay" {
			t.Errorf("divergences are %v, want the report of b1", got.Divergences)
		}
		second.diverge(t, task, divergence("bill", "pay"))
		one.untilDiverged(t, run)
		got = one.get(t, run)
		if want := []string{"b1", "b2"}; !slices.Equal(builds(got), want) || got.Attempts != 1 || got.LeaseLosses != 0 {
			t.Errorf("the paused run is %v, want reports of %q and no attempt counted", got, want)
		}
		for _, listed := range one.find(t, &kagziv1.ListWorkflowsRequest{}) {
			if listed.Divergences != nil || listed.PauseReason != "diverged" {
				t.Errorf("the list shows %v, want the reason without the reports", listed)
			}
		}

		third := other.register(t, ofBuild("b3"))
		third.wantNothing(t, "a build that registers while the run is paused")
		if resumed := one.resume(t, run); resumed.Paused || resumed.PauseReason != "" || resumed.Divergences != nil {
			t.Errorf("the resumed run is %v, want no reports", resumed)
		}
		task = first.take(t)
		first.diverge(t, task, divergence("charge", "pay"))
		second.diverge(t, second.take(t), divergence("bill", "pay"))
		task = third.take(t)
		third.completeStep(t, task, "ship", "shipped")
		if got := one.get(t, run); got.Divergences != nil {
			t.Errorf("after a record the reports are %v, want none", got.Divergences)
		}
		third.complete(t, task, "done")
		wantOutput(t, one.get(t, run), "done")
	})
}

// TestADivergedRunIsPausedWhenTheLastOtherBuildIsLost has the other build on another server, where
// the database allows it. It is lost, or leaves, with the run in hand or without.
func TestADivergedRunIsPausedWhenTheLastOtherBuildIsLost(t *testing.T) {
	for _, inHand := range []bool{true, false} {
		t.Run(fmt.Sprintf("run in hand %t", inHand), func(t *testing.T) {
			eachPair(t, patient, func(t *testing.T, one, other *Server) {
				first, second := one.register(t, ofBuild("b1")), other.register(t, ofBuild("b2"))
				run := one.start(t)
				first.diverge(t, first.take(t), divergence("charge", "pay"))
				if inHand {
					second.take(t)
				}
				fine(one.admin().ForceOfflineWorker(within(t, 20*time.Second),
					&kagziv1.ForceOfflineWorkerRequest{WorkerId: second.id}))(t)
				one.untilDiverged(t, run)
			})
		})
	}
}

func TestADivergedRunStaysDueForWorkersWithoutABuild(t *testing.T) {
	eachPair(t, patient, func(t *testing.T, one, other *Server) {
		plain, first := other.register(t), one.register(t, ofBuild("b1"))
		run := one.start(t)
		first.diverge(t, first.take(t), divergence("charge", "pay"))
		task := plain.take(t)
		if task.RunId != run {
			t.Errorf("the worker without a build got %s, want %s", task.RunId, run)
		}
		_, err := plain.workers().ReleaseTask(within(t, 20*time.Second), &kagziv1.ReleaseTaskRequest{
			RunId: run, LeaseToken: task.LeaseToken, Divergence: divergence("charge", "pay")})
		wantRefused(t, "a report of a worker without a build", err, codes.InvalidArgument,
			kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, "register it with a build_id")
		plain.complete(t, task, "done")
	})
}

// TestARollingDeploymentPausesNothing has two builds in service. The new one cannot continue runs
// that the old one began; the old one cannot run the new type of call.
func TestARollingDeploymentPausesNothing(t *testing.T) {
	eachPair(t, patient, func(t *testing.T, one, other *Server) {
		runs := 60
		switch {
		case testing.Short():
			runs = 20
		case os.Getenv("KAGZI_TEST_LONG") != "":
			runs = 1000
		}
		old := one.session(t, ofBuild("old"))
		open := map[string]string{} // what each run has recorded
		for range runs {
			open[one.start(t)] = ""
		}
		old.grant(int32(runs))
		var begun []*kagziv1.Task
		for range runs {
			task := receive(t, "a run", old.tasks)
			begun = append(begun, task)
			old.do(old.stepDone(task, "pay", "paid"))
		}
		fresh := other.session(t, ofBuild("new"))
		release := func(w *sessionWorker, task *kagziv1.Task, d *kagziv1.Divergence) {
			if a := w.do(&kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_ReleaseTask{
				ReleaseTask: &kagziv1.ReleaseTaskRequest{RunId: task.RunId, LeaseToken: task.LeaseToken,
					Divergence: d}}}); a.GetReleasedTask() == nil {
				t.Fatalf("a release is answered with %v", a)
			}
		}
		for _, task := range begun { // as the old worker is restarted
			release(old, task, nil)
		}
		fresh.grant(int32(runs / 2)) // the old worker has no credit, so these go to the new one
		for range runs / 2 {
			release(fresh, receive(t, "a run", fresh.tasks), divergence("charge", "pay"))
		}
		fresh.grant(int32(runs))
		old.grant(int32(runs))
		bounced := runs / 2
		for len(open) > 0 {
			var w *sessionWorker
			var task *kagziv1.Task
			select {
			case task = <-old.tasks:
				w = old
			case task = <-fresh.tasks:
				w = fresh
			case <-time.After(30 * time.Second):
				t.Fatalf("%d runs never came back", len(open))
			}
			if w == fresh {
				bounced++
				release(w, task, divergence("charge", "pay"))
				w.grant(1)
				continue
			}
			w.do(w.stepDone(task, "ship", "shipped"))
			w.do(w.runDone(task, "done"))
			delete(open, task.RunId)
			w.grant(1)
		}
		t.Logf("%d of %d runs went through the new build", bounced, runs)
		for _, w := range one.find(t, &kagziv1.ListWorkflowsRequest{}) {
			if w.Status != completed || w.Paused || w.Attempts != 1 {
				t.Errorf("run %s is %s, paused %t, attempts %d, want COMPLETED on its first", w.RunId, w.Status, w.Paused,
					w.Attempts)
			}
		}
	})
}

func TestAnEndWithUnreachedCallsIsLeftToAnotherBuild(t *testing.T) {
	eachPair(t, patient, func(t *testing.T, one, other *Server) {
		first, second := one.register(t, ofBuild("b1")), other.register(t, ofBuild("b2"))
		run := one.start(t)
		task := first.take(t)
		end := func(w *unaryWorker, task *kagziv1.Task) error {
			_, err := w.workers().CompleteWorkflow(within(t, 20*time.Second), &kagziv1.CompleteWorkflowRequest{
				RunId: task.RunId, LeaseToken: task.LeaseToken, Output: text("done"), Unreached: []string{"pay", "ship"}})
			return err
		}
		err := end(first, task)
		wantRefused(t, "the end", err, codes.FailedPrecondition, kagziv1.ErrorCode_ERROR_CODE_PRECONDITION_FAILED,
			"release the run with a divergence")
		if subject := detailOf(err).Subject; subject != "divergence" {
			t.Errorf("the refusal is about %q, want divergence", subject)
		}
		_, err = first.workers().FailWorkflow(within(t, 20*time.Second), &kagziv1.FailWorkflowRequest{
			RunId: run, LeaseToken: task.LeaseToken, Error: &kagziv1.ErrorDetail{Message: "no"}, Unreached: []string{"pay"}})
		wantRefused(t, "the failed end", err, codes.FailedPrecondition,
			kagziv1.ErrorCode_ERROR_CODE_PRECONDITION_FAILED, "release the run with a divergence")
		first.diverge(t, task, divergence("", "pay"))
		if err := end(second, second.take(t)); err != nil {
			t.Fatalf("the end when the other build has reported: %v", err)
		}
		got := one.get(t, run)
		wantOutput(t, got, "done")
		if want := []string{"pay", "ship"}; !slices.Equal(got.Unreached, want) {
			t.Errorf("unreached are %q, want %q", got.Unreached, want)
		}
	})
}

func TestReportsOfDivergenceAreChecked(t *testing.T) {
	s := New(t, openStore(t, freshURL(t, "sqlite")), patient)
	for id, ok := range map[string]bool{
		"": true, "a": true, " ~": true, strings.Repeat("b", 128): true, strings.Repeat("b", 129): false, "a\n": false,
		"é": false, "a\x7f": false,
	} {
		_, err := s.workers().Register(within(t, 20*time.Second),
			&kagziv1.RegisterRequest{WorkflowTypes: []string{"t"}, TaskQueue: "checked", BuildId: id})
		if ok != (err == nil) || !ok && detailOf(err).Metadata["field"] != "build_id" {
			t.Errorf("build id %.20q: %v, %v, want accepted %t", id, err, detailOf(err), ok)
		}
	}
	w := s.register(t, ofBuild("b1"))
	s.start(t)
	task := w.take(t)
	many := make([]*kagziv1.Call, 101)
	for i := range many {
		many[i] = &kagziv1.Call{Name: itoa(i), Kind: kagziv1.StepKind_STEP_KIND_FUNCTION}
	}
	function := kagziv1.StepKind_STEP_KIND_FUNCTION
	made := func(c *kagziv1.Call) *kagziv1.Divergence { return &kagziv1.Divergence{Made: []*kagziv1.Call{c}} }
	for field, r := range map[string]*kagziv1.ReleaseTaskRequest{
		"divergence":             {Divergence: &kagziv1.Divergence{}},
		"divergence.made":        {Divergence: &kagziv1.Divergence{Made: many}},
		"divergence.owed":        {Divergence: &kagziv1.Divergence{Owed: many}},
		"divergence.made.name":   {Divergence: made(&kagziv1.Call{Kind: function})},
		"divergence.made.kind":   {Divergence: made(&kagziv1.Call{Name: "a", Kind: 77})},
		"divergence.made.branch": {Divergence: made(&kagziv1.Call{Name: "a", Kind: function, Branch: "é"})},
		"divergence.made.detail": {Divergence: made(&kagziv1.Call{Name: "a", Kind: function, Detail: "a b"})},
		"park":                   {Divergence: divergence("a", "b"), Park: true},
	} {
		r.RunId, r.LeaseToken = task.RunId, task.LeaseToken
		_, err := s.workers().ReleaseTask(within(t, 20*time.Second), r)
		wantRefused(t, field, err, codes.InvalidArgument, kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, field)
	}
	for name, unreached := range map[string][]string{"too many": make([]string, 101), "no name": {"a b"}} {
		_, err := s.workers().CompleteWorkflow(within(t, 20*time.Second), &kagziv1.CompleteWorkflowRequest{
			RunId: task.RunId, LeaseToken: task.LeaseToken, Unreached: unreached})
		wantRefused(t, name, err, codes.InvalidArgument, kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT, "unreached")
	}
	w.complete(t, task, "done")
	answer, err := s.workflows().WaitWorkflow(within(t, 20*time.Second),
		&kagziv1.WaitWorkflowRequest{RunId: task.RunId, Wait: durationpb.New(time.Second)})
	if err != nil || !answer.Finished {
		t.Errorf("the run after refused reports: %v, %v", answer, err)
	}
}
