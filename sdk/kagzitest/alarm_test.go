package kagzitest_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
)

var (
	scripts     = flag.Int("scripts", 200, "how many random scripts are tried; at most 40 with -short")
	firstScript = flag.Uint64("scripts.from", 1, "the seed of the first of them")
)

// Scripts make much garbage and hold little, so collecting it less often saves a quarter of the
// processor time.
func init() { debug.SetGCPercent(400) }

// scriptsToTry returns the seeds to try.
func scriptsToTry(long int) (from, to uint64) {
	n := *scripts
	switch {
	case testing.Short():
		n = min(n, 40)
	case os.Getenv("KAGZI_TEST_LONG") != "" && n == 200:
		n = long
	}
	return *firstScript, *firstScript + uint64(n)
}

// eachScript tries seeds, as many beside one another as there are processors, each lane until one of its
// seeds fails. It returns when all have ended. Name the test by `name` in messages: the lanes' own names
// find nothing on machines with other numbers of processors.
func eachScript(t *testing.T, from, to uint64, try func(t *testing.T, name string, seed uint64)) {
	t.Helper()
	name := t.Name()
	lanes := uint64(runtime.GOMAXPROCS(0))
	t.Run("lane", func(t *testing.T) {
		for lane := range lanes {
			t.Run(strconv.FormatUint(lane, 10), func(t *testing.T) {
				t.Parallel()
				for seed := from + lane; seed < to && !t.Failed(); seed += lanes {
					try(t, name, seed)
				}
			})
		}
	})
}

// counter counts what came of scripts that are tried beside one another.
type counter struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counter) add(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[what] += n
}

// Code that has not changed is never reported, whatever happens to its run, and every replay, of
// every prefix of the history, takes the way of the run.
func TestUnchangedCodeNeverDiverges(t *testing.T) {
	from, to := scriptsToTry(20_000)
	eachScript(t, from, to, tryUnchanged)
}

func tryUnchanged(t *testing.T, name string, seed uint64) {
	random := func() *rand.Rand { return rand.New(rand.NewPCG(seed, 11)) }
	r := random()
	s, d := newScript(r, 7), newDisturbances(r)
	if s.routines() { // what their branch does at a cancellation has no order
		d.cancel = 0
	}
	try := func(s script, d disturbances) (wrong error) {
		onStage(t, s, d, func(g *stage) { wrong = g.wholePlay(random()) })
		return wrong
	}
	wrong := try(s, d)
	if wrong == nil {
		return
	}
	s, wrong = shrunk(s, wrong, func(s script) error { return try(s, d) })
	t.Errorf("%v\nagain: go test ./sdk/kagzitest -run '^%s$' -args -scripts=1 "+
		"-scripts.from=%d\ndisturbances %+v, script, made smaller:\n%s", wrong, name, seed, d, s)
}

// shrunk makes a script that fails smaller, as long as it still does.
func shrunk(s script, wrong error, try func(script) error) (script, error) {
	for tries := 0; ; {
		var less script
		var err error
		s.smaller(func(some script) bool {
			if tries >= 1000 || !some.whole() || len(some) == 0 {
				return true
			}
			for range 5 { // the order of goroutines differs
				tries++
				if err = try(some.clone()); err != nil {
					less = some
					return false
				}
			}
			return true
		})
		if less == nil {
			return s, wrong
		}
		s, wrong = less, err
	}
}
