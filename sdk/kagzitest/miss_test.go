package kagzitest_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// change changes a call of the script in a random way, and returns what it did; "" if nothing.
func (s script) change(r *rand.Rand) (changed script, what string) {
	changed = s.clone()
	type spot struct {
		in *script
		at int
	}
	var spots, all []spot
	var walk func(*script)
	walk = func(in *script) {
		for i := range *in {
			all = append(all, spot{in, i})
			if (*in)[i].isCall() {
				spots = append(spots, spot{in, i})
			}
			for j := range (*in)[i].does {
				walk(&(*in)[i].does[j])
			}
		}
	}
	walk(&changed)
	if len(spots) == 0 {
		return nil, ""
	}
	one := spots[r.IntN(len(spots))]
	t := &(*one.in)[one.at]
	insert := func(at spot, t stmt) { *at.in = slices.Insert(*at.in, min(at.at, len(*at.in)), t) }
	switch what = []string{"add", "add a use", "remove", "rename", "move", "swap", "kind", "child type"}[r.IntN(8)]; what {
	case "add":
		insert(all[r.IntN(len(all))], stmt{kind: aStep, name: "added"})
	case "add a use":
		if t.kind != aStep {
			return nil, ""
		}
		insert(one, stmt{kind: aStep, name: t.name})
	case "remove":
		*one.in = slices.Delete(*one.in, one.at, one.at+1)
	case "rename":
		t.name += "-renamed"
	case "move":
		moved := *t
		*one.in = slices.Delete(*one.in, one.at, one.at+1)
		insert(all[r.IntN(len(all))], moved)
	case "swap":
		if one.at+1 == len(*one.in) {
			return nil, ""
		}
		(*one.in)[one.at], (*one.in)[one.at+1] = (*one.in)[one.at+1], (*one.in)[one.at]
	case "kind":
		if t.kind != aStep {
			return nil, ""
		}
		t.kind = aChild
	case "child type":
		if t.kind != aChild {
			return nil, ""
		}
		t.other = true
	}
	return changed, what
}

// auditor watches a run whose code is replaced: nothing new may happen while the new code has not made
// every recorded call.
type auditor struct {
	*stage
	mu       sync.Mutex
	run      engine.ID
	recorded map[string]engine.Step // when the code was replaced; nil before
	places   map[string]int         // of the calls of the old code, by name
	began    map[int]string         // the names under which the old code began steps, by place
	found    string                 // a miss, or an exception that the specification names
}

// replace takes stock before the next worker starts.
func (a *auditor) replace() {
	run := a.db.Run(a.run) // before a.mu, which is taken with the database locked
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recorded, a.places = map[string]engine.Step{}, map[string]int{}
	for _, s := range run.Steps {
		if s.Latest && !strings.HasPrefix(s.Name, "kagzi:") {
			a.recorded[s.Name] = *s
		}
	}
	for _, w := range a.activations(a.run.String()) {
		w.mu.Lock()
		maps.Copy(a.places, w.made)
		w.mu.Unlock()
	}
}

// unmade returns a recorded call that the running code has not made.
func (a *auditor) unmade() string {
	ways := a.activations(a.run.String())
	if len(ways) == 0 {
		return ""
	}
	w := ways[len(ways)-1]
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range a.recorded {
		if _, made := w.made[name]; !made {
			return name
		}
	}
	return ""
}

// wrote is called with the database locked.
func (a *auditor) wrote(changes []memory.Change) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.recorded == nil {
		return
	}
	for _, c := range changes {
		if c.New == nil || c.New.ID != a.run {
			continue
		}
		for _, s := range c.New.Steps {
			if strings.HasPrefix(s.Name, "kagzi:") || c.Old != nil && c.Old.Latest(s.Name) != nil {
				continue
			}
			if left := a.unmade(); left != "" {
				a.found = fmt.Sprintf("miss: %s was recorded before the code had made %s", s.Name, left)
			}
		}
	}
}

// begins is called before the code of a step runs. known: it has a record.
func (a *auditor) begins(w *way, name string, t stmt, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.recorded == nil {
		a.began[t.place] = name
		return
	}
	a.stage.mu.Lock()
	lost := !a.serves(w.hand)
	a.stage.mu.Unlock()
	if known || lost { // code of a lost worker runs on for a moment
		return
	}
	if left := a.unmade(); left != "" {
		a.found = fmt.Sprintf("miss: %s ran before the code had made %s", name, left)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.place == 0 {
		return
	}
	for was, place := range a.places {
		s, is := a.recorded[was]
		if is && place == t.place && s.Status == engine.StepCompleted && w.made[was] != place {
			a.found = "exception: an earlier use took the record"
		}
	}
	if was, began := a.began[t.place]; began && was != name {
		if _, is := a.recorded[was]; !is {
			a.found = "exception: it was in flight"
		}
	}
}

// Code that was changed is reported before anything happens that the old code may have done already.
func TestChangedCodeRepeatsNothingUnnoticed(t *testing.T) {
	from, to := scriptsToTry(5_000)
	var came counter
	eachScript(t, from, to, func(t *testing.T, name string, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 13))
		s := newScript(r, 6, aRoutine, anAgain, aBoom, ifPatch)
		places := 0
		s.each(func(t *stmt) {
			places++
			t.place = places
		})
		changed, what := s.change(r)
		if what == "" || !changed.whole() {
			return
		}
		d := disturbances{attempts: 1, crashes: []int{6 + r.IntN(30)}}
		onStage(t, s, d, func(g *stage) {
			how := g.afterChange(changed, r)
			came.add(what+": "+how, 1)
			if strings.HasPrefix(how, "miss") {
				t.Errorf("%s: %s\nagain: go test ./sdk/kagzitest -run '^%s$' -args -scripts=1 -scripts.from=%d\n%s\nbecame\n%s",
					what, how, name, seed, s, changed)
			}
		})
	})
	counts := came.of
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%5d %s", counts[what], what)
	}
	if to-from < 3000 { // too few to have each class
		return
	}
	for _, what := range []string{"add", "remove", "rename", "move", "kind", "child type"} {
		if counts[what+": diverged"] == 0 {
			t.Errorf("no change of the class %q diverged", what)
		}
	}
}

// afterChange starts a run, replaces its code at the loss of the worker, and returns what came of it.
func (g *stage) afterChange(changed script, r *rand.Rand) string {
	a := &auditor{stage: g, began: map[int]string{}}
	run, err := kagzi.Start(g.ctx, g.env.Client, "script", 0, kagzi.StartOptions{})
	if err != nil {
		return err.Error()
	}
	a.mu.Lock()
	a.run = idOf(g.T, run.ID())
	a.mu.Unlock()
	g.mu.Lock()
	g.onWrite, g.onStep = a.wrote, a.begins
	g.onLoss = func() {
		a.replace()
		g.mu.Lock()
		g.service[0].script, g.service[0].build = changed, g.service[0].build+1
		g.mu.Unlock()
	}
	g.mu.Unlock()
	_, err = g.perform(run, r)
	a.mu.Lock()
	defer a.mu.Unlock()
	var report *divergence
	var end *kagzi.RunError
	switch {
	case a.found != "":
		return a.found
	case errors.As(err, &report):
		return "diverged"
	case a.recorded == nil:
		return "ended before"
	case err == nil, errors.As(err, &end):
		return "nothing repeated"
	case strings.Contains(err.Error(), "without"):
		return "unreached at the end"
	}
	return "waits for what never comes"
}
