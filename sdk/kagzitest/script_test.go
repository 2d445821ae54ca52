package kagzitest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A script is a random workflow program that uses everything that decides what a replay does: calls,
// branches, first-of, shared variables, recorded values, patches, errors, cleanup, plain goroutines
// and continue-as-new. Its calls have names of their own unless they are in a loop.
type script []stmt

// stmt is one statement of a script.
type stmt struct {
	kind string
	name string
	n    int      // seconds; of a step, failing attempts; of a loop, rounds; of set, the value
	does []script // parts
	of   []stmt   // what first waits for: calls and branches

	place int  // in the script before it was changed, from 1; 0 for a call that was added
	other bool // of a child: another type
}

// Kinds of statements.
const (
	aStep  = "step"
	aSleep = "sleep"
	aUntil = "until" // a sleep until n seconds after the epoch of the test
	aWait  = "wait"
	aChild = "child"

	aFork    = "fork" // a branch
	aJoin    = "join"
	aFirst   = "first" // does[i] follows if of[i] is the first
	aSet     = "set"
	ifVar    = "if var"
	ifPatch  = "if patched"
	ifRandom = "if random"
	aNow     = "now"
	aLoop    = "loop"
	aTry     = "try"  // does[1] follows a failure of does[0]
	aClean   = "ctry" // does[1] cleans up when a cancellation ends does[0], which is then an error
	aRoutine = "go"   // a plain goroutine that works beside
	aReceive = "receive"
	anAgain  = "again" // continues as new, once
	aBoom    = "boom"  // a step that fails for good as often as the stage says
)

// finally is how many failed attempts a step has.
const finally = 3

func (s script) String() string {
	var b strings.Builder
	s.write(&b, "")
	return b.String()
}

func (s script) write(b *strings.Builder, indent string) {
	for _, t := range s {
		fmt.Fprintf(b, "%s%s %s %d\n", indent, t.kind, t.name, t.n)
		for _, m := range t.of {
			fmt.Fprintf(b, "%s  of %s %s %d\n", indent, m.kind, m.name, m.n)
		}
		for i, part := range t.does {
			if i > 0 {
				fmt.Fprintf(b, "%s  or\n", indent)
			}
			part.write(b, indent+"    ")
		}
	}
}

// isCall reports whether the statement is a call with a record.
func (t stmt) isCall() bool {
	return slices.Contains([]string{aStep, aSleep, aUntil, aWait, aChild}, t.kind)
}

// each calls f for every statement, and the members of first.
func (s script) each(f func(*stmt)) {
	for i := range s {
		f(&s[i])
		script(s[i].of).each(f)
		for _, part := range s[i].does {
			part.each(f)
		}
	}
}

// clone returns a copy that shares nothing.
func (s script) clone() script {
	s = slices.Clone(s)
	for i := range s {
		s[i].of = slices.Clone(s[i].of)
		s[i].does = slices.Clone(s[i].does)
		for j := range s[i].does {
			s[i].does[j] = s[i].does[j].clone()
		}
	}
	return s
}

// smaller yields scripts with one statement less, or a part in the place of the whole.
func (s script) smaller(yield func(script) bool) bool {
	replaced := func(i int, by ...stmt) script {
		return slices.Concat(s[:i], script(by), s[i+1:])
	}
	for i, t := range s {
		if !yield(replaced(i)) {
			return false
		}
		for j, part := range t.does {
			if t.kind != aFork && t.kind != aRoutine && !yield(replaced(i, part...)) {
				return false
			}
			if !part.smaller(func(less script) bool {
				t.does = slices.Clone(s[i].does)
				t.does[j] = less
				return yield(replaced(i, t))
			}) {
				return false
			}
		}
		for j := range t.of {
			if len(t.of) == 1 {
				break
			}
			t.of = slices.Delete(slices.Clone(s[i].of), j, j+1)
			t.does = slices.Delete(slices.Clone(s[i].does), j, j+1)
			if !yield(replaced(i, t)) {
				return false
			}
		}
	}
	return true
}

// routines reports whether the script has plain goroutines.
func (s script) routines() (are bool) {
	s.each(func(t *stmt) { are = are || t.kind == aRoutine })
	return are
}

// whole reports whether what the script joins and receives is there before, and what runs beside
// begins with a call: a branch that did not wait yet shares no variables with others in order.
func (s script) whole() bool {
	ok := true
	var walk func(s script, beside map[string]bool, top bool)
	walk = func(s script, beside map[string]bool, top bool) {
		mine := map[string]bool{}
		for i, t := range s {
			switch t.kind {
			case aFork, aRoutine:
				ok = ok && len(t.does[0]) > 0 && t.does[0][0].isCall()
				mine[t.kind+t.name] = true
			case aJoin:
				ok = ok && mine[aFork+t.name]
			case aReceive:
				ok = ok && mine[aRoutine+t.name]
				delete(mine, aRoutine+t.name)
			case anAgain:
				ok = ok && top && i == len(s)-1
			}
			for _, m := range t.of {
				ok = ok && (m.kind != aFork || mine[aFork+m.name])
			}
			for _, part := range t.does {
				walk(part, mine, false)
			}
		}
		for name := range mine {
			ok = ok && !strings.HasPrefix(name, aRoutine) // nothing would wait for it
		}
	}
	walk(s, map[string]bool{}, true)
	return ok
}

// writer makes scripts.
type writer struct {
	*rand.Rand
	without map[string]bool // kinds that are not to be used
	count   int
}

func (w *writer) next(prefix string) string {
	w.count++
	return fmt.Sprintf("%s%d", prefix, w.count)
}

// call returns a call.
func (w *writer) call() stmt {
	switch w.IntN(9) {
	case 0, 1, 2:
		return stmt{kind: aStep, name: w.next("s")}
	case 3:
		return stmt{kind: aStep, name: w.next("f"), n: 1 + w.IntN(finally)}
	case 4:
		return stmt{kind: aSleep, name: w.next("z"), n: 1 + w.IntN(4)}
	case 5:
		return stmt{kind: aUntil, name: w.next("u"), n: 3 * w.IntN(6)}
	case 6:
		return stmt{kind: aWait, name: w.next("w")}
	case 7:
		return stmt{kind: aWait, name: w.next("w"), n: 1 + w.IntN(6)}
	}
	return stmt{kind: aChild, name: w.next("c"), n: w.IntN(4)}
}

func (w *writer) pick(kinds ...string) string {
	kinds = slices.DeleteFunc(kinds, func(kind string) bool { return w.without[kind] })
	return kinds[w.IntN(len(kinds))]
}

// block returns n statements with parts that are nested up to depth deep. A plain one is for a
// goroutine: branches and recorded values of its own would have no fixed place.
func (w *writer) block(depth, n int, plain bool) (s script) {
	var branches, routines []string
	for range n {
		kinds := []string{"call", "call", "call", "call"}
		switch {
		case depth > 0 && plain:
			kinds = append(kinds, aLoop, aTry)
		case depth > 0:
			kinds = append(kinds, aFork, aFork, aFirst, ifVar, ifPatch, ifRandom, aLoop, aTry, aClean, aRoutine)
		}
		if !plain {
			kinds = append(kinds, aSet, aNow)
		}
		if len(branches) > 0 {
			kinds = append(kinds, aJoin, aJoin)
		}
		if len(routines) > 0 {
			kinds = append(kinds, aReceive)
		}
		t := stmt{kind: w.pick(kinds...)}
		switch t.kind {
		case "call":
			t = w.call()
			if t.n >= finally && t.kind == aStep && w.IntN(4) > 0 {
				t = stmt{kind: aTry, name: w.next("t"), does: []script{{t}, {w.call()}}}
			}
		case aFork, aRoutine:
			t.name = w.next("F")
			t.does = []script{append(script{w.call()}, w.block(depth-1, w.IntN(3), t.kind == aRoutine || plain)...)}
			if t.kind == aFork {
				branches = append(branches, t.name)
			} else {
				routines = append(routines, t.name)
			}
		case aJoin:
			t.name, branches = drawn(w.Rand, branches)
		case aReceive:
			t.name, routines = drawn(w.Rand, routines)
		case aFirst:
			for _, name := range branches[:min(len(branches), w.IntN(3))] {
				t.of = append(t.of, stmt{kind: aFork, name: name})
			}
			for range 1 + w.IntN(2) {
				t.of = append(t.of, w.call())
			}
			for range t.of {
				t.does = append(t.does, w.block(depth-1, 1, false))
			}
		case aSet:
			t.name, t.n = []string{"x", "y"}[w.IntN(2)], w.IntN(2)
		case ifVar:
			t.name, t.does = []string{"x", "y"}[w.IntN(2)], []script{{w.call()}, {w.call()}}
		case ifPatch:
			t.name, t.does = w.next("p"), []script{{w.call()}, w.block(0, w.IntN(2), false)}
		case ifRandom:
			t.does = []script{{w.call()}, {w.call()}}
		case aLoop:
			t.n, t.does = 2, []script{w.block(0, 1+w.IntN(2), plain)}
		case aTry:
			t.does = []script{w.block(depth-1, 2, plain), {w.call()}}
		case aClean:
			t.does = []script{w.block(depth-1, 2, false), {w.call(), w.call()}}
		}
		s = append(s, t)
	}
	for _, name := range branches {
		if w.IntN(5) < 3 {
			s = append(s, stmt{kind: aJoin, name: name})
		}
	}
	for _, name := range routines {
		s = append(s, stmt{kind: aReceive, name: name})
	}
	return s
}

// drawn takes a random item out.
func drawn(r *rand.Rand, from []string) (string, []string) {
	i := r.IntN(len(from))
	name := from[i]
	return name, slices.Delete(slices.Clone(from), i, i+1)
}

// newScript returns a script of up to size statements. Some have plain goroutines, which share no
// variables with branches: their branch may run while results are handed over.
func newScript(r *rand.Rand, size int, without ...string) script {
	w := &writer{Rand: r, without: map[string]bool{}}
	if r.IntN(3) == 0 {
		without = append(without, aSet, ifVar)
	} else {
		without = append(without, aRoutine)
	}
	for _, kind := range without {
		w.without[kind] = true
	}
	s := w.block(2, 2+w.IntN(size-1), false)
	if !w.without[aBoom] && w.IntN(3) == 0 {
		s = append(s, stmt{kind: aBoom, name: aBoom})
	}
	if !w.without[anAgain] && w.IntN(8) == 0 {
		s = append(s, stmt{kind: anAgain})
	}
	return s
}
