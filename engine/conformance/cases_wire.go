package conformance

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine/conformance/program"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// wireCases are about tasks and connections. They change what the subject gets, so they run alone.
func wireCases() []fixed {
	one := func(id, name string, run func(c *attempt)) fixed {
		return fixed{id: id, name: name, run: run, alone: true}
	}
	return []fixed{
		one("14.1", "the code begins when the whole history is there", func(c *attempt) {
			c.long(func(*going) {}).long()
		}),
		one("14.3", "a page that cannot be read is read again", func(c *attempt) {
			left := atomic.Int32{}
			left.Store(2)
			c.board.onCalls(func(method string, answered bool) error {
				if method == "GetHistory" && !answered && left.Add(-1) >= 0 {
					return status.Error(codes.Unavailable, "later")
				}
				return nil
			})
			defer c.board.onCalls(nil)
			c.long(func(*going) {}).long()
			c.want(left.Load() < 0, "the pages were not read")
		}),
		one("14.3", "a page that is refused for good releases the run", func(c *attempt) {
			left := atomic.Int32{}
			left.Store(1)
			c.board.onCalls(func(method string, answered bool) error {
				if method == "GetHistory" && !answered && left.Add(-1) >= 0 {
					return status.Error(codes.PermissionDenied, "no")
				}
				return nil
			})
			defer c.board.onCalls(nil)
			l := c.long(func(g *going) {
				g.message("the release", func(m message) bool { return m.up.GetReleaseTask() != nil && !m.up.GetReleaseTask().GetPark() })
			})
			l.long()
		}),
		one("13.1", "a row of no kind fits the call of its name", func(c *attempt) {
			c.inOldHistory(func(s *kagziv1.Step) { s.Kind = kagziv1.StepKind_STEP_KIND_UNSPECIFIED })
		}),
		one("26.1", "a row of an unknown kind fits the call of its name", func(c *attempt) {
			c.inOldHistory(func(s *kagziv1.Step) { s.Kind = 99 })
		}),
		one("16.6", "results without a place are handed over when they are called", func(c *attempt) {
			c.inOldHistory(func(s *kagziv1.Step) { s.Settled = 0 })
		}),
		{id: "28.2", name: "a connection that is open and silent is given up", long: true, run: func(c *attempt) {
			g := c.start(step("a-m"), step("m"), step("a-n"))
			g.asked("m")
			last := len(c.hellos())
			c.proxy.lines.silence()
			// up to 30 s of silence and 10 s for the answer to the ping, or one lease
			again := func() (bool, error) { return len(c.hellos()) > last, c.process.over() }
			c.check(await(c.ctx, again, c.host.changes))
			// the server has freed the run meanwhile: the body of m asks again
			g.until("the end", func() bool {
				c.gate.answer(g.id()+"/m", program.Answer{Do: "return", Value: []byte("1")})
				return ended(g.get().GetStatus())
			})
			g.traced(g.completes(), "a-m", `"did a-m"`, "m", "1", "a-n", `"did a-n"`)
			c.want(len(c.gate.questions(g.id()+"/a-m")) == 1, "a recorded step ran again")
		}},
		one("31.2", "a run that is parked is not held", func(c *attempt) {
			g := c.start(wait("go"))
			g.parked()
			g.forgotten()
			g.signal("go", "1")
			g.completes()
		}),
		one("31.4", "a run that was kept goes on with what is new", func(c *attempt) {
			g := c.start(step("a-m"), wait("go"), step("a-n"))
			g.parked()
			g.signal("go", "1")
			g.traced(g.completes(), "a-m", `"did a-m"`, "go", "1", "a-n", `"did a-n"`)
			c.want(len(c.gate.questions(g.id()+"/a-m")) == 1, "a recorded step ran again")
		}),
		one("31.4", "a task on top of what is not kept is replayed", func(c *attempt) {
			g := c.start(step("a-m"), wait("go"), step("a-n"))
			g.parked()
			c.board.onDown(func(r *kagziv1.SessionResponse) []*kagziv1.SessionResponse {
				if t := r.GetTask(); t.GetBase() != "" {
					t.Base = "of another activation"
				}
				return []*kagziv1.SessionResponse{r}
			})
			defer c.board.onDown(nil)
			g.signal("go", "1")
			g.traced(g.completes(), "a-m", `"did a-m"`, "go", "1", "a-n", `"did a-n"`)
			c.want(len(c.gate.questions(g.id()+"/a-m")) == 1, "a recorded step ran again")
		}),
	}
}

// inOldHistory changes the rows of a task: the code has to get their results all the same.
func (c *attempt) inOldHistory(change func(*kagziv1.Step)) {
	g := c.start(step("x1"), nap("nap", 1), step("x2"), step("m"))
	g.give("x1", "1")
	g.give("x2", "2")
	g.asked("m")
	c.board.onDown(func(r *kagziv1.SessionResponse) []*kagziv1.SessionResponse {
		if r.GetTask().GetRunId() == g.id() {
			r = proto.CloneOf(r)
			for _, s := range r.GetTask().GetHistory() {
				change(s)
			}
		}
		return []*kagziv1.SessionResponse{r}
	})
	defer c.board.onDown(nil)
	g.suspend()
	g.give("m", "3")
	g.traced(g.completes(), "x1", "1", "nap", "null", "x2", "2", "m", "3")
	c.want(len(c.gate.questions(g.id()+"/x1")) == 1, "a recorded step ran again")
}

// longRun is one whose history needs several pages.
type longRun struct{ *going }

// long starts a run with a long history, and makes its code begin again. then is called right after that.
func (c *attempt) long(then func(g *going)) longRun {
	ops := list()
	value := `"` + strings.Repeat("z", 700<<10) + `"`
	for i := range 4 {
		ops = append(ops, step(fmt.Sprint("m", i)))
	}
	g := c.start(append(ops, step("n"), &program.Op{Op: "fail", Message: "enough", Type: "enough", NonRetryable: true})...)
	for i := range 4 {
		g.give(fmt.Sprint("m", i), value)
	}
	g.asked("n")
	g.suspend()
	then(g)
	return longRun{g}
}

// long checks that the code goes on behind the history.
func (l longRun) long() {
	l.give("n", "1")
	l.failsWith("enough", noCode)
	for i := range 4 {
		l.c.want(len(l.c.gate.questions(l.id()+fmt.Sprint("/m", i))) == 1, "the recorded step m%d ran again", i)
	}
	pages := l.message("a task with a part of the history", func(m message) bool { return m.down.GetTask().GetNextHistoryToken() != "" })
	l.c.want(len(pages.down.GetTask().GetHistory()) < 4, "the task has the whole history")
}

// blockLimit limits how long code blocks before it is reported, on a machine that is busy. Tests make it
// shorter.
var blockLimit = 90 * time.Second

// startCases are about blocked code, branches that wait for each other, and the client. Code that blocks
// the event loop of a subject keeps the other cases of its lane waiting, so it has one of its own.
func startCases() []fixed {
	return []fixed{
		{id: "11.8", name: "branches that wait for each other", run: func(c *attempt) {
			c.start(step("a-m"), &program.Op{Op: "cycle"}).failsWith("deadlock", noCode)
		}},
		{id: "11.8", name: "branches that wait for each other fail beside one that ends", run: func(c *attempt) {
			g := c.start(fork(list(&program.Op{Op: "cycle"}), list(step("m"))))
			g.asked("m")
			c.want(!ended(g.get().GetStatus()), "the run ended while a branch was at work")
			g.give("m", "1")
			g.failsWith("deadlock", noCode)
		}},
		{id: "17.8", name: "code that blocks for long is reported", long: true, patient: true, run: func(c *attempt) {
			g := c.start(step("a-m"), &program.Op{Op: "block", MS: blockLimit.Milliseconds()})
			var blocked []*kagziv1.BlockedCode
			c.check(await(c.ctx, func() (bool, error) {
				r := &kagziv1.ExplainWorkflowRequest{Namespace: namespace, RunId: g.id()}
				e, err := c.host.runs.ExplainWorkflow(c.ctx, r)
				blocked = e.GetBlocked()
				return len(blocked) > 0 || ended(g.get().GetStatus()), err
			}, c.host.changes))
			c.want(len(blocked) == 1 && blocked[0].GetStack() != "" && blocked[0].GetBranch() == "", "reported is %v", blocked)
		}},
		{id: "30.1", name: "a start whose answer is lost starts one run", alone: true, run: func(c *attempt) {
			g := c.start(&program.Op{Op: "step", Name: "m", Retry: &program.Retry{Attempts: 1}})
			g.asked("m")
			lost := atomic.Bool{}
			c.board.onCalls(func(method string, answered bool) error {
				if strings.HasPrefix(method, "StartWorkflow") && answered && !lost.Swap(true) {
					c.proxy.cut()
				}
				return nil
			})
			defer c.board.onCalls(nil)
			g.say("m", program.Answer{Do: "start", Program: &program.Program{Ops: list(step("a-m"))}})
			g.completes()
			c.want(lost.Load(), "no start was sent")
			all, err := c.host.runs.ListWorkflows(c.ctx, &kagziv1.ListWorkflowsRequest{Namespace: namespace})
			c.check(err)
			started := 0
			for _, w := range all.GetWorkflows() {
				if w.GetRunId() != g.id() && w.GetCreatedAt().AsTime().After(g.get().GetCreatedAt().AsTime()) {
					started++
				}
			}
			c.want(started == 1, "%d runs were started, want 1", started)
		}},
	}
}
