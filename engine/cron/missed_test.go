package cron_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/cron"
)

// byIteration is what Missed must say, tick by tick.
func byIteration(s *cron.Schedule, after, until time.Time, keep int) (recent []time.Time, skipped int64) {
	for next, ok := s.Next(after); ok && !next.After(until); next, ok = s.Next(next) {
		recent = append(recent, next)
		if len(recent) > max(keep, 0) {
			recent = recent[1:]
			skipped++
		}
	}
	return recent, skipped
}

// checkMissed compares Missed with plain iteration.
func checkMissed(t *testing.T, s *cron.Schedule, name string, after, until time.Time, keep int) {
	t.Helper()
	want, wantSkipped := byIteration(s, after, until, keep)
	got, skipped := s.Missed(after, until, keep)
	if skipped != wantSkipped || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s, (%s, %s] keep %d:\n got %v and %d skipped\nwant %v and %d", name, after, until, keep, got,
			skipped, want, wantSkipped)
	}
}

func TestMissedAgreesWithPlainIteration(t *testing.T) {
	t.Logf("seed %d", *seed)
	rnd := rand.New(rand.NewPCG(*seed, 2))
	exprs := corpus()
	zones := []string{"", "America/New_York", "Australia/Lord_Howe", "Antarctica/Casey", "Pacific/Apia",
		"America/Havana", "America/St_Johns", "Africa/Casablanca"}
	for range 150 / thin {
		expr, zone := exprs[rnd.IntN(len(exprs))], zones[rnd.IntN(len(zones))]
		s := parse(t, expr, zone)
		if s == nil {
			continue
		}
		after := time.Unix(946684800+rnd.Int64N(38*365*86400), rnd.Int64N(2)*rnd.Int64N(1e9))
		first, ok := s.Next(after)
		if !ok {
			continue
		}
		some := s.NextN(first, 1+rnd.IntN(40))
		if len(some) == 0 {
			continue
		}
		until := some[len(some)-1].Add(time.Duration(rnd.IntN(3)-1) * time.Second)
		checkMissed(t, s, expr+" in "+zone, after, until, rnd.IntN(len(some)+2))
	}
}

func TestMissedFindsNoSecondPassWhereverItBeginsToLook(t *testing.T) {
	s := parse(t, "30 1 * * *", "America/New_York")
	after := time.Date(2026, 10, 31, 12, 0, 0, 0, time.UTC)
	for step := range 6 * 24 * 3 / thin {
		until := after.Add(time.Duration(step) * 10 * thin * time.Minute)
		checkMissed(t, s, "30 1 * * *", after, until, 3)
		checkMissed(t, s, "30 1 * * *", after, until, 0)
	}
}

func TestMissedBoundsAreOpenAndClosed(t *testing.T) {
	at := func(text string) time.Time {
		tm, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return tm
	}
	for _, c := range []struct {
		name, expr, zone, after, until string
		keep                           int
		recent                         []string
		skipped                        int64
	}{
		{"a tick at after is not missed", "0 * * * *", "", "2026-01-01T10:00:00Z", "2026-01-01T10:59:59Z", 5, nil, 0},
		{"one at until is", "0 * * * *", "", "2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z", 5,
			[]string{"2026-01-01T11:00:00Z"}, 0},
		{"a moment after a tick is after it", "0 * * * *", "", "2026-01-01T10:00:00.5Z", "2026-01-01T11:00:00.5Z", 5,
			[]string{"2026-01-01T11:00:00Z"}, 0},
		{"a moment before a tick is before it", "0 * * * *", "", "2026-01-01T09:59:59.5Z", "2026-01-01T10:59:59.5Z", 5,
			[]string{"2026-01-01T10:00:00Z"}, 0},
		{"the most recent are kept", "0 * * * *", "", "2026-01-01T00:00:00Z", "2026-01-01T10:00:00Z", 2,
			[]string{"2026-01-01T09:00:00Z", "2026-01-01T10:00:00Z"}, 8},
		{"none are kept", "0 * * * *", "", "2026-01-01T00:00:00Z", "2026-01-01T10:00:00Z", 0, nil, 10},
		{"fewer than none are none", "0 * * * *", "", "2026-01-01T00:00:00Z", "2026-01-01T10:00:00Z", -1, nil, 10},
		{"exactly as many as there are", "0 * * * *", "", "2026-01-01T08:00:00Z", "2026-01-01T10:00:00Z", 2,
			[]string{"2026-01-01T09:00:00Z", "2026-01-01T10:00:00Z"}, 0},
		{"an empty stretch", "* * * * * *", "", "2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z", 5, nil, 0},
		{"a clock that went back", "* * * * * *", "", "2026-01-01T10:00:00Z", "2025-01-01T10:00:00Z", 5, nil, 0},
		{"years that are over", "0 0 0 1 * ? 2020", "", "2020-10-15T00:00:00Z", "2026-01-01T10:00:00Z", 1,
			[]string{"2020-12-01T00:00:00Z"}, 1},
		{"the gap's tick is the oldest kept", "30 2 * * *", "America/New_York", "2026-03-06T12:00:00Z",
			"2026-03-09T12:00:00Z", 2,
			[]string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"}, 1},
		{"the gap's tick is skipped", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", "2026-03-09T12:00:00Z",
			1, []string{"2026-03-09T06:30:00Z"}, 1},
		{"the gap's tick is at until", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", "2026-03-08T07:00:00Z",
			1, []string{"2026-03-08T07:00:00Z"}, 0},
		{"the gap's tick is at after", "30 2 * * *", "America/New_York", "2026-03-08T07:00:00Z", "2026-03-09T06:29:59Z",
			1, nil, 0},
		{"both passes", "30 * * * *", "America/New_York", "2026-11-01T05:00:00Z", "2026-11-01T06:59:00Z", 9,
			[]string{"2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"}, 0},
		{"the first pass only", "30 1 * * *", "America/New_York", "2026-11-01T05:00:00Z", "2026-11-01T06:59:00Z", 9,
			[]string{"2026-11-01T05:30:00Z"}, 0},
		{"nothing from inside the second pass", "30 1 * * *", "America/New_York", "2026-11-01T06:10:00Z",
			"2026-11-01T06:59:00Z", 9, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parse(t, c.expr, c.zone)
			recent, skipped := s.Missed(at(c.after), at(c.until), c.keep)
			var got []string
			for _, tick := range recent {
				got = append(got, tick.Format(time.RFC3339))
			}
			if skipped != c.skipped || fmt.Sprint(got) != fmt.Sprint(c.recent) {
				t.Errorf("Missed = %v and %d skipped, want %v and %d", got, skipped, c.recent, c.skipped)
			}
		})
	}
}

func TestMissedCountsWhatNobodyCouldIterate(t *testing.T) {
	from, until := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	seconds := int64(until.Sub(from) / time.Second)
	const keep = 100_000
	for _, zone := range []string{"", "America/New_York"} {
		s := parse(t, "* * * * * *", zone)
		recent, skipped := s.Missed(from, until, keep)
		if len(recent) != keep || skipped != seconds-keep {
			t.Fatalf("in %q %d kept and %d skipped, want %d and %d", zone, len(recent), skipped, keep, seconds-keep)
		}
		for i, tick := range recent {
			if want := until.Add(time.Duration(i-keep+1) * time.Second); !tick.Equal(want) {
				t.Fatalf("in %q tick %d is %s, want %s", zone, i, tick, want)
			}
		}
	}
	s := parse(t, "@yearly", "")
	if recent, skipped := s.Missed(time.Time{}, time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), 1); len(
		recent) != 1 || skipped != 9997 {
		t.Errorf("over all time %v and %d skipped, want one and 9997", recent, skipped)
	}
}

func TestMissedIsQuick(t *testing.T) {
	from := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	s := parse(t, "* * * * * *", "America/New_York")
	best := time.Hour
	for range 3 { // the best of three, since others may be using this machine
		began := time.Now()
		s.Missed(from, from.AddDate(2, 0, 0), 100)
		best = min(best, time.Since(began))
	}
	if best > 200*time.Millisecond {
		t.Errorf("two years of every second took %s, want less than 200 ms", best)
	}
}

func BenchmarkMissed(b *testing.B) {
	from := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, keep := range []int{0, 100, 100_000} {
		b.Run(fmt.Sprintf("every second over two years, keep %d", keep), func(b *testing.B) {
			s, err := cron.Parse("* * * * * *", "America/New_York")
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				s.Missed(from, from.AddDate(2, 0, 0), keep)
			}
		})
	}
}
