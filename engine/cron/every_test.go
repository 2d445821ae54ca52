package cron_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/cron"
)

func TestEveryCountsFrom1970InAllZones(t *testing.T) {
	after := time.Date(2026, time.March, 29, 0, 59, 30, 0, time.UTC) // Berlin's clock is put forward at 01:00
	for _, c := range []struct{ expr, want string }{
		{"@every 1s", "2026-03-29T00:59:31Z"},
		{"@every 90s", "2026-03-29T01:00:00Z"},
		{"@EVERY 1m30s", "2026-03-29T01:00:00Z"},
		{"@every 24h", "2026-03-30T00:00:00Z"},
		{"@every 87600h", "2029-12-17T00:00:00Z"},
	} {
		for _, zone := range []string{"", "Europe/Berlin", "Asia/Kathmandu"} {
			s, err := cron.Parse(c.expr, zone)
			if err != nil {
				t.Fatalf("%s: %v", c.expr, err)
			}
			next, ok := s.Next(after)
			if !ok || next.Format(time.RFC3339) != c.want {
				t.Errorf("%s in %q: next is %v, want %s", c.expr, zone, next, c.want)
			}
		}
	}
}

func TestEveryHasTheSameTicksAfterEachStart(t *testing.T) {
	t.Logf("seed %d", *seed)
	rnd := rand.New(rand.NewPCG(*seed, 7))
	for range 50 {
		every := time.Duration(1+rnd.IntN(100_000)) * time.Second
		s, err := cron.Parse("@every "+every.String(), "")
		if err != nil {
			t.Fatal(err)
		}
		ticks := s.NextN(time.Unix(rnd.Int64N(4e9), 0), 20)
		for i, tick := range ticks[:19] {
			if ticks[i+1].Sub(tick) != every || tick.Unix()%int64(every/time.Second) != 0 {
				t.Fatalf("every %s: %s is followed by %s", every, tick, ticks[i+1])
			}
			start := tick.Add(time.Duration(rnd.Int64N(int64(every))))
			if next, _ := s.Next(start); !next.Equal(ticks[i+1]) {
				t.Fatalf("every %s, started at %s: next is %s, want %s", every, start, next, ticks[i+1])
			}
		}
		first := ticks[0].Add(time.Duration(rnd.IntN(3)-1) * time.Second)
		checkMissed(t, s, "@every "+every.String(), first, ticks[rnd.IntN(20)], rnd.IntN(22))
		checkMissed(t, s, "@every "+every.String(), ticks[5], ticks[5], 3)
	}
	if _, ok := parse(t, "@every 87600h", "").Next(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)); ok {
		t.Error("there is a tick after the year 9999")
	}
}

func TestJitterIsFixedForEachTickAndKeepsTheirOrder(t *testing.T) {
	id := [16]byte{1}
	for _, c := range []struct {
		expr   string
		jitter time.Duration
		below  time.Duration
	}{
		{"0 * * * *", 10 * time.Minute, 10 * time.Minute},
		{"@every 90s", time.Hour, 90 * time.Second},
		{"* * * * * *", 24 * time.Hour, time.Second},
		{"0,1 0 * * *", time.Hour, time.Hour},
	} {
		s, again := parse(t, c.expr, "Europe/Berlin"), parse(t, c.expr, "Europe/Berlin")
		seen, sum := map[time.Duration]bool{}, time.Duration(0)
		var before time.Time
		for _, tick := range s.NextN(time.Unix(1_800_000_000, 0), 300) {
			delay := s.Delay(id, tick, c.jitter)
			if delay < 0 || delay >= c.below || delay%time.Millisecond != 0 {
				t.Fatalf("%s: the delay of %s is %s", c.expr, tick, delay)
			}
			if other := again.Delay(id, tick, c.jitter); other != delay {
				t.Fatalf("%s: two servers delay %s by %s and %s", c.expr, tick, delay, other)
			}
			if fires := tick.Add(delay); !fires.After(before) {
				t.Fatalf("%s: %s fires at %s, not after the one before", c.expr, tick, fires)
			}
			before, seen[delay], sum = tick.Add(delay), true, sum+delay
		}
		if len(seen) < 50 {
			t.Errorf("%s: 300 ticks have %d delays", c.expr, len(seen))
		}
	}
	s, tick := parse(t, "@hourly", ""), time.Unix(1_800_000_000, 0)
	if got := s.Delay(id, tick, 0); got != 0 {
		t.Errorf("without jitter the delay is %s", got)
	}
	spread := map[string]bool{}
	for i := range byte(100) {
		spread[fmt.Sprint(s.Delay([16]byte{i}, tick, time.Hour)/(6*time.Minute))] = true
	}
	if len(spread) != 10 {
		t.Errorf("a hundred schedules fall into %d tenths of the hour, want all 10", len(spread))
	}
	over := parse(t, "0 0 0 1 1 * 2030", "")
	if got := over.Delay(id, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), time.Hour); got != 0 {
		t.Errorf("the last tick is delayed by %s", got)
	}
}
