package bench

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/sdk/profile"
)

func TestPlan(t *testing.T) {
	find := func(id string) workload {
		w, err := choose(id)
		if err != nil {
			t.Fatal(err)
		}
		return w[0]
	}
	for _, c := range []struct {
		name     string
		workload string
		options  options
		want     plan
	}{
		{"scale 1 is the workload itself", "W1", options{scale: 1}, plan{runs: 20_000, inFlight: 100}},
		{"scale takes a part", "W2", options{scale: 0.1}, plan{runs: 200, inFlight: 100}},
		{"a tiny scale leaves one run", "W4", options{scale: 0.0001}, plan{runs: 1, inFlight: 1}},
		{"W8 keeps the steps that its figures need", "W8", options{scale: 0.0001}, plan{runs: paceLeast}},
		{"runs go before scale", "W1", options{scale: 0.1, runs: 7}, plan{runs: 7, inFlight: 100}},
		{"concurrency changes closed loops of many", "W5", options{scale: 1, concurrency: 3},
			plan{runs: 160, inFlight: 3}},
		{"one run at a time stays one at a time", "W3", options{scale: 1, concurrency: 3},
			plan{runs: 1_000, inFlight: 1}},
		{"duration holds for closed loops", "W1", options{scale: 1, duration: time.Second},
			plan{runs: 20_000, duration: time.Second, inFlight: 100}},
		{"the large backlog has a small one beside it", "W6-1M", options{scale: 0.00001}, plan{runs: smallBacklogPart}},
		{"a burst has all runs in flight", "W14", options{scale: 1, concurrency: 3, duration: time.Second},
			plan{runs: 3_000}},
		{"children, signals and retries are closed loops", "W16", options{scale: 1, duration: time.Second},
			plan{runs: 100, duration: time.Second, inFlight: 100}},
		{"duration means nothing to a backlog", "W6", options{scale: 1, duration: time.Second}, plan{runs: 20_000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := find(c.workload).plan(c.options); got != c.want {
				t.Errorf("plan = %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	got, err := choose("w1, W8")
	if err != nil || len(got) != 2 || got[0].id != "W1" || got[1].id != "W8" {
		t.Errorf("choose = %v, %v, want W1 and W8", got, err)
	}
	if got, err := choose("All"); err != nil || len(got) != 20 || got[7].id != "W8" || got[19].id != "W22" {
		t.Errorf("choose all = %v, %v, want W1 to W8 and W11 to W22", got, err)
	}
	for _, wrong := range []string{"", "W0", "W1,,W2", "W1;W2"} {
		_, err := choose(wrong)
		var exit *exitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitUsage {
			t.Errorf("choose(%q) = %v, want a usage error", wrong, err)
		}
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	good := options{scale: 1, repeat: 1, slots: 1, servers: 1, timeout: time.Second}
	if err := good.check(); err != nil {
		t.Fatalf("check of good options: %v", err)
	}
	for name, spoil := range map[string]func(*options){
		"scale 0": func(o *options) { o.scale = 0 }, "scale NaN": func(o *options) { o.scale = nan() },
		"repeat 0": func(o *options) { o.repeat = 0 }, "slots 0": func(o *options) { o.slots = 0 },
		"negative runs": func(o *options) { o.runs = -1 }, "negative duration": func(o *options) { o.duration = -1 },
		"concurrency past the limit": func(o *options) { o.concurrency = maxConcurrency + 1 },
		"no time":                    func(o *options) { o.timeout = 0 },
		"no server":                  func(o *options) { o.servers = 0 },
		"negative delay":             func(o *options) { o.dbDelay = -1 },
		"two forms of a report":      func(o *options) { o.asJSON, o.markdown = true, true },
	} {
		o := good
		spoil(&o)
		if o.check() == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestWorkloadsAreRefusedWhereTheyCannotBeMeasured(t *testing.T) {
	for _, c := range []struct {
		name     string
		target   target
		workload string
		says     string // empty: suitable
	}{
		{"a full table fits a private SQLite", target{}, "W10", ""},
		{"a full table fits a named SQLite", target{db: "sqlite:a.db"}, "W10", ""},
		{"a full table is not put into a running server", target{address: "127.0.0.1:1"}, "W10", "127.0.0.1:1"},
		{"a full table needs a separate Postgres database", target{db: "postgres://h/d"}, "W10", "--full-db"},
		{"a full table with a separate Postgres database", target{db: "postgres://h/d", fullDB: "postgres://h/f"},
			"W10", ""},
		{"one worker is looked into", target{db: "postgres://h/d", servers: 2}, "W13", "--servers"},
		{"the others fit anywhere", target{address: "127.0.0.1:1"}, "W1,W9", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			chosen, err := choose(c.workload)
			if err != nil {
				t.Fatal(err)
			}
			err = c.target.suits(chosen)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("error = %v, want one that says %q", err, c.says)
			}
		})
	}
}

func TestOnlyTheCommandLineNamesAServerThatRuns(t *testing.T) {
	t.Setenv("KAGZI_CONFIG", "off")
	t.Setenv("KAGZI_ADDRESS", "127.0.0.1:1")
	for _, c := range []struct {
		name    string
		options options
		code    int // 0: private servers
	}{
		{"the environment does not count", options{servers: 1}, 0},
		{"a namespace does not count", options{said: profile.Profile{Namespace: "n"}, servers: 1}, 0},
		{"profile off does not count", options{said: profile.Profile{Name: profile.Off}, servers: 1}, 0},
		{"an address counts", options{said: profile.Profile{Address: "127.0.0.1:1"}, servers: 1}, exitUnavailable},
		{"an address is refused for two servers", options{said: profile.Profile{Address: "127.0.0.1:1"}, servers: 2},
			exitUsage},
		{"an address is refused beside a database",
			options{said: profile.Profile{Address: "127.0.0.1:1"}, db: "postgres://h/d",
				servers: 1}, exitUsage},
		{"a delay is for Postgres", options{dbDelay: time.Second, servers: 1}, exitUsage},
		{"a delay is not for a file", options{dbDelay: time.Second, db: "sqlite:a.db", servers: 1}, exitUsage},
		{"a key is for a running server", options{said: profile.Profile{APIKeyFile: "k"}, servers: 1}, exitUsage},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := findTarget(t.Context(), c.options)
			if c.code == 0 {
				if err != nil || found.address != "" {
					t.Errorf("found %+v, %v, want private servers", found, err)
				}
				return
			}
			var exit *exitError
			if !errors.As(err, &exit) || exit.ExitCode() != c.code {
				t.Errorf("error = %v, want exit code %d", err, c.code)
			}
		})
	}
}

func TestIdleWorkersAreLookedAtForAPartOfTheTimeOnlyWhenFew(t *testing.T) {
	for p, want := range map[plan]time.Duration{
		{runs: 10_000}: idleFor, {runs: 500}: idleFor / 2, {runs: 1}: idleLeast,
		{runs: 10_000, duration: time.Minute}: time.Minute,
	} {
		if got := idleLength(p); got != want {
			t.Errorf("%+v: %s, want %s", p, got, want)
		}
	}
}

func nan() float64 { zero := 0.0; return zero / zero }

func TestAClosedLoopDoesEachRunOnceAndKeepsToItsConcurrency(t *testing.T) {
	var mu sync.Mutex
	done := map[int]int{}
	var now, peak atomic.Int64
	l, err := closedLoop(t.Context(), plan{runs: 200, inFlight: 8}, 1000, func(_ context.Context, i int) error {
		n := now.Add(1)
		defer now.Add(-1)
		for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
		}
		mu.Lock()
		defer mu.Unlock()
		done[i]++
		return nil
	})
	if err != nil || l.runs != 200 || len(l.times) != 200 {
		t.Fatalf("loop = %d runs, %d times, %v, want 200", l.runs, len(l.times), err)
	}
	for i := 1000; i < 1200; i++ {
		if done[i] != 1 {
			t.Errorf("run %d was done %d times, want 1", i, done[i])
		}
	}
	if peak.Load() > 8 {
		t.Errorf("%d in flight at once, want at most 8", peak.Load())
	}
}

func TestAClosedLoopWithADurationEndsWhenItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := closedLoop(t.Context(), plan{runs: 1, duration: time.Second, inFlight: 2}, 0,
			func(ctx context.Context, _ int) error {
				return until(ctx, time.Now().Add(100*time.Millisecond))
			})
		if err != nil || l.runs != 20 || l.elapsed != time.Second {
			t.Errorf("loop = %d runs in %v, %v, want 20 in 1s", l.runs, l.elapsed, err)
		}
	})
}

func TestTheFirstErrorEndsAClosedLoop(t *testing.T) {
	broken := errors.New("broken")
	_, err := closedLoop(t.Context(), plan{runs: 1000, inFlight: 4}, 0, func(ctx context.Context, i int) error {
		if i == 5 {
			return broken
		}
		if i > 5 {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("error = %v, want the first", err)
	}
}

func TestABlobIsAsLongAsItClaims(t *testing.T) {
	for _, step := range []int{0, 9, 12345} {
		data, err := json.Marshal(blob(step*31, step))
		if err != nil || len(data) != blobBytes {
			t.Errorf("step %d: %d bytes of JSON, %v, want %d", step, len(data), err, blobBytes)
		}
	}
	if (job{1, 3}).checksum() == (job{2, 3}).checksum() {
		t.Error("two jobs have the same checksum")
	}
}

func TestTotalIsTheSumOfTheSteps(t *testing.T) {
	in := job{Seed: 5, Steps: 4}
	if got := in.total(); got != 5+6+7+8 {
		t.Errorf("total = %d, want 26", got)
	}
}
