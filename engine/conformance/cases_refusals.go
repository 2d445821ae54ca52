package conformance

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine/conformance/program"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// operation is a kind of operation with a program that sends it.
type operation struct {
	name    string
	is      func(*kagziv1.SessionRequest) bool
	ops     []*program.Op
	after   func(g *going) // what has to be done then
	fails   bool           // the program fails by itself
	refuses bool           // a final refusal fails the run with type refused
	needs   string         // as in fixed
}

func operationKinds() []*operation {
	quick := &program.Retry{Attempts: 2, InitialMS: 1, Jitter: -1}
	return []*operation{
		{"complete_step", func(r *kagziv1.SessionRequest) bool { return r.GetCompleteStep() != nil }, list(step("a-m"), returns("1")), nil, false, true, ""},
		{"fail_step", func(r *kagziv1.SessionRequest) bool { return r.GetFailStep() != nil },
			list(&program.Op{Op: "step", Name: "r1-m", Retry: quick}, returns("1")), nil, false, true, ""},
		{"sleep", func(r *kagziv1.SessionRequest) bool { return r.GetSleep() != nil }, list(nap("nap", 5), returns("1")), nil, false, true, ""},
		{"await_signal", func(r *kagziv1.SessionRequest) bool { return r.GetAwaitSignal() != nil }, list(wait("go"), returns("1")),
			func(g *going) { g.signal("go", "1") }, false, true, ""},
		{"start_child", func(r *kagziv1.SessionRequest) bool { return r.GetStartChild() != nil }, list(child("kid", returns("1")), returns("1")),
			nil, false, false, "19"},
		{"await_children", func(r *kagziv1.SessionRequest) bool { return r.GetAwaitChildren() != nil },
			list(child("kid", step("a-k"), returns("1")), returns("1")), nil, false, true, "19"},
		{"complete_workflow", func(r *kagziv1.SessionRequest) bool { return r.GetCompleteWorkflow() != nil }, list(returns("1")), nil, false, true, ""},
		{"fail_workflow", func(r *kagziv1.SessionRequest) bool { return r.GetFailWorkflow() != nil },
			list(&program.Op{Op: "fail", Message: "as it should", Type: "mine", NonRetryable: true}), nil, true, false, ""},
		{"release_task", func(r *kagziv1.SessionRequest) bool { return r.GetReleaseTask() != nil },
			list(fork(list(wait("go")), list(wait("go-too"))), returns("1")),
			func(g *going) { g.signal("go", "1"); g.signal("go-too", "1") }, false, false, ""},
		{"kagzi:now", func(r *kagziv1.SessionRequest) bool { return r.GetCompleteStep().GetStepName() == "kagzi:now" },
			list(&program.Op{Op: "now", Into: "t"}, step("a-m"), returns("1")), nil, false, true, "15.8"},
	}
}

// errorCodes returns error codes by their names without prefix.
func errorCodes(names ...string) []kagziv1.ErrorCode {
	all := make([]kagziv1.ErrorCode, len(names))
	for i, name := range names {
		all[i] = kagziv1.ErrorCode(kagziv1.ErrorCode_value["ERROR_CODE_"+name])
	}
	return all
}

func refusalCases() []fixed {
	var all []fixed
	for _, o := range operationKinds() {
		for _, code := range errorCodes("UNAVAILABLE", "INTERNAL", "TIMEOUT", "RESOURCE_EXHAUSTED") {
			all = append(all, fixed{id: "6.3", name: fmt.Sprintf("%s is repeated after %s", o.name, trimmed(code.String(), "ERROR_CODE_")),
				needs: o.needs, run: func(c *attempt) { repeats(c, o, code) }})
		}
		if !o.refuses {
			continue
		}
		for _, code := range errorCodes("INVALID_ARGUMENT", "CONFLICT", "PRECONDITION_FAILED", "RESOURCE_EXHAUSTED") {
			all = append(all, fixed{id: "6.7", name: fmt.Sprintf("a final %s for %s fails the run", trimmed(code.String(), "ERROR_CODE_"), o.name),
				needs: o.needs, run: func(c *attempt) { refuses(c, o, code) }})
		}
	}
	return append(all, otherRefusals()...)
}

// refuseFirst refuses the first operations of a kind, n of them, and remembers them.
func refuseFirst(g *going, is func(*kagziv1.SessionRequest) bool, n int,
	d *kagziv1.ErrorDetail) func() []*kagziv1.SessionRequest {
	var seen []*kagziv1.SessionRequest
	g.hook(func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
		if !is(r) {
			return nil
		}
		seen = append(seen, proto.CloneOf(r))
		if len(seen) > n {
			return nil
		}
		return d
	})
	return func() []*kagziv1.SessionRequest {
		g.c.board.mu.Lock()
		defer g.c.board.mu.Unlock()
		return append([]*kagziv1.SessionRequest(nil), seen...)
	}
}

// gated starts a program behind a step, so that the board knows the run before its operations come.
func gated(c *attempt, ops []*program.Op, prepare func(g *going)) *going {
	g := c.start(append([]*program.Op{step("begin")}, ops...)...)
	g.asked("begin")
	prepare(g)
	g.give("begin", `0`)
	return g
}

// later is an operation of a kind, but not about the step with which gated begins.
func later(is func(*kagziv1.SessionRequest) bool) func(*kagziv1.SessionRequest) bool {
	return func(r *kagziv1.SessionRequest) bool { return is(r) && !ofStep("begin")(r) }
}

func repeats(c *attempt, o *operation, code kagziv1.ErrorCode) {
	var seen func() []*kagziv1.SessionRequest
	g := gated(c, o.ops, func(g *going) {
		seen = refuseFirst(g, later(o.is), 1, &kagziv1.ErrorDetail{Code: code, Message: "later, please"})
	})
	if o.after != nil {
		g.until("the repeated operation", func() bool { return len(seen()) > 1 })
		o.after(g)
	}
	if o.fails {
		c.want(g.fails().GetType() == "mine", "it failed otherwise")
	} else {
		g.completes()
	}
	all := seen()
	c.want(len(all) >= 2, "the operation was not repeated")
	a, b := proto.CloneOf(all[0]), proto.CloneOf(all[1])
	a.Seq, a.After, b.Seq, b.After = 0, 0, 0, 0
	c.want(proto.Equal(a, b), "it was repeated with other content: %s and %s", a, b)
	c.want(all[1].GetSeq() > all[0].GetSeq(), "it was repeated with number %d after %d", all[1].GetSeq(), all[0].GetSeq())
}

func refuses(c *attempt, o *operation, code kagziv1.ErrorCode) {
	g := gated(c, o.ops, func(g *going) {
		refuseFirst(g, later(o.is), 1, &kagziv1.ErrorDetail{Code: code, Message: "never", NonRetryable: true})
	})
	d := g.failsWith("refused", code)
	c.want(d.GetMessage() != "", "the error has no message")
}

func otherRefusals() []fixed {
	var all []fixed
	for _, code := range errorCodes("INVALID_ARGUMENT", "PRECONDITION_FAILED", "CONFLICT") {
		all = append(all,
			fixed{id: "6.6", name: "a refused announcement (" + trimmed(code.String(), "ERROR_CODE_") + ") is ignored", run: func(c *attempt) {
				g := c.start(step("m"), step("a-n"))
				g.asked("m")
				seen := refuseFirst(g, func(r *kagziv1.SessionRequest) bool { return r.GetBeginStep() != nil }, 1,
					&kagziv1.ErrorDetail{Code: code, Message: "no", NonRetryable: true})
				g.until("the announcement", func() bool { return len(seen()) == 1 })
				g.give("m", `1`)
				g.traced(g.completes(), "m", `1`, "a-n", `"did a-n"`)
			}},
			fixed{id: "19.2", name: "a refused start (" + trimmed(code.String(), "ERROR_CODE_") + ") is the outcome, in replay, too", run: func(c *attempt) {
				var seen func() []*kagziv1.SessionRequest
				g := gated(c, list(try(list(child("kid", returns("1"))), list(step("m")))), func(g *going) {
					seen = refuseFirst(g, func(r *kagziv1.SessionRequest) bool { return r.GetStartChild() != nil }, 1,
						&kagziv1.ErrorDetail{Code: code, Message: "no", NonRetryable: true})
				})
				g.asked("m")
				c.want(g.row("kagzi:ended") != nil && g.row("kagzi:ended").GetError().GetMetadata()["step"] == "kid",
					"the refusal is not recorded as the protocol says: %v", g.row("kagzi:ended"))
				g.suspend()
				g.give("m", `1`)
				g.traced(g.completes(), "begin", `0`, "kid", `{"code":"`+trimmed(code.String(), "ERROR_CODE_")+`","type":""}`, "m", `1`)
				c.want(len(seen()) == 1, "the start was sent %d times", len(seen()))
			}})
	}
	for _, code := range errorCodes("LEASE_LOST", "NOT_FOUND", "CANCELLED", "UNAUTHORIZED") {
		all = append(all, fixed{id: "6.5", name: trimmed(code.String(), "ERROR_CODE_") + " ends the activation", run: func(c *attempt) {
			var seen func() []*kagziv1.SessionRequest
			g := gated(c, list(fork(list(step("a-m"), step("n")), list(step("o")))), func(g *going) {
				seen = refuseFirst(g, resultOf("a-m"), 1, &kagziv1.ErrorDetail{Code: code, Message: "gone", NonRetryable: true})
			})
			g.until("the refused result", func() bool { return len(seen()) > 0 })
			lease := leaseOf(seen()[0]).GetLeaseToken()
			at := g.forgotten() // the server may give the run back at once
			c.want(!slices.ContainsFunc(c.gate.questions(g.id()+"/n"), func(q question) bool { return q.at.Before(at) }),
				"code went on after the lease was lost")
			c.want(g.count(func(r *kagziv1.SessionRequest) bool {
				return resultOf("a-m")(r) && leaseOf(r).GetLeaseToken() == lease
			}) == 1, "the result was sent again")
		}})
	}
	for _, code := range errorCodes("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED") {
		all = append(all, fixed{id: "6.8", name: "a failure that is refused (" + trimmed(code.String(), "ERROR_CODE_") + ") is sent once more", run: func(c *attempt) {
			g := gated(c, list(&program.Op{Op: "fail", Message: "m", Type: "mine"}), func(g *going) {
				refuseFirst(g, func(r *kagziv1.SessionRequest) bool { return r.GetFailWorkflow() != nil }, 1,
					&kagziv1.ErrorDetail{Code: code, Message: "not like that", NonRetryable: true})
			})
			g.failsWith("refused", code)
		}})
	}
	return append(all, fixed{id: "5.4", name: "what was refused with a result is repeated behind it", run: func(c *attempt) {
		g := gated(c, list(step("a-m"), returns("1")), func(g *going) {
			refuseFirst(g, ofStep("a-m"), 2, &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE, Message: "later"})
		})
		g.completes()
		var order []string
		for _, m := range c.board.of(g.id()) {
			if m.to != nil && m.down.GetError() == nil {
				order = append(order, fmt.Sprintf("%T", m.to.Operation))
			}
		}
		c.want(len(order) == 3, "operations took effect %q, want two results and the end", order)
	}})
}
