package kagzitest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// These are the drivers t9, t10, t11 and t16 of the model of the rules of replay: code that was changed
// behind Patched, in one build after another and in two builds at a time.

// newWay is the step that a patched script runs in the place of one of its calls.
const newWay = "new-way"

// patched returns the script with one call of it behind a Patched, and the name of that call; "" if it
// has no call that can be. Members of first are no statements, and the rounds of a loop may differ.
func (s script) patched(r *rand.Rand) (changed script, call string) {
	changed = s.clone()
	var calls []*stmt
	changed.each(func(t *stmt) {
		if t.isCall() {
			calls = append(calls, t)
		}
	})
	without := func(part script) {
		part.each(func(t *stmt) { calls = slices.DeleteFunc(calls, func(c *stmt) bool { return c == t }) })
	}
	changed.each(func(t *stmt) {
		without(t.of)
		if t.kind == aLoop {
			without(t.does[0])
		}
	})
	if len(calls) == 0 {
		return nil, ""
	}
	t := calls[r.IntN(len(calls))]
	call = t.name
	*t = stmt{kind: ifPatch, name: "way", does: []script{{{kind: aStep, name: newWay}}, {*t}}}
	return changed, call
}

// bothWays returns an error if a run went the new and the old way at one place.
func (g *stage) bothWays(run, fresh, old string) error {
	row := g.db.Run(idOf(g.T, run))
	if row.Latest(fresh) != nil && row.Latest(old) != nil {
		return fmt.Errorf("both %s and %s are recorded", fresh, old)
	}
	return nil
}

// answers returns what Patched said in the activations of a run, by place.
func (g *stage) answers(run string) map[string][]string {
	said := map[string][]string{}
	for _, w := range g.activations(run) {
		w.mu.Lock()
		for branch, lines := range w.logs {
			uses := 0
			for _, line := range lines {
				if strings.HasPrefix(line, "patched ") {
					uses++
					said[fmt.Sprint(branch, "#", uses)] = append(said[fmt.Sprint(branch, "#", uses)], line)
				}
			}
		}
		w.mu.Unlock()
	}
	return said
}

// TestPatchedCodeContinuesWhatItsOldBuildBegan replaces the code of random scripts, at the loss of the
// worker, by one in which a call is behind Patched. No run diverges, none goes both ways, and no answer
// changes: also behind overrides and retries of the run, after which recorded calls are not owed.
func TestPatchedCodeContinuesWhatItsOldBuildBegan(t *testing.T) {
	from, to := scriptsToTry(1_000)
	var came counter
	eachScript(t, from, to, func(t *testing.T, name string, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 19))
		s := newScript(r, 6, aRoutine, anAgain, ifPatch)
		changed, call := s.patched(r)
		if call == "" || !changed.whole() {
			return
		}
		d := newDisturbances(r)
		d.crashes, d.cancel, d.terminate, d.retries = []int{4 + r.IntN(30)}, 0, 0, ""
		came.add(playPatched(t, name, seed, s, changed, newWay, call, d, r), 1)
	})
	tookBothWays(t, came.of, to-from)
}

// TestPatchedAnswersTheSameBehindAWatermark overrides and retries runs between the two builds and after
// the second one has asked.
func TestPatchedAnswersTheSameBehindAWatermark(t *testing.T) {
	old := script{{kind: aStep, name: "a"}, {kind: aStep, name: "charge-1"}, {kind: aWait, name: "w"},
		{kind: aSleep, name: "z", n: 5}, {kind: aBoom, name: aBoom}}
	changed := slices.Clone(old)
	changed[1] = stmt{kind: ifPatch, name: "p", does: []script{{{kind: aStep, name: "charge-2"}}, {old[1]}}}
	from, to := scriptsToTry(500)
	var came counter
	eachScript(t, from, to, func(t *testing.T, name string, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 23))
		d := disturbances{attempts: 1 + r.IntN(2), booms: r.IntN(2), crashes: []int{3 + r.IntN(14)}}
		for range r.IntN(4) {
			d.overrides = append(d.overrides, 1+r.IntN(12))
		}
		came.add(playPatched(t, name, seed, old, changed, "charge-2", "charge-1", d, r), 1)
	})
	tookBothWays(t, came.of, to-from)
}

func tookBothWays(t *testing.T, counts map[string]int, tried uint64) {
	t.Helper()
	t.Log(counts)
	for _, came := range []string{"old way", "new way"} {
		if tried >= 40 && counts[came] == 0 {
			t.Errorf("no run went the %s", came)
		}
	}
}

// playPatched performs a script, replaces its code at the loss of the worker by one that does fresh
// behind a Patched where the script does old, and returns which way the run went.
func playPatched(t *testing.T, name string, seed uint64, s, changed script, fresh, old string, d disturbances,
	r *rand.Rand) (came string) {
	onStage(t, s, d, func(g *stage) {
		run, replaced, err := g.performPatched(changed, r)
		if err == nil {
			err = g.bothWays(run, fresh, old)
		}
		for place, said := range g.answers(run) {
			if len(slices.Compact(slices.Clone(said))) > 1 && err == nil {
				err = fmt.Errorf("the answers at %s are %q", place, said)
			}
		}
		if err != nil {
			t.Errorf("%v\nagain: go test ./sdk/kagzitest -run '^%s$' -args -scripts=1 -scripts.from=%d\n%+v\n%s\nbecame\n%s",
				err, name, seed, d, s, changed)
			return
		}
		switch row := g.db.Run(idOf(g.T, run)); {
		case !replaced:
			came = "ended before"
		case row.Latest(fresh) != nil:
			came = "new way"
		default:
			came = "old way"
		}
	})
	return came
}

// performPatched performs a script whose code is replaced at the loss of its worker.
func (g *stage) performPatched(changed script, r *rand.Rand) (runID string, replaced bool, err error) {
	options := kagzi.StartOptions{}
	if g.attempts > 1 {
		options.StepRetry, options.RunRetry = &kagzi.Retry{Attempts: g.attempts}, &kagzi.Retry{Attempts: g.attempts}
	}
	run, err := kagzi.Start(g.ctx, g.env.Client, "script", 0, options)
	if err != nil {
		return "", false, err
	}
	g.mu.Lock()
	g.onLoss = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		replaced = true
		g.service[0].script, g.service[0].build = changed, g.service[0].build+1
	}
	g.mu.Unlock()
	_, err = g.perform(run, r)
	g.mu.Lock()
	defer g.mu.Unlock()
	var end *kagzi.RunError
	if errors.As(err, &end) {
		err = nil
	}
	return run.ID(), replaced, err
}

// rollouts are pairs of an old script and one that does another thing behind a Patched.
var rollouts = []struct {
	name     string
	old, new script
}{
	{"at the end",
		script{{kind: aStep, name: "a"}},
		script{{kind: aStep, name: "a"}, {kind: ifPatch, name: "p", does: []script{
			{{kind: aWait, name: "ok"}, {kind: aStep, name: "x"}}, {}}}}},
	{"in the middle",
		script{{kind: aStep, name: "a"}, {kind: aStep, name: "y"}, {kind: aStep, name: "c"}},
		script{{kind: aStep, name: "a"}, {kind: ifPatch, name: "p", does: []script{
			{{kind: aStep, name: "x"}}, {{kind: aStep, name: "y"}}}}, {kind: aStep, name: "c"}}},
	{"beside a wait",
		script{waiting, {kind: aJoin, name: "F"}, {kind: aStep, name: "y"}, {kind: aSleep, name: "z", n: 3},
			{kind: aStep, name: "k"}},
		script{waiting, {kind: ifPatch, name: "p", does: []script{
			{{kind: aJoin, name: "F"}, {kind: aStep, name: "x"}}, {{kind: aJoin, name: "F"}, {kind: aStep, name: "y"}}}},
			{kind: aSleep, name: "z", n: 3}, {kind: aStep, name: "k"}}},
}

var waiting = stmt{kind: aFork, name: "F", does: []script{{{kind: aWait, name: "w"}}}}

// eachRollout performs every pair in two builds that are in service at a time. Workers of both are lost
// now and then. prepare, if given, is called when the run has started.
func eachRollout(t *testing.T, stream uint64, prepare func(g *stage, run *kagzi.Run, r *rand.Rand)) {
	from, to := scriptsToTry(500)
	const diverged = "reports of divergence"
	var came counter
	eachScript(t, from, to, func(t *testing.T, name string, seed uint64) {
		r := rand.New(rand.NewPCG(seed, stream))
		pair := rollouts[int(seed)%len(rollouts)]
		d := disturbances{attempts: 1}
		for range r.IntN(4) {
			d.crashes = append(d.crashes, 2+r.IntN(24))
		}
		onStage(t, pair.old, d, func(g *stage) {
			run, err := kagzi.Start(g.ctx, g.env.Client, "script", 0, kagzi.StartOptions{})
			if err == nil {
				if prepare != nil {
					prepare(g, run, r)
				}
				_, err = g.perform(run, r)
			}
			row := g.db.Run(idOf(t, run.ID()))
			if err == nil {
				err = g.bothWays(run.ID(), "x", "y")
			}
			if err != nil || row.Status != engine.RunCompleted || row.Attempts != 1 || len(row.Unreached) > 0 {
				t.Errorf("%s: %v, run %s, paused %t, attempt %d, without %q; again: go test ./sdk/kagzitest -run '^%s$' -args "+
					"-scripts=1 -scripts.from=%d", pair.name, err, row.Status, row.Paused, row.Attempts, row.Unreached,
					name, seed)
			}
			way := "old"
			if row.Latest("x") != nil {
				way = "new"
			}
			came.add(pair.name+": "+way, 1)
			came.add(diverged, g.reports)
		}, pair.new)
	})
	ends, reports := came.of, came.of[diverged]
	t.Log(ends)
	if to-from < 40 {
		return
	}
	for _, pair := range rollouts {
		for _, way := range []string{"old", "new"} {
			if ends[pair.name+": "+way] == 0 {
				t.Errorf("no run took the %s way %s", way, pair.name)
			}
		}
	}
	if reports == 0 {
		t.Error("no run came to a build that could not continue it")
	}
}

// While two builds are in service, a run that one of them can continue is never paused.
func TestTwoBuildsBesideEachOtherPauseNoRun(t *testing.T) { eachRollout(t, 9, nil) }

// When the old build is taken out of service, the new one continues all that either has begun.
func TestWhatTwoBuildsBeganContinuesInTheNewOne(t *testing.T) {
	eachRollout(t, 10, func(g *stage, run *kagzi.Run, r *rand.Rand) {
		wait := time.Duration(r.IntN(6000)) * time.Millisecond
		g.hands.Go(func() {
			if pause(g.ctx, wait) {
				g.retire()
			}
		})
	})
}

// retire takes the first build out of service.
func (g *stage) retire() {
	g.mu.Lock()
	p := g.service[0]
	g.service = g.service[1:]
	h := p.hand
	g.mu.Unlock()
	if h != nil && h.worker.ID() != "" {
		h.host.Die()
		h.kill()
		g.offline(h)
	}
}
