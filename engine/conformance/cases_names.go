package conformance

import (
	"fmt"
	"strings"

	"github.com/kagzi/kagzi/engine/conformance/program"
)

func nameCases() []fixed {
	var all []fixed
	for _, name := range []string{"a", "-", ":", "0", "A.Z_0:9/x-y", "charge:2", strings.Repeat("x", 255)} {
		all = append(all, fixed{id: "15.1", name: fmt.Sprintf("the name %.20q is recorded as it is", name), run: func(c *attempt) {
			g := c.start(step(name))
			g.give(name, `1`)
			g.traced(g.completes(), name, `1`)
			c.want(g.row(name) != nil, "there is no such row")
		}})
	}
	for _, name := range []string{"", strings.Repeat("x", 256), "a b", "café", "a,b", "a=b", "a\n", "a\x00", "a?", "a*", "a\\b", "\u200b", "a'"} {
		all = append(all, badName("15.1", fmt.Sprintf("the step name %.20q", name), step(name)))
	}
	for _, name := range []string{"kagzi:x", "kagzi:", "kagzi:now", "kagzi:ended"} {
		all = append(all, badName("15.2", "the step name "+name, step(name)))
	}
	all = append(all, badName("15.1", "the name of a sleep", nap("a b", 1)), badName("15.1", "the name of a signal", wait("a b")),
		needs("19", badName("15.1", "the name of a child", child("a b", returns("1")))), badName("15.2", "a sleep named kagzi:x", nap("kagzi:x", 1)),
		badName("15.2", "a signal named kagzi:x", wait("kagzi:x")), needs("19", badName("15.2", "a child named kagzi:x", child("kagzi:x", returns("1")))))
	return append(append(all, numberCases()...), branchCases()...)
}

// needs returns a case that also uses another section.
func needs(section string, f fixed) fixed {
	f.needs = section
	return f
}

func badName(id, what string, o *program.Op) fixed {
	return fixed{id: id, name: what + " fails the run before anything is sent", run: func(c *attempt) {
		g := c.start(o)
		d := g.fails()
		c.want(d.GetNonRetryable(), "the error is not final: %s", d)
		c.want(len(g.rows()) == 0, "it recorded %v", g.rows())
	}}
}

// recordsAs checks the names and branches of a program's rows, "name" or "name branch".
func recordsAs(id, name string, ops []*program.Op, want ...string) fixed {
	return fixed{id: id, name: name, run: func(c *attempt) {
		g := c.start(ops...)
		g.completes()
		var got []string
		for _, s := range g.rows() {
			got = append(got, strings.TrimSpace(s.GetName()+" "+s.GetBranch()))
		}
		c.want(sameSet(got, want), "recorded are %q, want %q", got, want)
	}}
}

func sameSet(a, b []string) bool {
	count := map[string]int{}
	for _, x := range a {
		count[x]++
	}
	for _, x := range b {
		count[x]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// clashes checks that a program fails because of its names.
func clashes(name string, ops ...*program.Op) fixed {
	return fixed{id: "15.7", name: name, run: func(c *attempt) { c.start(ops...).failsWith("step_name_clash", noCode) }}
}

func numberCases() []fixed {
	a := step("a-m")
	return []fixed{
		recordsAs("15.4", "a repeated name is numbered", list(a, a, a), "a-m", "a-m:2", "a-m:3"),
		recordsAs("15.4", "a number that the code uses is skipped", list(step("a-m:2"), a, a), "a-m:2", "a-m", "a-m:3"),
		recordsAs("15.4", "a numbered name may be repeated", list(a, a, step("a-m:2")), "a-m", "a-m:2", "a-m:2:2"),
		recordsAs("15.4", "calls of different kinds share names", list(a, nap("a-m", 1)), "a-m", "a-m:2"),
		recordsAs("15.4", "a loop", list(&program.Op{Op: "repeat", Times: 4, Ops: list(a)}), "a-m", "a-m:2", "a-m:3", "a-m:4"),
		{id: "15.4", name: "waits for one signal are numbered", run: func(c *attempt) {
			g := c.start(wait("go"), wait("go"))
			g.signal("go", "1")
			g.signal("go", "2")
			g.traced(g.completes(), "go", "1", "go", "2")
			c.want(g.row("go:2").GetSignalName() == "go", "the second wait is recorded as %v", g.row("go:2"))
		}},
		{id: "15.4", name: "numbers are the same in replay", run: func(c *attempt) {
			g := c.start(a, a, step("m"), a)
			g.asked("m")
			g.suspend()
			g.give("m", `1`)
			g.traced(g.completes(), "a-m", `"did a-m"`, "a-m", `"did a-m:2"`, "m", `1`, "a-m", `"did a-m:3"`)
		}},
		{id: "15.4", name: "a number that makes the name too long fails the run", run: func(c *attempt) {
			name := "a-" + strings.Repeat("x", 253)
			g := c.start(step(name), step(name))
			c.want(g.fails().GetNonRetryable(), "the error is not final")
		}},
		recordsAs("15.6", "a name of the parent before the fork", list(a, fork(list(a))), "a-m", "a-m:2 1"),
		recordsAs("15.6", "a name of a branch that was waited for", list(fork(list(a)), a), "a-m 1", "a-m:2"),
		recordsAs("15.6", "a name of an inner branch that was waited for", list(fork(list(fork(list(a)))), a), "a-m 1.1", "a-m:2"),
		recordsAs("15.6", "branches one after the other", list(fork(list(a)), fork(list(a)), fork(list(a))), "a-m 1", "a-m:2 2", "a-m:3 3"),
		clashes("two branches at once", fork(list(a), list(a))),
		clashes("the parent's call and a branch that was left", &program.Op{Op: "first", Bodies: [][]*program.Op{
			list(step("m")), list(step("a-n"))}}, step("m")),
		{id: "15.7", name: "a clash does not depend on timing", run: func(c *attempt) {
			g := c.start(fork(list(step("m")), list(step("a-n"), step("m"))))
			g.asked("m")
			g.failsWith("step_name_clash", noCode)
		}},
		{id: "15.7", name: "a name that another branch has used and left", run: func(c *attempt) {
			g := c.start(fork(list(step("m")), list(step("n"), step("m"))))
			g.give("m", `1`)
			g.recorded("m")
			g.give("n", `2`)
			g.failsWith("step_name_clash", noCode)
		}},
		{id: "15.7", name: "two branches that wait for one signal", run: func(c *attempt) {
			c.start(fork(list(wait("go")), list(wait("go")))).failsWith("step_name_clash", noCode)
		}},
	}
}

func branchCases() []fixed {
	m := func(n string) []*program.Op { return list(step("a-" + n)) }
	return []fixed{
		recordsAs("15.5", "branches have ordinals", list(fork(m("x"), m("y"), m("z"))), "a-x 1", "a-y 2", "a-z 3"),
		recordsAs("15.5", "ordinals count over all forks of the parent", list(fork(m("x"), m("y")), step("a-o"), fork(m("z"))),
			"a-x 1", "a-y 2", "a-o", "a-z 3"),
		recordsAs("15.5", "branches of branches", list(fork(list(fork(m("x"), list(step("a-y"), fork(m("z")))), step("a-o")))),
			"a-x 1.1", "a-y 1.2", "a-z 1.2.1", "a-o 1"),
		recordsAs("15.5", "more than nine branches", list(fork(m("1"), m("2"), m("3"), m("4"), m("5"), m("6"), m("7"), m("8"), m("9"), m("10"), m("11"))),
			"a-1 1", "a-2 2", "a-3 3", "a-4 4", "a-5 5", "a-6 6", "a-7 7", "a-8 8", "a-9 9", "a-10 10", "a-11 11"),
		recordsAs("15.5", "first forks likewise", list(&program.Op{Op: "first", Bodies: [][]*program.Op{m("x"), m("y")}, Rest: "wait"}, fork(m("z"))),
			"a-x 1", "a-y 2", "a-z 3"),
		needs("19", recordsAs("15.5", "sleeps, signals and children have branches", list(fork(list(nap("nap", 1)), list(within("go", -1)),
			list(child("kid", returns("1"))))), "nap 1", "go 2", "kid 3").catching()),
		recordsAs("15.8", "own records", list(&program.Op{Op: "now", Into: "t"}, &program.Op{Op: "now", Into: "u"}), "kagzi:now", "kagzi:now:2"),
		recordsAs("15.8", "own records of branches", list(fork(list(&program.Op{Op: "now", Into: "t"}, &program.Op{Op: "now", Into: "u"}), list(&program.Op{Op: "random", Into: "v"}))),
			"kagzi:now/1 1", "kagzi:now/1:2 1", "kagzi:seed/2 2"),
		recordsAs("15.9", "random and uuid share a seed", list(&program.Op{Op: "random", Into: "t"}, &program.Op{Op: "uuid", Into: "u"}, &program.Op{Op: "random", Into: "w"}), "kagzi:seed"),
		recordsAs("15.9", "patched", list(&program.Op{Op: "patched", ID: "p", Then: m("x"), Else: m("y")}), "kagzi:patched:p", "a-x"),
		recordsAs("15.9", "patched twice in a branch", list(fork(list(&program.Op{Op: "patched", ID: "p"}, &program.Op{Op: "patched", ID: "p"}))),
			"kagzi:patched:p/1 1", "kagzi:patched:p/1:2 1"),
		sameInReplay("15.10", "random", &program.Op{Op: "random", Into: "v"}),
		sameInReplay("15.10", "uuid", &program.Op{Op: "uuid", Into: "v"}),
		sameInReplay("15.9", "now", &program.Op{Op: "now", Into: "v"}),
		{id: "15.10", name: "branches draw different numbers", run: func(c *attempt) {
			out := c.start(fork(list(&program.Op{Op: "uuid", Into: "v"}), list(&program.Op{Op: "uuid", Into: "w"}))).completes()
			c.want(string(out.Vars["v"]) != string(out.Vars["w"]), "both have %s", out.Vars["v"])
		}},
		{id: "15.9", name: "now is a time as RFC 3339", run: func(c *attempt) {
			out := c.start(&program.Op{Op: "now", Into: "v"}).completes()
			c.want(strings.HasSuffix(string(out.Vars["v"]), `Z"`), "it is %s", out.Vars["v"])
		}},
	}
}

// catching lets a program of one branch that fails go on.
func (f fixed) catching() fixed {
	return fixed{id: f.id, name: f.name, run: func(c *attempt) {
		g := c.start(fork(list(nap("nap", 1)), list(try(list(within("go", -1)), list(step("a-rest")))), list(child("kid", returns("1")))))
		g.completes()
		for name, branch := range map[string]string{"nap": "1", "go": "2", "a-rest": "2", "kid": "3"} {
			c.want(g.row(name).GetBranch() == branch, "%s is in branch %q, want %s", name, g.row(name).GetBranch(), branch)
		}
	}}
}

// sameInReplay checks that a drawn value is the same in every activation.
func sameInReplay(id, what string, draw *program.Op) fixed {
	return fixed{id: id, name: what + " is the same in each activation", run: func(c *attempt) {
		g := c.start(draw, &program.Op{Op: "step", Name: "m", Send: []string{draw.Into}}, &program.Op{Op: "step", Name: "n", Send: []string{draw.Into}})
		a := g.give("m", `1`).Vars[draw.Into]
		g.asked("n")
		g.suspend()
		b := g.give("n", `1`).Vars[draw.Into]
		out := g.completes()
		c.want(len(a) > 0 && sameJSON(a, b) && sameJSON(a, out.Vars[draw.Into]), "it was %s, then %s, then %s", a, b, out.Vars[draw.Into])
	}}
}
