package cron_test

import (
	_ "embed"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/cron"
	"github.com/kagzi/kagzi/engine/lab/long"
)

var (
	full = flag.Bool("cron.full", false,
		"compare every zone with every expression; with KAGZI_TEST_LONG alone with one in twenty")
	seed = flag.Uint64("cron.seed", 1, "for the sample of zones and expressions")
)

//go:embed testdata/zones.txt
var zoneNames string

var productFrom, productTo = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix(),
	time.Date(2038, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// pair is an expression with its oracle.
type pair struct {
	expr   string
	oracle *oracle
}

func pairs(exprs []string) []pair {
	var all []pair
	for _, expr := range exprs {
		all = append(all, pair{expr, newOracle(expr)})
	}
	return all
}

// comparison counts what was compared, from several goroutines.
type comparison struct {
	t                      *testing.T
	byMissed, byNext, sums atomic.Int64
}

// report says what was compared.
func (c *comparison) report(clocks, exprs int) {
	c.t.Logf("%d clocks, %d expressions: %d ticks by Missed, %d by Next, %d sums", clocks, exprs, c.byMissed.Load(),
		c.byNext.Load(), c.sums.Load())
}

// each calls f with every item, on all processors.
func each[T any](items []T, f func(T)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(items); i = int(next.Add(1)) - 1 {
				f(items[i])
			}
		})
	}
	group.Wait()
}

// clocks is every zone, those whose offsets change at the same instants once: of 597 names that
// leaves some 190. Offsets are looked at every so many seconds.
func clocks(every int64) []*clock {
	names := strings.Fields(zoneNames)
	all := make([]*clock, len(names))
	each(names, func(name string) {
		i, _ := slices.BinarySearch(names, name)
		all[i] = newClock(name, every)
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(c *clock) bool {
		signature := fmt.Sprint(c.first, c.changes)
		again := seen[signature]
		seen[signature] = true
		return again
	})
}

func parse(t *testing.T, expr, zone string) *cron.Schedule {
	t.Helper()
	s, err := cron.Parse(expr, zone)
	if err != nil {
		t.Errorf("Parse(%q, %q): %v", expr, zone, err)
		return nil
	}
	return s
}

// whole compares all ticks of 2000 to 2037 with what Missed says, a year at a time, and their
// number where they are too many.
func (c *comparison) whole(clk *clock, p pair) {
	s := parse(c.t, p.expr, clk.name)
	if s == nil {
		return
	}
	const most = 100_000
	var sum int64
	for year := 2000; year < 2038; year++ {
		from := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		to := time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		want := p.oracle.ticks(clk, from, to)
		got, skipped := s.Missed(time.Unix(from-1, 0), time.Unix(to-1, 0), most)
		sum += int64(len(want))
		if int64(len(want)) != skipped+int64(len(got)) {
			c.t.Errorf("%q in %s, %d: %d ticks, want %d", p.expr, clk.name, year, skipped+int64(len(got)), len(want))
			return
		}
		want = want[skipped:]
		for i := range got {
			if got[i].Unix() != want[i] {
				c.t.Errorf("%q in %s: Missed has %s, want %s", p.expr, clk.name, got[i].In(clk.zone),
					time.Unix(want[i], 0).In(clk.zone))
				return
			}
		}
		c.byMissed.Add(int64(len(got)))
	}
	if _, all := s.Missed(time.Unix(productFrom-1, 0), time.Unix(productTo-1, 0), 0); all != sum {
		c.t.Errorf("%q in %s: %d ticks in all, want %d", p.expr, clk.name, all, sum)
	}
	c.sums.Add(1)
}

// chain compares up to n ticks after an instant with what Next says; want is every tick before to.
func (c *comparison) chain(clk *clock, s *cron.Schedule, expr string, want []int64, after, to int64, n int) {
	i, _ := slices.BinarySearch(want, after+1)
	at := time.Unix(after, 0)
	for range n {
		next, ok := s.Next(at)
		if i == len(want) {
			if ok && next.Unix() < to {
				c.t.Errorf("%q in %s after %s: Next says %s, want none before %s", expr, clk.name, at.In(clk.zone),
					next.In(clk.zone), time.Unix(to, 0).In(clk.zone))
			}
			return
		}
		if !ok || next.Unix() != want[i] {
			c.t.Errorf("%q in %s after %s: Next says %s (%t), want %s", expr, clk.name, at.In(clk.zone),
				next.In(clk.zone), ok, time.Unix(want[i], 0).In(clk.zone))
			return
		}
		c.byNext.Add(1)
		at = next
		i++
	}
}

// around compares what Next says around each change of a zone.
func (c *comparison) around(clk *clock, p pair, n int) {
	s := parse(c.t, p.expr, clk.name)
	if s == nil {
		return
	}
	for _, ch := range clk.changes {
		if ch.at < productFrom || ch.at > productTo {
			continue
		}
		to := ch.to + 86400
		want := p.oracle.ticks(clk, ch.from-86400, to)
		for _, anchor := range []int64{ch.from - 86400, ch.at + min(ch.by, -ch.by), ch.at, ch.at + max(ch.by, -ch.by)} {
			c.chain(clk, s, p.expr, want, anchor-1, to, n)
			if i, _ := slices.BinarySearch(want, anchor); i > 2 {
				c.chain(clk, s, p.expr, want, want[i-2], to, 3)
			}
		}
	}
}

func TestEveryExpressionInUTCAgreesWithTheOracle(t *testing.T) {
	exprs := corpus()
	c := &comparison{t: t}
	utc := &clock{name: "UTC", zone: time.UTC}
	each(exprs[:len(exprs)/thin], func(expr string) {
		to := productFrom + 2*86400 // many ticks of what is dense, and of the rest as many as its years have
		if !slices.Contains(dense, expr) {
			to = productTo
		}
		if s := parse(t, expr, "UTC"); s != nil {
			c.chain(utc, s, expr, newOracle(expr).ticks(utc, productFrom, to), productFrom-1, to, 50)
		}
	})
	c.report(1, len(exprs)/thin)
}

func TestEveryZoneAroundItsChangesAgreesWithTheOracle(t *testing.T) {
	if *full {
		t.Skip("the full product holds this")
	}
	all := clocks(3 * 86400)
	all = all[:len(all)/thin]
	c := &comparison{t: t}
	exprs := pairs([]string{"30 0-2 * * *", "15,45 * * * *"})
	each(all, func(clk *clock) {
		clk.watch()
		for _, p := range exprs {
			c.around(clk, p, 2)
		}
	})
	c.report(len(all), len(exprs))
}

func TestASampleOfZonesAndExpressionsAgreesWithTheOracle(t *testing.T) {
	if *full {
		t.Skip("the full product holds this")
	}
	t.Logf("seed %d", *seed)
	rnd := rand.New(rand.NewPCG(*seed, 1))
	names, exprs := strings.Fields(zoneNames), corpus()
	type draw struct{ zone, expr string }
	draws := make([]draw, 40/thin)
	for i := range draws {
		draws[i] = draw{names[rnd.IntN(len(names))], exprs[rnd.IntN(len(exprs)-len(dense))]}
	}
	c := &comparison{t: t}
	each(draws, func(d draw) {
		clk, p := newClock(d.zone, 3*86400), pair{d.expr, newOracle(d.expr)}
		clk.watch()
		c.whole(clk, p)
		c.around(clk, p, 3)
	})
	c.report(len(draws), len(draws))
}

func TestEveryZoneWithEveryExpressionAgreesWithTheOracle(t *testing.T) {
	if !*full && !long.Enabled() {
		t.Skip("takes long: KAGZI_TEST_LONG=1 for one in twenty of the expressions, -cron.full for all")
	}
	const few = 20
	turn := 0 // of the first clock: each clock has other expressions than the next
	if !*full {
		turn = int(long.Seed(t) % few)
	}
	began := time.Now()
	all, exprs := clocks(3600), pairs(corpus())
	c := &comparison{t: t}
	var done atomic.Int64
	each(all, func(clk *clock) {
		clk.watch()
		for i, p := range exprs {
			if t.Failed() {
				return
			}
			if !*full && (i+turn+slices.Index(all, clk))%few != 0 {
				continue
			}
			if !slices.Contains(dense, p.expr) {
				c.whole(clk, p)
			}
			c.around(clk, p, 5)
		}
		for i := range clk.changes {
			clk.changes[i].faces = nil
		}
		if n := done.Add(1); n%10 == 0 {
			t.Logf("%d of %d clocks, %s", n, len(all), time.Since(began).Round(time.Second))
		}
	})
	c.report(len(all), len(exprs))
	t.Logf("took %s", time.Since(began).Round(time.Second))
}
