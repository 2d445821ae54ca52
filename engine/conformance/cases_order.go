package conformance

import (
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/conformance/program"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// idiom is a program whose calls depend on the order of results. events are the names of steps and
// "signal NAME" in the order in which they end; trace follows from it. Of an event, the steps whose bodies
// wait at the gate afterwards are behind "->".
type idiom struct {
	id, name string
	ops      []*program.Op
	events   []string
	trace    []string
}

func idioms() []idiom {
	race := func(rest string) []*program.Op {
		return list(&program.Op{Op: "first", Bodies: [][]*program.Op{list(step("x1")), list(step("x2"))}, Rest: rest}, step("last"))
	}
	queue := list(fork(
		list(&program.Op{Op: "step", Name: "x1", Into: "v1"}, &program.Op{Op: "push", List: "l", Var: "v1"}),
		list(&program.Op{Op: "step", Name: "x2", Into: "v2"}, &program.Op{Op: "push", List: "l", Var: "v2"}),
		list(&program.Op{Op: "step", Name: "x3", Into: "v3"}, &program.Op{Op: "push", List: "l", Var: "v3"})),
		&program.Op{Op: "each", List: "l", Prefix: "a-"}, step("last"))
	pool := list(&program.Op{Op: "pool", Width: 2, Bodies: [][]*program.Op{list(step("x1")), list(step("x2")), list(step("x3")), list(step("x4"))}}, step("last"))
	signal := list(&program.Op{Op: "first", Bodies: [][]*program.Op{list(wait("go")), list(step("x1"))}, Rest: "wait"}, step("last"))
	nested := list(fork(list(fork(list(step("x1")), list(step("x2"))), step("a-in")), list(step("x3"))), step("last"))
	did := func(name string) string { // what a step returns: its name, so that each can make names of it
		if strings.HasPrefix(name, "a-") {
			return `"did ` + name + `"`
		}
		return `"` + name + `"`
	}
	return []idiom{
		{"16.9", "the first of two, the first wins", race("wait"), []string{"x1 -> x2", "x2 -> last"}, []string{"x1", did("x1"), "first", "0", "x2", did("x2")}},
		{"16.9", "the first of two, the second wins", race("wait"), []string{"x2 -> x1", "x1 -> last"}, []string{"x2", did("x2"), "first", "1", "x1", did("x1")}},
		{"16.9", "the first of two, the other is left", race(""), []string{"x2 -> last x1"}, []string{"x2", did("x2"), "first", "1"}},
		{"16.9", "the first of two, the other ends later", race(""), []string{"x2 -> last x1", "x1 -> last"}, []string{"x2", did("x2"), "first", "1", "x1", did("x1")}},
		{"16.3", "a queue in order", queue, []string{"x1 -> x2 x3", "x2 -> x3", "x3 -> last"}, []string{"x1", did("x1"), "x2", did("x2"), "x3", did("x3"),
			"a-x1", did("a-x1"), "a-x2", did("a-x2"), "a-x3", did("a-x3")}},
		{"16.3", "a queue in reverse order", queue, []string{"x3 -> x1 x2", "x2 -> x1", "x1 -> last"}, []string{"x3", did("x3"), "x2", did("x2"), "x1", did("x1"),
			"a-x3", did("a-x3"), "a-x2", did("a-x2"), "a-x1", did("a-x1")}},
		{"16.3", "a queue in another order", queue, []string{"x2 -> x1 x3", "x3 -> x1", "x1 -> last"}, []string{"x2", did("x2"), "x3", did("x3"), "x1", did("x1"),
			"a-x2", did("a-x2"), "a-x3", did("a-x3"), "a-x1", did("a-x1")}},
		{"16.1", "a pool of two, in order", pool, []string{"x1 -> x2 x3", "x2 -> x3 x4", "x3 -> x4", "x4 -> last"}, []string{"x1", did("x1"), "x2", did("x2"), "x3", did("x3"), "x4", did("x4")}},
		{"16.1", "a pool of two, the second is fast", pool, []string{"x2 -> x1 x3", "x3 -> x1 x4", "x4 -> x1", "x1 -> last"}, []string{"x2", did("x2"), "x3", did("x3"), "x4", did("x4"), "x1", did("x1")}},
		{"16.9", "a signal before a step", signal, []string{"signal go -> x1", "x1 -> last"}, []string{"go", `"go"`, "first", "0", "x1", did("x1")}},
		{"16.9", "a step before a signal", signal, []string{"x1 ->", "signal go -> last"}, []string{"x1", did("x1"), "first", "1", "go", `"go"`}},
		{"16.3", "branches of branches, the inner last", nested, []string{"x3 -> x1 x2", "x2 -> x1", "x1 -> last"}, []string{"x3", did("x3"), "x2", did("x2"), "x1", did("x1"), "a-in", did("a-in")}},
		{"16.3", "branches of branches, the outer last", nested, []string{"x2 -> x1 x3", "x1 -> x3", "ended a-in -> x3", "x3 -> last"}, []string{"x2", did("x2"), "x1", did("x1"), "a-in", did("a-in"), "x3", did("x3")}},
	}
}

// play lets the events of an idiom happen. between is called after each.
func (i idiom) play(g *going, between func()) {
	for _, event := range i.events {
		e, waiting, _ := strings.Cut(event, " ->")
		name, isSignal := strings.CutPrefix(e, "signal ")
		if ended, ok := strings.CutPrefix(e, "ended "); ok {
			g.recorded(ended)
			continue
		}
		if isSignal {
			g.until("the wait", func() bool { return g.row(name) != nil })
			g.signal(name, `"`+name+`"`)
		} else {
			g.give(name, `"`+name+`"`)
		}
		g.recorded(name)
		g.waiting(strings.TrimSpace(waiting))
		between()
	}
	g.give("last", `"end"`)
	g.traced(g.completes(), append(append([]string{}, i.trace...), "last", `"end"`)...)
}

func orderCases() []fixed {
	var all []fixed
	for _, i := range idioms() {
		all = append(all,
			fixed{id: i.id, name: i.name + ", live", run: func(c *attempt) { i.run(c, false) }},
			fixed{id: i.id, name: i.name + ", in replay", run: func(c *attempt) { i.run(c, true) }})
	}
	return append(all,
		fixed{id: "16.3", name: "the order of results is recorded", run: func(c *attempt) {
			g := c.start(fork(list(step("x1")), list(step("x2"))))
			g.give("x2", "1")
			g.recorded("x2")
			g.give("x1", "1")
			g.completes()
			c.want(g.row("x2").GetSettled() < g.row("x1").GetSettled(), "x2 has the place %d, x1 %d", g.row("x2").GetSettled(), g.row("x1").GetSettled())
		}},
		fixed{id: "16.7", name: "the start of a child does not wait for its end", needs: "19", run: func(c *attempt) {
			g := c.start(startOnly(child("kid", step("k"), returns("1"))), step("m"), &program.Op{Op: "wait_all", Names: []string{"kid"}})
			g.give("m", "1")
			g.recorded("m")
			g.askedIn(g.row("kid").GetChildRunId(), "k")
			c.gate.answer(g.row("kid").GetChildRunId()+"/k", program.Answer{Do: "return"})
			g.traced(g.completes(), "m", "1", "wait_all", "[1]")
		}},
		fixed{id: "16.8", name: "several children are waited for in one call", needs: "19", run: func(c *attempt) {
			g := c.start(startOnly(child("k1", returns("1"))), startOnly(child("k2", returns("2"))), startOnly(child("k3", returns("3"))),
				&program.Op{Op: "wait_all", Names: []string{"k3", "k1", "k2"}})
			g.traced(g.completes(), "wait_all", "[3,1,2]")
		}},
		fixed{id: "16.9", name: "the first of children", needs: "19", run: func(c *attempt) {
			g := c.start(startOnly(child("k1", step("k"), returns("1"))), startOnly(child("k2", step("k"), returns("2"))),
				&program.Op{Op: "first", Children: []string{"k1", "k2"}}, step("a-last"))
			g.until("both children", func() bool { return g.row("k2") != nil })
			g.askedIn(g.row("k1").GetChildRunId(), "k")
			second := g.row("k2").GetChildRunId()
			g.askedIn(second, "k")
			c.gate.answer(second+"/k", program.Answer{Do: "return"})
			g.until("the first", func() bool { return g.row("a-last") != nil })
			c.gate.answer(g.row("k1").GetChildRunId()+"/k", program.Answer{Do: "return"})
			g.traced(g.completes(), "first", "1", "a-last", `"did a-last"`)
		}},
		fixed{id: "11.4", name: "a run whose branches all wait is parked", run: func(c *attempt) {
			g := c.start(fork(list(wait("go")), list(wait("go-too")), list(nap("nap", 600_000))))
			g.parked()
			g.cancel(time.Second)
		}},
		fixed{id: "11.1", name: "a sleep parks the run", run: func(c *attempt) {
			c.start(nap("nap", 600_000)).parked()
		}},
		fixed{id: "11.7", name: "a held wait hears of its signal at once", run: func(c *attempt) {
			g := c.start(fork(list(wait("go")), list(step("m"))))
			g.asked("m")
			g.until("the wait", func() bool { return g.row("go") != nil })
			g.signal("go", "1")
			g.recorded("go")
			g.give("m", "2")
			g.traced(g.completes(), "go", "1", "m", "2")
		}},
		fixed{id: "12.6", name: "a sleep of no length is recorded and parks nothing", run: func(c *attempt) { passes(c, nap("nap", 0)) }},
		fixed{id: "12.6", name: "a sleep of negative length likewise", run: func(c *attempt) { passes(c, nap("nap", -5000)) }},
		fixed{id: "12.6", name: "a sleep until a past time likewise", run: func(c *attempt) {
			passes(c, &program.Op{Op: "sleep_until", Name: "nap", At: "2020-01-01T00:00:00Z"})
		}},
		fixed{id: "12.6", name: "a timer that was held is ended by its holder", run: func(c *attempt) {
			g := c.start(fork(list(nap("nap", 80)), list(step("m"))))
			g.asked("m")
			g.recorded("nap")
			n := g.count(func(r *kagziv1.SessionRequest) bool {
				return r.GetSleep().GetOver() && r.GetSleep().GetHold()
			})
			c.want(n == 1, "over was sent %d times", n)
			g.give("m", "1")
			g.traced(g.completes(), "nap", "null", "m", "1")
		}},
		fixed{id: "9.3", name: "a sleep lasts as long as it says", run: func(c *attempt) {
			g := c.start(step("a-m"), nap("nap", 300), step("n"))
			q := g.give("n", "1")
			sent := g.message("the sleep", func(m message) bool { return m.up.GetSleep() != nil }).at
			took := c.gate.questions(q.Key)[0].at.Sub(sent)
			c.want(took >= 290*time.Millisecond, "it lasted %s, want 300 ms", took)
			g.completes()
		}},
	)
}

// passes checks a sleep whose time has passed.
func passes(c *attempt, o *program.Op) {
	g := c.start(o, step("a-m"))
	g.traced(g.completes(), "nap", "null", "a-m", `"did a-m"`)
	c.want(g.row("nap").GetKind() == kagziv1.StepKind_STEP_KIND_SLEEP, "the sleep is not recorded")
	tasks := 0
	for _, m := range c.board.of(g.id()) {
		if m.down.GetTask() != nil {
			tasks++
		}
	}
	c.want(tasks == 1, "the run was claimed %d times", tasks)
}

// run plays an idiom: live, or with a new activation after each event.
func (i idiom) run(c *attempt, replay bool) {
	g := c.start(i.ops...)
	between := func() {}
	if replay {
		between = g.suspend
	}
	i.play(g, between)
}
