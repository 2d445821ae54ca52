package cron_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/kagzi/kagzi/engine/cron"
)

// FuzzParse looks for an expression that panics or hangs, and for an accepted one whose ticks are
// not in order or differ between Next and Missed.
func FuzzParse(f *testing.F) {
	zones := []string{"", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Antarctica/Casey",
		"America/St_Johns", "Africa/Casablanca", "No/Where"}
	f.Add("30 2 * * *", byte(1), int64(1772953200))
	f.Add("*/15 * * * *", byte(2), int64(1775312400))
	f.Add("0 12 * * *", byte(3), int64(1325160000))
	f.Add("0 0 0 29 2 MON", byte(1), int64(-1<<63))
	f.Add("0 0 0 ? 2 FRI#5 2096", byte(4), int64(0))
	f.Add("0 0 L,15W,1W * 5L,MON#2", byte(5), int64(1<<40))
	f.Add("* * * * * *", byte(6), int64(253402300798))
	f.Add("59 59 23 31 12 ? 2100", byte(0), int64(1<<62))
	f.Add("@hourly", byte(7), int64(1))
	f.Add("1-59/7,*/9 0-23/5 */3 JAN-DEC/2 7/2", byte(1), int64(1<<31))
	f.Add("\x00,\xff/-1 ?? LW L-3 #", byte(0), int64(0))
	f.Fuzz(func(t *testing.T, expr string, zone byte, after int64) {
		s, err := cron.Parse(expr, zones[int(zone)%len(zones)])
		if err != nil {
			e, ok := errors.AsType[*cron.Error](err)
			if !ok || e.Field == "" || len(e.Reason) > 400 ||
				strings.ContainsFunc(e.Reason, func(r rune) bool {
					return !unicode.IsPrint(r) || r == unicode.ReplacementChar
				}) {
				t.Fatalf("Parse(%q): %q", expr, err)
			}
			return
		}
		from := time.Unix(after, 0)
		ticks := s.NextN(from, 30)
		for i, tick := range ticks {
			if earlier := slices.Concat([]time.Time{from}, ticks)[i]; !tick.After(earlier) || tick.Nanosecond() != 0 ||
				tick.Location() != time.UTC || tick.Year() > 9999 {
				t.Fatalf("%q after %s: %v", expr, earlier, tick)
			}
		}
		if len(ticks) == 0 {
			return
		}
		recent, skipped := s.Missed(from, ticks[len(ticks)-1], 10)
		if kept := ticks[max(0, len(ticks)-10):]; !slices.Equal(recent, kept) ||
			skipped != int64(len(ticks)-len(kept)) {
			t.Fatalf("%q after %s: Missed %v and %d, Next %v", expr, from, recent, skipped, ticks)
		}
	})
}
