package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/conformance/program"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// values are payloads that have to arrive as they are.
var values = []struct{ name, value string }{
	{"null", `null`}, {"true", `true`}, {"zero", `0`}, {"a negative number", `-17`}, {"a fraction", `0.1`},
	{"a small number", `1e-7`}, {"a large number", `1e21`}, {"the largest exact integer", `9007199254740991`},
	{"an empty text", `""`}, {"text beyond ASCII", `"é 😀 \u0000 \u2028"`}, {"text with marks of HTML", `"<a href='x'>&</a>"`},
	{"an empty list", `[]`}, {"a list", `[1,"two",null,[3]]`}, {"an empty object", `{}`},
	{"an object", `{"z":1,"a":{"b":[{}]},"10":0,"9":0}`}, {"a long text", `"` + strings.Repeat("long ", 30_000) + `"`},
}

func stepCases() []fixed {
	var all []fixed
	for _, v := range values {
		all = append(all,
			fixed{id: "23.1", name: "a step returns " + v.name, run: func(c *attempt) {
				g := c.start(&program.Op{Op: "step", Name: "m", Into: "v"}, &program.Op{Op: "step", Name: "n", Send: []string{"v"}})
				g.give("m", v.value)
				q := g.give("n", `1`)
				out := g.completes()
				c.want(sameJSON(q.Vars["v"], []byte(v.value)), "the code got %.100s, want %.100s", q.Vars["v"], v.value)
				c.want(sameJSON(g.row("m").GetOutput().GetData(), []byte(v.value)), "recorded is %.100s", g.row("m").GetOutput().GetData())
				g.traced(out, "m", v.value, "n", "1")
			}},
			fixed{id: "23.3", name: "a step returns in replay, too, " + v.name, run: func(c *attempt) {
				g := c.start(&program.Op{Op: "step", Name: "m", Into: "v"}, &program.Op{Op: "step", Name: "n", Send: []string{"v"}})
				g.give("m", v.value)
				g.asked("n")
				g.suspend()
				q := g.give("n", `1`)
				g.traced(g.completes(), "m", v.value, "n", "1")
				c.want(sameJSON(q.Vars["v"], []byte(v.value)), "the code got %.100s, want %.100s", q.Vars["v"], v.value)
			}})
	}
	for _, v := range values[:6] {
		all = append(all, fixed{id: "23.1", name: "a program returns " + v.name, run: func(c *attempt) {
			out := c.start(returns(v.value)).completes()
			c.want(sameJSON(out.Value, []byte(v.value)), "it returned %s, want %s", out.Value, v.value)
		}})
	}
	return append(append(append(all, retryCases()...), bodyCases()...), wireCasesOfSteps()...)
}

func retryCases() []fixed {
	quick := func(p program.Retry) *program.Retry {
		p.InitialMS, p.Jitter = 1, -1
		return &p
	}
	var all []fixed
	for _, t := range []struct {
		name  string
		retry *program.Retry
		says  []program.Answer // in turn; the last is repeated
		tries int
		code  string
		kind  string
	}{
		{"three attempts by default", quick(program.Retry{}), []program.Answer{failing("t", false)}, 3, "", "t"},
		{"one attempt", quick(program.Retry{Attempts: 1}), []program.Answer{failing("t", false)}, 1, "", "t"},
		{"five attempts", quick(program.Retry{Attempts: 5}), []program.Answer{failing("t", false)}, 5, "", "t"},
		{"the second succeeds", quick(program.Retry{}), []program.Answer{failing("t", false), {Do: "return", Value: json.RawMessage(`1`)}}, 2, "ok", ""},
		{"a final error", quick(program.Retry{Attempts: 5}), []program.Answer{failing("t", true)}, 1, "", "t"},
		{"an error whose type is listed", quick(program.Retry{Attempts: 5, NonRetryable: []string{"t"}}), []program.Answer{failing("t", false)}, 1, "", "t"},
		{"an error whose message begins as listed", quick(program.Retry{Attempts: 5, NonRetryable: []string{"no "}}), []program.Answer{failing("t", false)}, 1, "", "t"},
		{"an error that is not listed", quick(program.Retry{Attempts: 2, NonRetryable: []string{"other", "o t"}}), []program.Answer{failing("t", false)}, 2, "", "t"},
		{"an error without a type", quick(program.Retry{Attempts: 2}), []program.Answer{failing("", false)}, 2, "", ""},
		{"a panic is retried", quick(program.Retry{Attempts: 2}), []program.Answer{{Do: "panic", Message: "boom"}}, 2, "", "panic"},
	} {
		all = append(all, fixed{id: "12.7", name: t.name, run: func(c *attempt) {
			g := c.start(try(list(&program.Op{Op: "step", Name: "m", Retry: t.retry}), list(step("a-rest"))))
			for i := range t.tries {
				q := g.say("m", t.says[min(i, len(t.says)-1)])
				c.want(q.Attempt == i+1, "attempt %d says that it is number %d", i+1, q.Attempt)
			}
			out := g.completes()
			if t.code == "ok" {
				g.traced(out, "m", `1`)
			} else {
				g.traced(out, "m", `{"code":"`+t.code+`","type":"`+t.kind+`"}`, "a-rest", `"did a-rest"`)
			}
			c.want(len(c.gate.questions(g.id()+"/m")) == t.tries, "%d attempts, want %d", len(c.gate.questions(g.id()+"/m")), t.tries)
		}})
	}
	for _, t := range []struct {
		name  string
		retry program.Retry
	}{{"attempts below -1", program.Retry{Attempts: -2}}, {"a coefficient below 1", program.Retry{Coefficient: 0.5}},
		{"a jitter above 1", program.Retry{Jitter: 1.5}}, {"an interval below 0", program.Retry{InitialMS: -5}},
		{"more than 10,000 attempts", program.Retry{Attempts: 10_001}}} {
		all = append(all, fixed{id: "27.4", name: "a policy with " + t.name + " fails the run", run: func(c *attempt) {
			g := c.start(&program.Op{Op: "step", Name: "a-m", Retry: &t.retry})
			d := g.fails()
			c.want(d.GetNonRetryable(), "the error is not final: %s", d)
			c.want(len(g.rows()) == 0, "it recorded %v", g.rows())
		}})
	}
	return append(all,
		fixed{id: "12.7", name: "a retry waits for as long as the policy says", run: func(c *attempt) {
			g := c.start(&program.Op{Op: "step", Name: "m", Retry: &program.Retry{Attempts: 2, InitialMS: 300, Jitter: -1}})
			g.say("m", failing("t", false))
			q := g.give("m", `1`)
			failed := g.message("the failure", func(m message) bool { return m.up.GetFailStep() != nil }).at
			took := c.gate.questions(q.Key)[1].at.Sub(failed)
			c.want(took >= 290*time.Millisecond, "the second attempt came after %s, want 300 ms", took)
			g.completes()
		}},
		fixed{id: "24.6", name: "an error asks for its own delay", run: func(c *attempt) {
			g := c.start(&program.Op{Op: "step", Name: "m", Retry: &program.Retry{Attempts: 2, InitialMS: 60_000, Jitter: -1}})
			a := failing("t", false)
			a.RetryAfterMS = 50
			g.say("m", a)
			g.give("m", `1`)
			g.completes()
		}},
		fixed{id: "24.6", name: "a delay of its own allows no further attempt", run: func(c *attempt) {
			g := c.start(&program.Op{Op: "step", Name: "m", Retry: &program.Retry{Attempts: 1}})
			a := failing("t", false)
			a.RetryAfterMS = 1
			g.say("m", a)
			g.fails()
		}},
		fixed{id: "12.10", name: "the number of an attempt counts interrupted ones", run: func(c *attempt) {
			g := c.start(step("m"))
			g.asked("m")
			g.until("that the step is announced", func() bool { return g.row("m") != nil })
			g.suspend()
			q := g.give("m", `1`)
			c.want(q.Attempt == 2, "the attempt says that it is number %d, want 2", q.Attempt)
			g.completes()
		}},
		fixed{id: "11.1", name: "a run that waits for a retry holds no worker", run: func(c *attempt) {
			g := c.start(&program.Op{Op: "step", Name: "m", Retry: &program.Retry{Attempts: 2, InitialMS: 60_000}})
			g.say("m", failing("t", false))
			g.until("that the run is released", func() bool {
				return g.get().GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING
			})
		}},
	)
}

func bodyCases() []fixed {
	code := func(text string) string { return `{"code":"` + text + `","type":""}` }
	return []fixed{
		{id: "12.5", name: "an attempt over its limit fails", run: func(c *attempt) {
			g := c.start(try(list(&program.Op{Op: "step", Name: "m", TimeoutMS: 60, Retry: &program.Retry{Attempts: 1}}), list(step("a-rest"))))
			g.asked("m")
			out := g.completes()
			g.traced(out, "m", code("TIMEOUT"), "a-rest", `"did a-rest"`)
		}},
		{id: "12.5", name: "an attempt over its limit is retried", run: func(c *attempt) {
			// a busy machine may need more attempts than two
			g := c.start(&program.Op{Op: "step", Name: "m", TimeoutMS: 400, Retry: &program.Retry{Attempts: 100, InitialMS: 1}})
			q := g.asked("m")
			g.until("the second attempt", func() bool { return len(c.gate.questions(q.Key)) == 2 })
			g.until("its result", func() bool {
				c.gate.answer(q.Key, program.Answer{Do: "return", Value: json.RawMessage(`2`)})
				return ended(g.get().GetStatus())
			})
			g.traced(g.completes(), "m", `2`)
		}},
		{id: "12.5", name: "the late result of an attempt over its limit is dropped", run: func(c *attempt) {
			g := c.start(try(list(&program.Op{Op: "step", Name: "m", TimeoutMS: 60, Retry: &program.Retry{Attempts: 1}}), list(step("n"))))
			g.asked("n")
			c.gate.answer(g.id()+"/m", program.Answer{Do: "return", Value: json.RawMessage(`"late"`)})
			g.give("n", `1`)
			g.traced(g.completes(), "m", code("TIMEOUT"), "n", "1")
		}},
		{id: "12.5", name: "the run's limit counts where the step has none", run: func(c *attempt) {
			g := c.startWith(func(r *kagziv1.StartWorkflowRequest) {
				r.Timeouts = &kagziv1.TimeoutConfig{StartToCloseTimeoutMs: 80}
			}, try(list(&program.Op{Op: "step", Name: "m", Retry: &program.Retry{Attempts: 1}}),
				list(&program.Op{Op: "step", Name: "a-rest", TimeoutMS: 60_000})))
			g.asked("m")
			g.traced(g.completes(), "m", code("TIMEOUT"), "a-rest", `"did a-rest"`)
		}},
		{id: "12.9", name: "the idempotency key is run and name", run: func(c *attempt) {
			g := c.start(step("m"))
			c.want(g.give("m", `1`).Key == g.id()+"/m", "the key is another")
			g.completes()
		}},
		{id: "12.9", name: "the key of a repeated name has its number", run: func(c *attempt) {
			g := c.start(step("m"), step("m"))
			g.give("m", `1`)
			c.want(g.give("m:2", `2`).Key == g.id()+"/m:2", "the key is another")
			g.traced(g.completes(), "m", `1`, "m", `2`)
		}},
		{id: "12.9", name: "all attempts have one key", run: func(c *attempt) {
			g := c.start(&program.Op{Op: "step", Name: "m", Retry: &program.Retry{InitialMS: 1}})
			a := g.say("m", failing("t", false))
			b := g.give("m", `1`)
			c.want(a.Key == b.Key, "keys %q and %q", a.Key, b.Key)
			g.completes()
		}},
		{id: "12.11", name: "a call within a step fails the run", run: func(c *attempt) {
			g := c.start(step("m"))
			g.say("m", program.Answer{Do: "call"})
			g.failsWith("within_step", noCode)
		}},
		{id: "12.8", name: "a body that is told of the end records nothing", run: func(c *attempt) {
			g := c.start(step("m"))
			g.say("m", program.Answer{Do: "wait"})
			g.terminate()
			g.ends()
			g.forgotten()
			c.beats(1)
			n := g.count(func(r *kagziv1.SessionRequest) bool {
				return r.GetFailStep() != nil || r.GetCompleteStep() != nil
			})
			c.want(n == 0, "%d results were sent after the run had ended", n)
		}},
		{id: "23.2", name: "a body whose answer has no value records null", run: func(c *attempt) {
			g := c.start(step("m"))
			g.say("m", program.Answer{Do: "return"})
			g.completes()
			out := valueText(g.row("m").GetOutput().GetData())
			c.want(out == "null" || out == "", "recorded is %s", out)
		}},
		{id: "24.4", name: "a panic of a body is the type panic", run: func(c *attempt) {
			g := c.start(try(list(&program.Op{Op: "step", Name: "m", Retry: &program.Retry{Attempts: 1}}), list(step("a-rest"))))
			g.say("m", program.Answer{Do: "panic", Message: "boom"})
			g.traced(g.completes(), "m", `{"code":"","type":"panic"}`, "a-rest", `"did a-rest"`)
			c.want(strings.Contains(g.row("m").GetError().GetMessage(), "boom"), "the message lost what was thrown")
		}},
		{id: "24.4", name: "a panic of the workflow fails the run with a stack", run: func(c *attempt) {
			d := c.start(&program.Op{Op: "panic", Message: "boom"}).fails()
			c.want(d.GetType() == "panic" && strings.Contains(d.GetMessage(), "boom") && d.GetStack() != "", "failed with %s", d)
		}},
		{id: "24.4", name: "a panic of one run leaves the others alone", run: func(c *attempt) {
			g := c.start(step("m"))
			g.asked("m")
			c.start(&program.Op{Op: "panic", Message: "boom"}).fails()
			g.give("m", `1`)
			g.traced(g.completes(), "m", `1`)
		}},
		{id: "27.2", name: "a result over 2 MiB fails its step for good", run: func(c *attempt) {
			g := c.start(try(list(step("m")), list(step("a-rest"))))
			g.give("m", `"`+strings.Repeat("x", 2<<20)+`"`)
			g.completes()
			d := g.row("m").GetError()
			c.want(d.GetNonRetryable(), "recorded is %.200s", d)
		}},
		{id: "27.2", name: "a result just below 2 MiB is recorded", run: func(c *attempt) {
			value := `"` + strings.Repeat("x", 2<<20-200) + `"`
			g := c.start(step("m"), step("n"))
			g.give("m", value)
			g.asked("n")
			c.want(sameJSON(g.row("m").GetOutput().GetData(), []byte(value)), "recorded is something else")
			c.abandon(c.ctx, g.f)
		}},
		{id: "27.1", name: "a history of 5 MiB reaches the code", run: func(c *attempt) {
			value := `"` + strings.Repeat("y", 1<<20) + `"`
			var ops []*program.Op
			for i := range 5 {
				ops = append(ops, &program.Op{Op: "step", Name: fmt.Sprint("m", i), Into: fmt.Sprint("v", i)})
			}
			g := c.start(append(ops, &program.Op{Op: "step", Name: "n"}, &program.Op{Op: "fail", Message: "enough", Type: "enough"})...)
			for i := range 5 {
				g.give(fmt.Sprint("m", i), value)
			}
			g.asked("n")
			g.suspend()
			g.give("n", `1`)
			c.want(g.fails().GetType() == "enough", "it failed otherwise")
			c.want(len(c.gate.questions(g.id()+"/m0")) == 1, "a recorded step ran again")
		}},
	}
}

// ofStep accepts the operations that report a step.
func ofStep(name string) func(*kagziv1.SessionRequest) bool {
	return func(r *kagziv1.SessionRequest) bool {
		return r.GetCompleteStep().GetStepName() == name && r.GetCompleteStep() != nil ||
			r.GetFailStep().GetStepName() == name && r.GetFailStep() != nil ||
			r.GetBeginStep().GetStepName() == name && r.GetBeginStep() != nil
	}
}

// resultOf selects the results of a step, without its announcement: whether there is one depends on time.
func resultOf(name string) func(*kagziv1.SessionRequest) bool {
	return func(r *kagziv1.SessionRequest) bool { return r.GetBeginStep() == nil && ofStep(name)(r) }
}

func wireCasesOfSteps() []fixed {
	return []fixed{
		{id: "12.1", name: "a short step is one operation with its name in a field of its own", run: func(c *attempt) {
			g := c.start(fork(list(step("a-m"))))
			g.completes()
			for _, m := range c.board.of(g.id()) {
				if s := m.up.GetCompleteStep(); s != nil {
					c.want(s.StepName != nil && s.GetStepId() == "" && s.GetBranch() == "1" && s.StartedAt != nil, "it sent %v", s)
				}
				if b := m.up.GetBeginStep(); b != nil {
					took := m.at.Sub(b.GetStartedAt().AsTime())
					c.want(took >= 240*time.Millisecond, "it announced the step after %s", took)
				}
			}
			c.want(g.count(resultOf("a-m")) == 1, "the result was sent %d times", g.count(resultOf("a-m")))
		}},
		{id: "12.2", name: "a long step is announced after 250 ms, with its limit and 2 s", run: func(c *attempt) {
			g := c.start(&program.Op{Op: "step", Name: "m", TimeoutMS: 5000})
			g.asked("m")
			m := g.message("the announcement", func(m message) bool { return m.up.GetBeginStep() != nil })
			b := m.up.GetBeginStep()
			took := m.at.Sub(b.GetStartedAt().AsTime()) // by the server's clock, which the subject knows to be late at most
			c.want(took >= 240*time.Millisecond, "it came after %s", took)
			c.want(b.GetStartToCloseTimeoutMs() == 7000, "its limit is %d ms, want 7000", b.GetStartToCloseTimeoutMs())
			g.give("m", `1`)
			g.completes()
		}},
		{id: "12.3", name: "all reports of an attempt have one started_at, and attempts differ", run: func(c *attempt) {
			g := c.start(&program.Op{Op: "step", Name: "m", Retry: &program.Retry{InitialMS: 1}})
			for i := range 2 {
				g.asked("m")
				g.until("the announcement", func() bool { return g.count(ofStep("m")) == 2*i+1 })
				if i == 0 {
					g.say("m", failing("t", false))
					continue
				}
				g.give("m", `1`)
			}
			g.completes()
			var at []string
			for _, r := range g.operations() {
				switch {
				case r.GetBeginStep() != nil:
					at = append(at, r.GetBeginStep().GetStartedAt().String())
				case r.GetFailStep() != nil:
					at = append(at, r.GetFailStep().GetStartedAt().String())
				case r.GetCompleteStep() != nil:
					at = append(at, r.GetCompleteStep().GetStartedAt().String())
				}
			}
			c.want(len(at) == 4 && at[0] == at[1] && at[2] == at[3] && at[0] != at[2], "started_at were %q", at)
		}},
		{id: "12.4", name: "the next body waits until the result is durable", run: func(c *attempt) { waitsForResult(c, step("n")) }},
		{id: "12.4", name: "the body of another branch waits as well", run: func(c *attempt) {
			waitsForResult(c, fork(list(step("n"))))
		}},
	}
}

// waitsForResult checks that a step after m does not begin while the result of m is refused for a while.
func waitsForResult(c *attempt, then *program.Op) {
	g := c.start(step("m"), then)
	g.asked("m")
	left := 2
	g.hook(func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
		if !ofStep("m")(r) || left == 0 {
			return nil
		}
		left--
		return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE, Message: "not now"}
	})
	g.give("m", `1`)
	q := g.give("n", `2`)
	g.completes()
	var durable time.Time
	for _, m := range c.board.of(g.id()) {
		if m.to != nil && ofStep("m")(m.to) && m.down.GetError() == nil {
			durable = m.at
		}
	}
	began := c.gate.questions(q.Key)[0].at
	c.want(!durable.IsZero() && !began.Before(durable), "step n began %s before the result of m was durable", durable.Sub(began))
}
