package conformance

import (
	"encoding/json"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine/conformance/program"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const timedOut = `{"code":"TIMEOUT","type":""}`

func signalCases() []fixed {
	var all []fixed
	for _, v := range values {
		all = append(all, fixed{id: "18.2", name: "a signal brings " + v.name, run: func(c *attempt) {
			g := c.start(wait("go"))
			g.signal("go", v.value)
			g.traced(g.completes(), "go", v.value)
		}})
	}
	return append(all,
		fixed{id: "18.2", name: "a signal that came before the wait", run: func(c *attempt) {
			g := c.start(step("m"), wait("go"))
			g.signal("go", "1")
			g.give("m", "0")
			g.traced(g.completes(), "m", "0", "go", "1")
		}},
		fixed{id: "18.2", name: "a signal wakes a parked run", run: func(c *attempt) {
			g := c.start(wait("go"), step("a-m"))
			g.parked()
			g.signal("go", "1")
			g.traced(g.completes(), "go", "1", "a-m", `"did a-m"`)
		}},
		fixed{id: "18.1", name: "signals come in order", run: func(c *attempt) {
			g := c.start(wait("go"), wait("go"), wait("go"))
			for _, v := range []string{"1", "2", "3"} {
				g.signal("go", v)
			}
			g.traced(g.completes(), "go", "1", "go", "2", "go", "3")
		}},
		fixed{id: "18.1", name: "signals of other names are left", run: func(c *attempt) {
			g := c.start(wait("go"))
			g.signal("other", "0")
			g.signal("go", "1")
			g.traced(g.completes(), "go", "1")
			c.want(g.get().GetUnreadSignals() == 1, "%d signals are unread, want 1", g.get().GetUnreadSignals())
		}},
		fixed{id: "18.4", name: "the limit of a wait", run: func(c *attempt) {
			g := c.start(try(list(within("go", 60)), list(step("a-rest"))))
			g.traced(g.completes(), "go", timedOut, "a-rest", `"did a-rest"`)
			c.want(g.row("go").GetSignalTimedOut(), "the row does not say so")
		}},
		fixed{id: "18.4", name: "the limit of a wait that nobody catches", run: func(c *attempt) {
			d := c.start(within("go", 30)).fails()
			c.want(d.GetCode() == kagziv1.ErrorCode_ERROR_CODE_TIMEOUT, "the run failed with %s", d)
		}},
		fixed{id: "18.4", name: "the limit of a wait beside another branch", run: func(c *attempt) {
			g := c.start(fork(list(try(list(within("go", 60)), list(step("a-rest")))), list(step("m"))))
			g.recorded("a-rest")
			g.give("m", "1")
			g.traced(g.completes(), "go", timedOut, "a-rest", `"did a-rest"`, "m", "1")
		}},
		fixed{id: "18.4", name: "a limit that passed is the same in replay", run: func(c *attempt) {
			g := c.start(try(list(within("go", 30)), list(step("m"))))
			g.asked("m")
			g.signal("go", "1")
			g.suspend()
			g.give("m", "2")
			g.traced(g.completes(), "go", timedOut, "m", "2")
		}},
		fixed{id: "18.3", name: "a negative limit takes what has come", run: func(c *attempt) {
			g := c.start(step("m"), within("go", -1))
			g.signal("go", "1")
			g.give("m", "0")
			g.traced(g.completes(), "m", "0", "go", "1")
		}},
		fixed{id: "18.3", name: "a negative limit does not wait", run: func(c *attempt) {
			g := c.start(try(list(within("go", -1)), list(step("a-rest"))))
			g.traced(g.completes(), "go", timedOut, "a-rest", `"did a-rest"`)
		}},
		fixed{id: "18.6", name: "a value that cannot be decoded", run: func(c *attempt) {
			g := c.start(try(list(&program.Op{Op: "signal", Name: "go", Read: "number"}), list(step("a-rest"))))
			g.signal("go", `"text"`)
			g.traced(g.completes(), "go", `{"code":"INVALID_ARGUMENT","type":""}`, "a-rest", `"did a-rest"`)
		}},
		fixed{id: "18.6", name: "a value that is no JSON", run: func(c *attempt) {
			g := c.start(try(list(&program.Op{Op: "signal", Name: "go", Read: "number"}), list(step("a-rest"))))
			g.signal("go", `{"x`)
			g.traced(g.completes(), "go", `{"code":"INVALID_ARGUMENT","type":""}`, "a-rest", `"did a-rest"`)
		}},
		fixed{id: "18.5", name: "a signal that a branch which was left waits for goes on to the next run", needs: "22", run: func(c *attempt) {
			next := &program.Program{Ops: list(wait("go"))}
			g := c.start(fork(list(&program.Op{Op: "first", Bodies: [][]*program.Op{list(step("m"), wait("go"), step("n")), list(step("o"))}})),
				&program.Op{Op: "continue", Program: next})
			g.signal("go", `"mail"`)
			g.give("o", "1")
			g.ends()
			all, err := g.f.members(c.ctx)
			c.check(err)
			c.want(len(all) == 2, "%d runs, want 2", len(all))
			var out program.Result
			c.check(json.Unmarshal(all[1].run.GetOutput().GetData(), &out))
			g.traced(out, "go", `"mail"`)
		}},
	)
}

func childCases() []fixed {
	var all []fixed
	for _, v := range values[:10] {
		all = append(all, fixed{id: "19.4", name: "a child returns " + v.name, run: func(c *attempt) {
			g := c.start(child("kid", returns(v.value)))
			g.traced(g.completes(), "kid", v.value)
		}})
	}
	caught := func(o *program.Op) *program.Op { return try(list(o), list(step("a-rest"))) }
	return append(all,
		fixed{id: "19.1", name: "a child has its parent, queue and type", run: func(c *attempt) {
			g := c.start(child("kid", returns("1")))
			g.completes()
			w := c.get(g.row("kid").GetChildRunId())
			c.want(w.GetParentRunId() == g.id() && w.GetTaskQueue() == queue && w.GetWorkflowType() == "conformance", "the child is %s", w)
		}},
		fixed{id: "19.4", name: "a child fails", run: func(c *attempt) {
			g := c.start(caught(child("kid", &program.Op{Op: "fail", Message: "m", Type: "mine", NonRetryable: true})))
			g.traced(g.completes(), "kid", `{"code":"","type":"mine"}`, "a-rest", `"did a-rest"`)
		}},
		fixed{id: "24.2", name: "a child's failure that nobody catches fails the parent with its type", needs: "19", run: func(c *attempt) {
			d := c.start(child("kid", &program.Op{Op: "fail", Message: "m", Type: "mine", NonRetryable: true})).fails()
			c.want(d.GetType() == "mine", "the parent failed with %s", d)
		}},
		fixed{id: "19.4", name: "a child that is cancelled", run: func(c *attempt) {
			g := c.start(caught(child("kid", wait("never"))))
			g.until("the child", func() bool { return g.row("kid") != nil })
			_, err := c.host.runs.CancelWorkflow(c.ctx, &kagziv1.CancelWorkflowRequest{Namespace: namespace, RunId: g.row("kid").GetChildRunId()})
			c.check(err)
			out := g.completes()
			c.want(len(out.Trace) == 2 && strings.Contains(string(out.Trace[0][1]), "code"), "the code got %s", out.Trace)
		}},
		fixed{id: "13.2", name: "a child that continues as new has its last result", needs: "19", run: func(c *attempt) {
			g := c.start(child("kid", &program.Op{Op: "continue", Program: &program.Program{Ops: list(step("a-k"), returns(`"last"`))}}))
			g.traced(g.completes(), "kid", `"last"`)
		}},
		fixed{id: "19.2", name: "an external id that is taken", run: func(c *attempt) {
			id := "taken-" + time.Now().Format("150405.000000000")
			other := c.startWith(func(r *kagziv1.StartWorkflowRequest) { r.ExternalId = id }, step("m"))
			other.asked("m")
			o := child("kid", returns("1"))
			o.ExternalID = id
			g := c.start(caught(o))
			g.traced(g.completes(), "kid", `{"code":"CONFLICT","type":""}`, "a-rest", `"did a-rest"`)
			other.give("m", "1")
			other.completes()
		}},
		fixed{id: "19.1", name: "a child with an external id", run: func(c *attempt) {
			o := child("kid", returns("1"))
			o.ExternalID = "kid-" + time.Now().Format("150405.000000000")
			g := c.start(o)
			g.traced(g.completes(), "kid", "1")
		}},
		fixed{id: "19.3", name: "a replay returns the same child", run: func(c *attempt) {
			// the child has no step: its body would ask in two activations, and the answer might go to the first
			g := c.start(startOnly(child("kid", wait("go"), returns("7"))), step("m"),
				&program.Op{Op: "wait_all", Names: []string{"kid"}})
			g.asked("m")
			before := g.row("kid").GetChildRunId()
			g.suspend()
			g.give("m", "1")
			g.signalIn(before, "go", "1")
			g.traced(g.completes(), "m", "1", "wait_all", "[7]")
			c.want(g.row("kid").GetChildRunId() == before, "the child is another run")
		}},
		fixed{id: "11.1", name: "a parent that waits for a child holds no worker", needs: "19", run: func(c *attempt) {
			g := c.start(child("kid", step("k"), returns("1")))
			g.parked()
			run := g.row("kid").GetChildRunId()
			g.askedIn(run, "k")
			c.gate.answer(run+"/k", program.Answer{Do: "return"})
			g.traced(g.completes(), "kid", "1")
		}},
		fixed{id: "13.5", name: "children of many branches", needs: "19", run: func(c *attempt) {
			var bodies [][]*program.Op
			for _, name := range []string{"k1", "k2", "k3", "k4", "k5"} {
				bodies = append(bodies, list(child(name, step("a-"+name), returns("1"))))
			}
			g := c.start(fork(bodies...))
			g.completes()
		}},
		fixed{id: "19.1", name: "a parent that ends leaves, cancels and ends its children as it said", run: func(c *attempt) {
			kid := func(name, policy string) *program.Op {
				o := startOnly(child(name, wait("never")))
				o.Close = policy
				return o
			}
			g := c.start(kid("k1", "abandon"), kid("k2", "cancel"), kid("k3", "terminate"), step("m"))
			g.asked("m")
			g.give("m", "1")
			g.until("the end", func() bool { return ended(g.get().GetStatus()) })
			status := func(name string) kagziv1.WorkflowStatus {
				return c.get(g.row(name).GetChildRunId()).GetStatus()
			}
			c.want(status("k2") == kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED && !ended(status("k1")) &&
				status("k3") == kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED, "they are %s, %s, %s", status("k1"), status("k2"), status("k3"))
			c.abandon(c.ctx, g.f)
		}},
	)
}

func cancelCases() []fixed {
	over := func(g *going) {
		run := g.ends()
		g.c.want(run.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED, "the run is %s, want CANCELLED (%s)",
			run.GetStatus(), run.GetError())
	}
	running := func(g *going) string { return valueText(g.row("kagzi:cancelled").GetOutput().GetData()) }
	undo := func(ops ...*program.Op) *program.Op {
		return &program.Op{Op: "try", Ops: ops, Cancelled: list(step("undo"))}
	}
	return []fixed{
		{id: "20.4", name: "a cancellation ends a sleep", run: func(c *attempt) {
			g := c.start(undo(nap("nap", 600_000), step("m")))
			g.parked()
			g.cancel(time.Minute)
			g.give("undo", "1")
			over(g)
			c.want(running(g) == "{}", "recorded is %s", running(g))
			c.want(g.row("m") == nil, "a step began after the cancellation")
		}},
		{id: "20.4", name: "a cancellation ends a wait for a signal", run: func(c *attempt) {
			g := c.start(undo(wait("go")))
			g.parked()
			g.cancel(time.Minute)
			g.give("undo", "1")
			over(g)
		}},
		{id: "20.4", name: "a cancellation ends a wait for a child", run: func(c *attempt) {
			o := child("kid", wait("never"))
			o.Close = "cancel"
			g := c.start(undo(o))
			g.parked()
			g.cancel(time.Minute)
			g.give("undo", "1")
			over(g)
		}},
		{id: "20.5", name: "a running step goes on, and its result counts", run: func(c *attempt) {
			g := c.start(undo(step("m"), step("n")))
			g.asked("m")
			g.cancel(time.Minute)
			g.recorded("kagzi:cancelled")
			c.want(sameJSON([]byte(`{"running":["m"]}`), g.row("kagzi:cancelled").GetOutput().GetData()), "recorded is %s", running(g))
			g.give("m", "1")
			g.give("undo", "1")
			over(g)
			c.want(g.row("m").GetStatus() == kagziv1.StepStatus_STEP_STATUS_COMPLETED && g.row("n") == nil, "rows are %v", g.rows())
		}},
		{id: "20.5", name: "a running step that fails then is not retried", run: func(c *attempt) {
			g := c.start(undo(&program.Op{Op: "step", Name: "m", Retry: &program.Retry{Attempts: 5, InitialMS: 1}}))
			g.asked("m")
			g.cancel(time.Minute)
			g.recorded("kagzi:cancelled")
			g.say("m", failing("t", false))
			g.give("undo", "1")
			over(g)
			d := g.row("m").GetError()
			c.want(d.GetCode() == kagziv1.ErrorCode_ERROR_CODE_CANCELLED && d.GetNonRetryable(), "recorded is %s", d)
		}},
		{id: "20.5", name: "a final failure of a running step stays as it is", run: func(c *attempt) {
			g := c.start(try(list(step("m")), list()))
			g.asked("m")
			g.cancel(time.Minute)
			g.recorded("kagzi:cancelled")
			g.say("m", failing("t", true))
			over(g)
			d := g.row("m").GetError()
			c.want(d.GetCode() == noCode && d.GetType() == "t", "recorded is %s", d)
		}},
		{id: "20.5", name: "the context of a running step says it", run: func(c *attempt) {
			g := c.start(undo(step("m")))
			g.say("m", program.Answer{Do: "wait"})
			g.cancel(time.Minute)
			g.give("undo", "1")
			over(g)
			c.want(g.row("m").GetError().GetCode() == kagziv1.ErrorCode_ERROR_CODE_CANCELLED, "recorded is %s", g.row("m").GetError())
		}},
		{id: "20.4", name: "a step that waits for its retry ends", run: func(c *attempt) {
			g := c.start(undo(&program.Op{Op: "step", Name: "m", Retry: &program.Retry{InitialMS: 600_000}}))
			g.say("m", failing("t", false))
			g.until("the retry", func() bool { return g.get().GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING })
			g.cancel(time.Minute)
			g.give("undo", "1")
			over(g)
			c.want(len(c.gate.questions(g.id()+"/m")) == 1, "the step ran again")
		}},
		{id: "20.6", name: "later calls are cancelled", run: func(c *attempt) {
			g := c.start(&program.Op{Op: "try", Ops: list(wait("go")), Cancelled: list(step("undo"))}, step("m"))
			g.parked()
			g.cancel(time.Minute)
			g.give("undo", "1")
			over(g)
			c.want(g.row("m") == nil, "a step began after the cancellation")
		}},
		{id: "20.7", name: "sleeps, retries and branches work under cleanup", run: func(c *attempt) {
			quick := &program.Retry{InitialMS: 1, Jitter: -1}
			g := c.start(&program.Op{Op: "try", Ops: list(wait("go")), Cancelled: list(nap("nap", 30), &program.Op{Op: "step", Name: "r1-u", Retry: quick},
				fork(list(step("a-v")), list(step("a-w"))))})
			g.parked()
			g.cancel(time.Minute)
			over(g)
			for _, name := range []string{"nap", "r1-u", "a-v", "a-w"} {
				c.want(g.row(name).GetStatus() == kagziv1.StepStatus_STEP_STATUS_COMPLETED, "%s is %v", name, g.row(name))
			}
		}},
		{id: "20.7", name: "the grace ends cleanup", run: func(c *attempt) {
			g := c.start(undo(wait("go")))
			g.parked()
			g.cancel(time.Minute)
			g.asked("undo")
			g.cancel(100 * time.Millisecond)
			over(g)
		}},
		{id: "20.8", name: "the run is cancelled whatever the code returns", run: func(c *attempt) {
			g := c.start(step("m"), returns("1"))
			g.asked("m")
			g.cancel(time.Minute)
			g.recorded("kagzi:cancelled")
			g.give("m", "1")
			over(g)
		}},
		{id: "20.3", name: "a cancellation has the same place in replay", run: func(c *attempt) {
			g := c.start(fork(list(step("m"), step("n")), list(undo(wait("go")))))
			g.give("m", "1")
			g.asked("n")
			g.cancel(time.Minute)
			g.asked("undo")
			g.suspend()
			g.asked("undo")
			g.until("that step n is given up or asks again", func() bool {
				return g.row("n").GetSettled() > 0 || len(c.gate.questions(g.id()+"/n")) > 1
			})
			c.want(g.row("n").GetError().GetCode() == kagziv1.ErrorCode_ERROR_CODE_CANCELLED, "step n, which a lost worker ran, is %v", g.row("n"))
			g.give("undo", "1")
			over(g)
		}},
		{id: "20.1", name: "a cancellation before the code has begun", run: func(c *attempt) {
			g := c.startWith(func(r *kagziv1.StartWorkflowRequest) { r.StartAt = timestamppb.New(time.Now().Add(time.Hour)) }, step("m"))
			g.cancel(time.Minute)
			over(g)
			c.want(len(c.gate.questions(g.id()+"/m")) == 0, "the code ran")
		}},
		{id: "22.2", name: "a run that is cancelled does not continue as new", run: func(c *attempt) {
			g := c.start(step("m"), &program.Op{Op: "continue", Program: &program.Program{}})
			g.asked("m")
			g.cancel(time.Minute)
			g.recorded("kagzi:cancelled")
			g.give("m", "1")
			over(g)
			c.want(g.get().GetContinuedAsRunId() == "", "it continued")
		}},
		{id: "7.1", name: "a run that is terminated stops", run: func(c *attempt) {
			g := c.start(step("m"), step("n"))
			g.asked("m")
			g.terminate()
			g.forgotten()
			c.gate.answer(g.id()+"/m", program.Answer{Do: "return"})
			c.beats(2)
			c.want(len(c.gate.questions(g.id()+"/n")) == 0, "the code went on")
		}},
		{id: "20.9", name: "a pause lets running steps end and releases the run", run: func(c *attempt) {
			g := c.start(step("m"), step("n"))
			g.asked("m")
			g.pause()
			g.message("the request to pause", func(m message) bool { return m.down.GetPauseTask() != nil })
			g.give("m", "1")
			g.until("that the run is paused", func() bool { return g.get().GetPaused() })
			c.want(g.row("m").GetSettled() > 0 && len(c.gate.questions(g.id()+"/n")) == 0, "step n began, or the result of m is lost")
			g.resume(false)
			g.give("n", "2")
			g.traced(g.completes(), "m", "1", "n", "2")
		}},
		{id: "20.9", name: "a pause that is taken back", run: func(c *attempt) {
			g := c.start(step("m"), step("n"))
			g.asked("m")
			g.pause()
			g.resume(false)
			g.give("m", "1")
			g.give("n", "2")
			g.traced(g.completes(), "m", "1", "n", "2")
		}},
	}
}
