package conformance

import (
	"slices"

	"github.com/kagzi/kagzi/engine/conformance/program"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// changed is a case about code that changes while a run is open. The subject is started twice: once with
// the code before, once with the code after.
type changed struct {
	id, name      string
	before, after []*program.Op
	how           string         // the subject's option on divergence
	drive         func(g *going) // brings the run to the point of the change; nil: until it is parked
	then          func(g *going) // is called with the code after
	restored      func(g *going) // is called with the code before once more; nil: not needed
}

// diverges checks that the run is paused with these calls.
func diverges(made, owed []string) func(*going) {
	return func(g *going) {
		g.signal("go", "1")
		g.diverged(made, owed)
	}
}

func (g *going) diverged(made, owed []string) {
	var w *kagziv1.Workflow
	g.until("that the run is paused because its code has diverged", func() bool {
		w = g.get()
		return w.GetPauseReason() == "diverged"
	})
	names := func(calls []*kagziv1.Call) (all []string) {
		for _, c := range calls {
			all = append(all, c.GetName())
		}
		return all
	}
	d := w.GetDivergences()[0]
	g.c.want(sameSet(names(d.GetMade()), made) && slices.Equal(names(d.GetOwed()), owed), "reported are made %q and owed %q, want %q and %q",
		names(d.GetMade()), names(d.GetOwed()), made, owed)
	g.c.want(w.GetAttempts() == 1, "an attempt was counted")
}

func goesOn(trace ...string) func(*going) {
	return func(g *going) {
		g.signal("go", "1")
		g.traced(g.completes(), slices.Clone(trace)...)
	}
}

func divergenceCases() []changed {
	a := func(n string) *program.Op { return step("a-" + n) }
	did := func(n string) string { return `"did a-` + n + `"` }
	patch := func(id string) *program.Op { return &program.Op{Op: "patched", ID: id, Then: list(a("new"))} }
	unread := &program.Op{Op: "step", Name: "m", Read: "number"}
	return []changed{
		{id: "17.3", name: "a step put before recorded ones", before: list(a("1"), wait("go"), a("2")), after: list(a("new"), a("1"), wait("go"), a("2")),
			then: diverges([]string{"a-new"}, []string{"a-1", "go"})},
		{id: "17.3", name: "a step that is removed", before: list(a("1"), a("2"), wait("go")), after: list(a("2"), wait("go"), a("3")),
			then: diverges([]string{"a-3"}, []string{"a-1"})},
		{id: "17.3", name: "a step that is renamed", before: list(a("1"), wait("go")), after: list(a("9"), wait("go")),
			then: diverges([]string{"a-9"}, []string{"a-1", "go"})},
		{id: "17.3", name: "a signal that is renamed", before: list(a("1"), wait("go")), after: list(a("1"), wait("come")),
			then: diverges([]string{"come"}, []string{"go"})},
		{id: "17.3", name: "a new sleep", before: list(a("1"), wait("go")), after: list(nap("nap", 1), a("1"), wait("go")),
			then: diverges([]string{"nap"}, []string{"a-1", "go"})},
		{id: "17.3", name: "a new child", before: list(a("1"), wait("go")), after: list(child("kid", returns("1")), a("1"), wait("go")),
			then: diverges([]string{"kid"}, []string{"a-1", "go"})},
		{id: "17.3", name: "new calls in two branches", before: list(a("1"), wait("go")), after: list(fork(list(a("x")), list(a("y"))), a("1"), wait("go")),
			then: diverges([]string{"a-x", "a-y"}, []string{"a-1", "go"})},
		{id: "17.4", name: "a step that becomes a sleep", before: list(a("1"), wait("go")), after: list(nap("a-1", 1), wait("go")),
			then: diverges([]string{"a-1"}, []string{"a-1", "go"})},
		{id: "17.2", name: "a step put behind all recorded ones", before: list(a("1"), wait("go")), after: list(a("1"), wait("go"), a("new")),
			then: goesOn("a-1", did("1"), "go", "1", "a-new", did("new"))},
		{id: "17.1", name: "recorded steps in another order", before: list(a("1"), a("2"), wait("go")), after: list(a("2"), a("1"), wait("go")),
			then: goesOn("a-2", did("2"), "a-1", did("1"), "go", "1")},
		{id: "17.2", name: "a new step waits for the owed calls of another branch", before: list(fork(list(a("1"), a("2"), wait("go")), list(a("3")))),
			after: list(fork(list(a("1"), a("2"), wait("go")), list(a("3"), a("new")))), then: func(g *going) {
				g.signal("go", "1")
				g.completes()
				g.c.want(g.row("a-new").GetSettled() > 0, "the new step did not run")
			}},
		{id: "17.8", name: "code that blocks is not at rest", before: list(fork(list(a("1"), wait("go")), list(a("3")))),
			after: list(fork(list(&program.Op{Op: "block", MS: 1500}, a("1"), wait("go")), list(a("3"), a("new")))), then: func(g *going) {
				g.signal("go", "1")
				g.completes()
				g.c.want(g.row("a-new").GetSettled() > 0, "the new step did not run")
			}},
		{id: "17.7", name: "patched is false for a run that has passed the place", before: list(a("1"), wait("go")), after: list(patch("p"), a("1"), wait("go")),
			then: goesOn("a-1", did("1"), "go", "1")},
		{id: "17.7", name: "patched is true for a run that comes to the place", before: list(a("1"), wait("go")), after: list(a("1"), wait("go"), patch("p"), a("2")),
			then: goesOn("a-1", did("1"), "go", "1", "a-new", did("new"), "a-2", did("2"))},
		{id: "17.1", name: "a patch that is removed and listed", before: list(patch("gone"), wait("go")), after: list(a("new"), wait("go"), a("2")),
			then: goesOn("a-new", did("new"), "go", "1", "a-2", did("2"))},
		{id: "17.1", name: "a patch that is removed and not listed", before: list(patch("kept"), wait("go")), after: list(a("new"), wait("go"), a("2")),
			then: diverges([]string{"a-2"}, []string{"kagzi:patched:kept"})},
		{id: "17.9", name: "an end without recorded calls", before: list(a("1"), a("2"), wait("go")), after: list(a("1"), wait("go")), then: func(g *going) {
			goesOn("a-1", did("1"), "go", "1")(g)
			g.c.want(slices.Equal(g.get().GetUnreached(), []string{"a-2"}), "unreached are %q", g.get().GetUnreached())
		}},
		{id: "17.1", name: "an accepted divergence", before: list(a("1"), wait("go"), a("2")), after: list(a("new"), wait("go"), a("2")), then: func(g *going) {
			diverges([]string{"a-new"}, []string{"a-1", "go"})(g)
			g.resume(true)
			g.completes()
		}},
		{id: "17.4", name: "another kind of call under an accepted name", before: list(a("1"), wait("go")), after: list(nap("a-1", 1), wait("go")), then: func(g *going) {
			diverges([]string{"a-1"}, []string{"a-1", "go"})(g)
			g.resume(true)
			g.completes()
			g.c.want(g.row("a-1:2") != nil, "the sleep is not recorded as a-1:2")
		}},
		{id: "17.5", name: "code that is restored", before: list(a("1"), wait("go"), a("2")), after: list(a("new"), a("1"), wait("go"), a("2")),
			then: diverges([]string{"a-new"}, []string{"a-1", "go"}), restored: func(g *going) {
				g.resume(false)
				g.traced(g.completes(), "a-1", did("1"), "go", "1", "a-2", did("2"))
			}},
		{id: "23.4", name: "a recorded result that cannot be decoded", before: list(step("m"), wait("go")), after: list(unread, wait("go")),
			drive: func(g *going) { g.give("m", `"text"`); g.parked() }, then: func(g *going) {
				g.signal("go", "1")
				g.failsWith("unreadable", noCode)
			}},
		{id: "17.6", name: "option fail", how: "fail", before: list(a("1"), wait("go")), after: list(a("new"), a("1"), wait("go")), then: func(g *going) {
			g.signal("go", "1")
			g.failsWith("nondeterministic", noCode)
		}},
		{id: "17.6", name: "option fail, a call of another kind", how: "fail", before: list(a("1"), wait("go")), after: list(nap("a-1", 1), wait("go")),
			then: func(g *going) { g.signal("go", "1"); g.failsWith("nondeterministic", noCode) }},
		{id: "17.6", name: "option warn", how: "warn", before: list(a("1"), wait("go")), after: list(a("new"), wait("go")), then: func(g *going) {
			g.signal("go", "1")
			g.completes()
			g.c.want(g.row("a-new") != nil, "the new step did not run")
		}},
		{id: "17.2", name: "a cancellation waits for owed calls", before: list(a("1"), wait("go")), after: list(a("new"), a("1"), wait("go")), then: func(g *going) {
			g.cancel(2e9)
			run := g.ends()
			g.c.want(run.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED && g.row("a-new") == nil, "the run is %s, rows are %v", run.GetStatus(), g.rows())
		}},
	}
}

// program returns what a case runs: which code it has depends on the subject.
func (x *changed) program() []*program.Op {
	return list(&program.Op{Op: "variant", Cases: [][]*program.Op{x.before, x.after}})
}
