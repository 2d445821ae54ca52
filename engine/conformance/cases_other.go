package conformance

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kagzi/kagzi/engine/conformance/program"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func errorCases() []fixed {
	fail := func(message, kind string, final bool) *program.Op {
		return &program.Op{Op: "fail", Message: message, Type: kind, NonRetryable: final}
	}
	return []fixed{
		{id: "24.1", name: "an error without a type", run: func(c *attempt) {
			d := c.start(fail("no luck", "", false)).fails()
			c.want(d.GetMessage() == "no luck" && d.GetType() == "" && d.GetCode() == noCode && !d.GetNonRetryable(), "failed with %s", d)
		}},
		{id: "24.1", name: "an error with a type", run: func(c *attempt) {
			d := c.start(fail("no luck", "declined", true)).fails()
			c.want(d.GetMessage() == "no luck" && d.GetType() == "declined" && d.GetCode() == noCode && d.GetNonRetryable(), "failed with %s", d)
		}},
		{id: "24.1", name: "an error of a step", run: func(c *attempt) {
			g := c.start(try(list(step("m")), list(step("a-rest"))))
			g.say("m", failing("declined", true))
			g.completes()
			d := g.row("m").GetError()
			c.want(d.GetMessage() == "no declined" && d.GetType() == "declined" && d.GetCode() == noCode && d.GetNonRetryable(), "recorded is %s", d)
		}},
		{id: "24.2", name: "a step's error that nobody catches", run: func(c *attempt) {
			g := c.start(step("m"))
			g.say("m", failing("declined", true))
			d := g.fails()
			c.want(d.GetMessage() == "step m: no declined" && d.GetType() == "declined" && d.GetCode() == noCode && d.GetNonRetryable(), "failed with %s", d)
		}},
		{id: "24.2", name: "a step's error in replay", run: func(c *attempt) {
			g := c.start(try(list(step("m")), list(step("n"))))
			g.say("m", failing("declined", true))
			g.asked("n")
			g.suspend()
			g.give("n", "1")
			g.traced(g.completes(), "m", `{"code":"","type":"declined"}`, "n", "1")
		}},
		{id: "24.2", name: "a step's time-out that nobody catches", run: func(c *attempt) {
			g := c.start(&program.Op{Op: "step", Name: "m", TimeoutMS: 40, Retry: &program.Retry{Attempts: 1}})
			d := g.fails()
			c.want(d.GetCode() == kagziv1.ErrorCode_ERROR_CODE_TIMEOUT, "failed with %s", d)
		}},
		{id: "24.3", name: "a long message is cut at 16 KiB", run: func(c *attempt) {
			d := c.start(fail(strings.Repeat("é", 20_000), "", false)).fails()
			c.want(len(d.GetMessage()) <= 16<<10 && len(d.GetMessage()) > 16<<10-8 && strings.HasSuffix(d.GetMessage(), " … [cut]") &&
				utf8.ValidString(d.GetMessage()), "it has %d bytes and ends %q", len(d.GetMessage()), d.GetMessage()[max(0, len(d.GetMessage())-20):])
		}},
		{id: "24.3", name: "a long type is cut at 255 bytes", run: func(c *attempt) {
			d := c.start(fail("m", strings.Repeat("t", 300), false)).fails()
			c.want(len(d.GetType()) == 255 && strings.HasSuffix(d.GetType(), " … [cut]"), "it is %q", d.GetType())
		}},
		{id: "24.3", name: "NUL becomes U+FFFD", run: func(c *attempt) {
			d := c.start(fail("a\x00b", "", false)).fails()
			c.want(d.GetMessage() == "a\uFFFDb", "it is %q", d.GetMessage())
		}},
		{id: "24.1", name: "a run that is retried as a whole", run: func(c *attempt) {
			g := c.startWith(func(r *kagziv1.StartWorkflowRequest) {
				r.RetryPolicy = &kagziv1.RetryPolicy{MaximumAttempts: 2, InitialIntervalMs: 1}
			}, step("a-m"), &program.Op{Op: "info", Into: "i"}, &program.Op{Op: "step", Name: "n", Send: []string{"i"}}, fail("m", "", false))
			a := g.give("n", "1")
			d := g.fails()
			var i struct{ Attempt int }
			c.check(json.Unmarshal(a.Vars["i"], &i))
			c.want(i.Attempt == 1 && d.GetMessage() == "m", "the first attempt saw %s", a.Vars["i"])
			c.want(len(c.gate.questions(g.id()+"/n")) == 1, "a completed step ran again")
		}},
		{id: "23.4", name: "an input that cannot be decoded fails the run", run: func(c *attempt) {
			g := c.startWith(func(r *kagziv1.StartWorkflowRequest) { r.Input.Data = []byte(`{"ops":"many"}`) })
			g.failsWith("unreadable", noCode)
		}},
		{id: "23.4", name: "an input that is no JSON fails the run", run: func(c *attempt) {
			g := c.startWith(func(r *kagziv1.StartWorkflowRequest) { r.Input.Data = []byte(`{"ops`) })
			g.failsWith("unreadable", noCode)
		}},
		{id: "23.2", name: "an input without data is no value", run: func(c *attempt) {
			g := c.startWith(func(r *kagziv1.StartWorkflowRequest) { r.Input = nil })
			c.want(len(g.completes().Trace) == 0, "it did something")
		}},
		{id: "29.1", name: "the run's information", run: func(c *attempt) {
			id := "x-" + time.Now().Format("150405.000000000")
			out := c.startWith(func(r *kagziv1.StartWorkflowRequest) { r.ExternalId, r.Version = id, "v7" },
				&program.Op{Op: "info", Into: "i"}).completes()
			want := `{"type":"conformance","queue":"conformance","namespace":"default","external_id":"` + id + `","version":"v7","attempt":1}`
			c.want(sameJSON(out.Vars["i"], []byte(want)), "it is %s, want %s", out.Vars["i"], want)
		}},
	}
}

func noteCases() []fixed {
	note := func(text string) *program.Op { return &program.Op{Op: "note", Text: text} }
	has := func(g *going, text string) {
		g.until("the note", func() bool { return g.get().GetNote() == text })
	}
	return []fixed{
		{id: "21.1", name: "a note is set", run: func(c *attempt) {
			g := c.start(note("at work"), step("m"))
			g.asked("m")
			has(g, "at work")
			g.give("m", "1")
			g.completes()
			c.want(len(g.rows()) == 1, "a note is recorded in the history")
		}},
		{id: "21.1", name: "a long note is cut at 255 bytes", run: func(c *attempt) {
			g := c.start(note(strings.Repeat("n", 300)), step("m"))
			g.asked("m")
			g.until("the note", func() bool { n := g.get().GetNote(); return len(n) == 255 && strings.HasSuffix(n, " … [cut]") })
			g.give("m", "1")
			g.completes()
		}},
		{id: "21.2", name: "of several notes the last is sent", run: func(c *attempt) {
			var ops []*program.Op
			for _, n := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
				ops = append(ops, note(n))
			}
			began := time.Now()
			g := c.start(append(ops, step("m"))...)
			g.asked("m")
			has(g, "9")
			n := g.count(func(r *kagziv1.SessionRequest) bool { return r.GetSetNote() != nil })
			most := 2 + int(time.Since(began)/(250*time.Millisecond)) // a busy machine may need longer to set them
			c.want(n <= most, "%d notes were sent", n)
			g.give("m", "1")
			g.completes()
		}},
		{id: "21.2", name: "a pending note goes before the end", run: func(c *attempt) {
			g := c.start(note("1"), step("a-m"), note("2"))
			g.completes()
			has(g, "2")
		}},
		{id: "21.3", name: "a replay sets no note", run: func(c *attempt) {
			g := c.start(note("1"), step("m"), step("n"))
			g.give("m", "1")
			g.asked("n")
			g.suspend()
			g.give("n", "1")
			g.completes()
			n := g.count(func(r *kagziv1.SessionRequest) bool { return r.GetSetNote().GetNote() == "1" })
			c.want(n == 1, "the note was sent %d times", n)
		}},
	}
}

func continueCases() []fixed {
	next := func(ops ...*program.Op) *program.Op {
		return &program.Op{Op: "continue", Program: &program.Program{Ops: ops}}
	}
	last := func(c *attempt, g *going) *kagziv1.Workflow {
		g.ends()
		all, err := g.f.members(c.ctx)
		c.check(err)
		run := all[len(all)-1].run
		c.want(run.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, "the last run is %s: %s", run.GetStatus(), run.GetError())
		return run
	}
	return []fixed{
		{id: "22.1", name: "a run continues as new", run: func(c *attempt) {
			g := c.start(step("a-m"), next(step("a-m"), returns(`"last"`)))
			run := last(c, g)
			c.want(run.GetContinuedFromRunId() == g.id() && strings.Contains(string(run.GetOutput().GetData()), "last"), "it is %s", run)
			c.want(g.get().Output == nil, "the first run has an output")
		}},
		{id: "22.1", name: "what is inherited", run: func(c *attempt) {
			id := "c-" + time.Now().Format("150405.000000000")
			g := c.startWith(func(r *kagziv1.StartWorkflowRequest) {
				r.ExternalId, r.Version, r.Tags = id, "v3", map[string]string{"k": "v"}
			}, next(&program.Op{Op: "info", Into: "i"}))
			run := last(c, g)
			c.want(run.GetExternalId() == id && run.GetVersion() == "v3" && run.GetTags()["k"] == "v" && run.GetTaskQueue() == queue, "it is %s", run)
		}},
		{id: "22.1", name: "three runs in a row", run: func(c *attempt) {
			g := c.start(next(next(next(returns("3")))))
			last(c, g)
			all, err := g.f.members(c.ctx)
			c.check(err)
			c.want(len(all) == 4, "%d runs, want 4", len(all))
		}},
		{id: "22.1", name: "unread signals go on", run: func(c *attempt) {
			g := c.start(step("m"), next(wait("go"), returns(`"got"`)))
			g.signal("go", "1")
			g.give("m", "1")
			last(c, g)
		}},
		{id: "22.2", name: "a branch that continues as new", run: func(c *attempt) {
			g := c.start(fork(list(step("a-m"), next(returns(`"last"`)))))
			last(c, g)
		}},
	}
}
