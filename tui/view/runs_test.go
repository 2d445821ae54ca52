package view

import (
	"slices"
	"strings"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

func TestRunsLookRight(t *testing.T) { goldenView(t, "runs", always("runs")) }

// statuses returns the distinct statuses of the loaded rows.
func (p *runsPage) statuses() []kagziv1.WorkflowStatus {
	var list []kagziv1.WorkflowStatus
	for _, r := range p.runs.All() {
		if !slices.Contains(list, r.GetStatus()) {
			list = append(list, r.GetStatus())
		}
	}
	return list
}

func TestOnlyWhatWentWrongIsShownAndThenAllAgain(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs type:order"), 120, 32, func(r *fixture) {
		p := r.app.trails.top().(*runsPage)
		r.press("f")
		for _, s := range p.statuses() {
			if s != kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED &&
				s != kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT {
				t.Errorf("a run that is %s is among those that went wrong", render.RunStatus(s))
			}
		}
		r.shows("status:failed,timed_out")
		r.press("f")
		if p.Filter() != "type:order" {
			t.Errorf("the filter is %q, want the one from before", p.Filter())
		}
	})
}

func TestAFilterChoosesWhileItHoldsAndEscapeClearsIt(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 120, 32, func(r *fixture) {
		p := r.app.trails.top().(*runsPage)
		all, _ := p.runs.Total()
		r.press("/")
		r.enter("status:running queue:media")
		r.press("enter")
		r.shows("status:running queue:media")
		if p.runs.Len() == 0 || p.runs.Len() >= int(all) {
			t.Fatalf("%d of %d runs match", p.runs.Len(), all)
		}
		id, _ := p.tab.Selected()
		for range 12 {
			r.goOn(w, 5*time.Second)
			for _, run := range p.runs.All() {
				if run.GetStatus() != kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING {
					t.Fatalf("a run that is %s is shown among those that run", render.RunStatus(run.GetStatus()))
				}
			}
		}
		if _, err := w.TerminateWorkflow(t.Context(),
			&kagziv1.TerminateWorkflowRequest{Namespace: "default", RunId: id}); err != nil {
			t.Fatal(err)
		}
		r.pass(2 * time.Second)
		if _, there := p.runs.Find(id); there {
			t.Error("a run that was terminated is still shown among those that run")
		}
		r.press("esc")
		if p.Filter() != "" {
			t.Errorf("after esc the filter is %q", p.Filter())
		}
	})
}

func TestAFilterThatIsWrongSaysWhatThereIs(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 120, 32, func(r *fixture) {
		r.press("/")
		r.enter("status:broken")
		r.press("enter")
		r.shows("broken")
		if p := r.app.trails.top().(*runsPage); p.Filter() != "" {
			t.Errorf("the filter is %q", p.Filter())
		}
		r.press("esc", "esc")
	})
}

func TestWhatTheServerCannotLookForIsMatchedOnWhatWasRead(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs postcode"), 120, 32, func(r *fixture) {
		r.shows("AddressError")
		for _, run := range r.app.trails.top().(*runsPage).runs.All() {
			if !strings.Contains(run.GetError().GetMessage(), "postcode") {
				t.Errorf("%s is shown: %v", run.GetRunId(), run.GetError())
			}
		}
	})
}

func TestNothingIsSaidOfWhatWasReadWhenThatIsAll(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs type:order postcode"), 120, 32, func(r *fixture) {
		r.shows("AddressError")
		r.lacks("is matched on the")
		p := r.app.trails.top().(*runsPage)
		if n := p.runs.Scanned(); n != 200 {
			t.Errorf("%d runs were asked for, want one page", n)
		}
	})
}

func TestTheQuestionCountsTheMarkedRunsThatAreLeftOut(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 120, 32, func(r *fixture) {
		p := r.app.trails.top().(*runsPage)
		mark := func(n int, status kagziv1.WorkflowStatus) {
			for i, run := range p.runs.All() {
				if n > 0 && run.GetStatus() == status {
					p.tab.Go(i)
					r.press("space")
					n--
				}
			}
		}
		mark(2, kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING)
		mark(1, kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED)
		r.press("x")
		r.shows("1 marked run is left out: the action does not apply to their state.")
		r.press("esc")
		mark(3, kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED) // the first of them is marked no more
		r.press("x")
		r.shows("marked runs are left out: the action does not apply to their state.")
	})
}

func TestMarksStayWithTheirRunsWhileOthersComeIn(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 120, 32, func(r *fixture) {
		p := r.app.trails.top().(*runsPage)
		r.press("j", "j", "space", "j", "space")
		before := p.tab.Targets()
		if len(before) != 2 {
			t.Fatalf("%d runs are marked, want 2", len(before))
		}
		r.goOn(w, 20*time.Second)
		if after := p.tab.Targets(); !slices.Equal(after, before) {
			t.Errorf("the marked runs are %v, before they were %v", after, before)
		}
		r.press(`ctrl-\`)
		if n := len(p.tab.Marked()); n != 0 {
			t.Errorf("%d runs are still marked", n)
		}
	})
}

func TestRunsAreSortedByAColumnAmongThoseThatAreLoaded(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 120, 32, func(r *fixture) {
		p := r.app.trails.top().(*runsPage)
		if err := r.app.command("sort type"); err != nil {
			t.Fatal(err)
		}
		r.settle()
		r.press("r")
		types := make([]string, 0, 100)
		for _, run := range p.runs.All() {
			types = append(types, run.GetWorkflowType())
		}
		if !slices.IsSorted(types) {
			t.Errorf("the types are in the order %q", slices.Compact(types))
		}
		r.shows("sort: type")
	})
}

func TestAFilterIsCompletedWithWhatThereIs(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "runs"), 140, 32, func(r *fixture) {
		p := r.app.trails.top().(*runsPage)
		schedules, err := w.ListWorkflowSchedules(
			t.Context(), &kagziv1.ListWorkflowSchedulesRequest{Namespace: "default"})
		if err != nil {
			t.Fatal(err)
		}
		workers, err := w.ListWorkers(t.Context(), &kagziv1.ListWorkersRequest{Namespace: "default"})
		if err != nil {
			t.Fatal(err)
		}
		asked := func() (n int64) {
			info, err := w.GetServerInfo(t.Context(), &kagziv1.GetServerInfoRequest{})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range info.GetMethods() {
				if m.GetMethod() == "WorkflowScheduleService/ListWorkflowSchedules" ||
					m.GetMethod() == "AdminService/ListWorkers" {
					n += m.GetCalls()
				}
			}
			return n
		}
		schedule, worker := schedules.GetSchedules()[0].GetName(), workers.GetWorkers()[0].GetWorkerId()
		for key, value := range map[string]string{"schedule:": schedule, "worker:": worker} {
			r.press("/")
			r.enter(key)
			r.pass(time.Second) // in which they come
			r.enter(value[:len(value)-1])
			r.press("tab", "enter")
			if got := p.Filter(); got != key+value {
				t.Errorf("the filter is %q, want %q", got, key+value)
			}
			r.press("esc")
		}
		before := asked()
		r.pass(time.Minute)
		if after := asked(); after != before {
			t.Errorf("after the filter was typed its names were asked for %d times within a minute", after-before)
		}
	})
}
