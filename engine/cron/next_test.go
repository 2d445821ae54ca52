package cron_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/kagzi/kagzi/engine/cron"
)

func TestNextWhereClocksChange(t *testing.T) {
	const local = "01-02T15:04:05-07:00"
	for _, c := range []struct {
		name, expr, zone, after string
		want                    []string
	}{
		{"a fixed time in the gap fires at its end", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z",
			[]string{"03-08T03:00:00-04:00", "03-09T02:30:00-04:00"}},
		{"two of them fire once", "15,45 2 * * *", "America/New_York", "2026-03-07T12:00:00Z",
			[]string{"03-08T03:00:00-04:00", "03-09T02:15:00-04:00"}},
		{"one that lands on a tick is that tick", "30 2,3 * * *", "America/New_York", "2026-03-07T12:00:00Z",
			[]string{"03-08T03:00:00-04:00", "03-08T03:30:00-04:00", "03-09T02:30:00-04:00"}},
		{"one that lands on a tick adds none", "0,30 2,3 * * *", "America/New_York", "2026-03-08T06:00:00Z",
			[]string{"03-08T03:00:00-04:00", "03-08T03:30:00-04:00"}},
		{"the end of the gap is not repeated after itself", "30 2 * * *", "America/New_York", "2026-03-08T07:00:00Z",
			[]string{"03-09T02:30:00-04:00"}},
		{"wildcards in the gap fire at its end too", "30 * * * *", "America/New_York", "2026-03-08T06:00:00Z",
			[]string{"03-08T01:30:00-05:00", "03-08T03:00:00-04:00", "03-08T03:30:00-04:00"}},
		{"a wildcard minute of a lost hour too", "*/15 2 * * *", "America/New_York", "2026-03-08T06:00:00Z",
			[]string{"03-08T03:00:00-04:00", "03-09T02:00:00-04:00"}},
		{"every minute goes on without a break", "* * * * *", "America/New_York", "2026-03-08T06:58:00Z",
			[]string{"03-08T01:59:00-05:00", "03-08T03:00:00-04:00", "03-08T03:01:00-04:00"}},
		{"every second too", "* * * * * *", "America/New_York", "2026-03-08T06:59:58Z",
			[]string{"03-08T01:59:59-05:00", "03-08T03:00:00-04:00", "03-08T03:00:01-04:00"}},
		{"a time just after the gap is its own", "0 3 * * *", "America/New_York", "2026-03-07T12:00:00Z",
			[]string{"03-08T03:00:00-04:00", "03-09T03:00:00-04:00"}},

		{"a fixed time in the overlap fires in the first pass", "30 1 * * *", "America/New_York",
			"2026-10-31T12:00:00Z",
			[]string{"11-01T01:30:00-04:00", "11-02T01:30:00-05:00"}},
		{"asked between the passes too", "30 1 * * *", "America/New_York", "2026-11-01T05:45:00Z",
			[]string{"11-02T01:30:00-05:00"}},
		{"asked in the second pass too", "30 1 * * *", "America/New_York", "2026-11-01T06:10:00Z",
			[]string{"11-02T01:30:00-05:00"}},
		{"seconds may be wildcards of a fixed time", "*/30 59 1 * * *", "America/New_York", "2026-11-01T05:00:00Z",
			[]string{"11-01T01:59:00-04:00", "11-01T01:59:30-04:00", "11-02T01:59:00-05:00"}},
		{"wildcards fire in both passes", "*/30 * * * *", "America/New_York", "2026-11-01T04:40:00Z",
			[]string{"11-01T01:00:00-04:00", "11-01T01:30:00-04:00", "11-01T01:00:00-05:00", "11-01T01:30:00-05:00",
				"11-01T02:00:00-05:00"}},
		{"a wildcard minute of a fixed hour too", "*/30 1 * * *", "America/New_York", "2026-11-01T05:10:00Z",
			[]string{"11-01T01:30:00-04:00", "11-01T01:00:00-05:00", "11-01T01:30:00-05:00", "11-02T01:00:00-05:00"}},
		{"the hour after the overlap fires once", "0 2 * * *", "America/New_York", "2026-11-01T04:00:00Z",
			[]string{"11-01T02:00:00-05:00", "11-02T02:00:00-05:00"}},
		{"the second pass of an expression's last hour comes", "0 */30 1 1 11 ? 2026", "America/New_York",
			"2026-11-01T05:30:00Z",
			[]string{"11-01T01:00:00-05:00", "11-01T01:30:00-05:00"}},

		{"half an hour is put forward", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z",
			[]string{"10-04T02:30:00+11:00", "10-05T02:15:00+11:00"}},
		{"half an hour is put back", "*/15 * * * *", "Australia/Lord_Howe", "2026-04-04T14:20:00Z",
			[]string{"04-05T01:30:00+11:00", "04-05T01:45:00+11:00", "04-05T01:30:00+10:30", "04-05T01:45:00+10:30",
				"04-05T02:00:00+10:30"}},
		{"midnight does not exist", "0 0 * * *", "America/Havana", "2026-03-07T12:00:00Z",
			[]string{"03-08T01:00:00-04:00", "03-09T00:00:00-04:00"}},
		{"midnight comes twice", "0 0 * * *", "America/Havana", "2026-10-31T12:00:00Z",
			[]string{"11-01T00:00:00-04:00", "11-02T00:00:00-05:00"}},
		{"the day before comes twice from 23:00", "30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00:00Z",
			[]string{"02-17T23:30:00-02:00", "02-18T23:30:00-03:00"}},
		{"a whole day does not exist", "0 12 * * *", "Pacific/Apia", "2011-12-29T13:00:00Z",
			[]string{"12-29T12:00:00-10:00", "12-31T00:00:00+14:00", "12-31T12:00:00+14:00"}},
		{"a date that does not exist", "0 0 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z",
			[]string{"12-31T00:00:00+14:00", "12-30T00:00:00+14:00"}},
		{"three hours are put back", "30 0 * * *", "Antarctica/Casey", "2010-03-03T20:00:00Z",
			[]string{"03-05T00:30:00+11:00", "03-06T00:30:00+08:00"}},
		{"a minute after midnight the clock is put back", "30 23 * * *", "America/St_Johns", "2010-11-06T12:00:00Z",
			[]string{"11-06T23:30:00-02:30", "11-07T23:30:00-03:30"}},
		{"no daylight saving but another offset", "15 0 * * *", "Asia/Pyongyang", "2015-08-13T12:00:00Z",
			[]string{"08-14T00:15:00+09:00", "08-15T00:15:00+08:30"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ticks(t, c.expr, c.zone, c.after, local, len(c.want))); diff != "" {
				t.Errorf("%q in %s (-want +got):\n%s", c.expr, c.zone, diff)
			}
		})
	}
}

func TestNextIsStrictlyAfter(t *testing.T) {
	for after, want := range map[string]string{
		"2026-01-01T09:59:59.999999999Z": "2026-01-01T10:00:00Z",
		"2026-01-01T10:00:00Z":           "2026-01-02T10:00:00Z",
		"2026-01-01T10:00:00.000000001Z": "2026-01-02T10:00:00Z",
		"2026-01-01T11:00:00.5+01:00":    "2026-01-02T10:00:00Z",
	} {
		if got := ticks(t, "0 10 * * *", "", after, time.RFC3339, 1); got[0] != want {
			t.Errorf("after %s = %s, want %s", after, got[0], want)
		}
	}
}

func TestNextEndsWithTheExpressionsYears(t *testing.T) {
	for _, c := range []struct {
		name, expr, zone, after string
		want                    []string
	}{
		{"the year is over", "0 0 12 1 1 ? 2027", "", "2027-01-01T12:00:00Z", nil},
		{"one tick is left", "0 0 12 1 1 ? 2027", "", "2026-06-01T00:00:00Z", []string{"2027-01-01T12:00:00Z"}},
		{"the year was before the first question", "0 0 12 1 1 ? 1999", "", "2026-06-01T00:00:00Z", nil},
		{"a range of years", "0 0 12 1 1 ? 2027-2028", "", "2026-06-01T00:00:00Z",
			[]string{"2027-01-01T12:00:00Z", "2028-01-01T12:00:00Z"}},
		{"years are those of the zone", "0 0 12 31 12 ? 2026", "Pacific/Honolulu", "2026-12-31T00:00:00Z",
			[]string{"2026-12-31T12:00:00-10:00"}},
		{"a far year", "0 0 0 1 1 ? 2100", "Asia/Tokyo", "1990-01-01T00:00:00Z", []string{"2100-01-01T00:00:00+09:00"}},
		{"before all years", "0 0 0 1 1 ? 1970", "", "0001-01-01T00:00:00Z", []string{"1970-01-01T00:00:00Z"}},
		{"all years but one end", "0 0 0 1 1 ? 1970-2100", "", "2099-06-01T00:00:00Z",
			[]string{"2100-01-01T00:00:00Z"}},
		{"without years there is an end of time", "0 0 1 1 *", "", "9998-06-01T00:00:00Z",
			[]string{"9999-01-01T00:00:00Z"}},
		{"in the west too", "0 22 31 12 *", "America/New_York", "9998-06-01T00:00:00Z",
			[]string{"9998-12-31T22:00:00-05:00"}},
		{"in the east too", "0 2 1 1 *", "Asia/Tokyo", "9998-06-01T00:00:00Z",
			[]string{"9999-01-01T02:00:00+09:00", "10000-01-01T02:00:00+09:00"}},
		{"in the east past its last midnight", "0 2 1 1 *", "Asia/Tokyo", "9999-12-31T16:00:00Z",
			[]string{"10000-01-01T02:00:00+09:00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ticks(t, c.expr, c.zone, c.after, time.RFC3339, len(c.want)+1)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", c.expr, diff)
			}
		})
	}
}

func TestNextWhereTheZoneGoesByItsRule(t *testing.T) {
	for _, c := range []struct {
		name, expr, zone, after string
		want                    []string
	}{
		{"on the last day of a leap year", "30 2 * * *", "America/New_York", "2040-12-30T00:00:00Z",
			[]string{"2040-12-30T02:30:00-05:00", "2040-12-31T02:30:00-05:00", "2041-01-01T02:30:00-05:00"}},
		{"in a gap far ahead", "30 2 * * *", "America/New_York", "2075-03-09T08:00:00Z",
			[]string{"2075-03-10T03:00:00-04:00", "2075-03-11T02:30:00-04:00"}},
		{"at a change that the rule does not have", "30 1 * * *", "America/Metlakatla", "2019-01-19T12:00:00Z",
			[]string{"2019-01-20T01:30:00-08:00", "2019-01-21T01:30:00-09:00"}},
		{"at another", "30 23 * * *", "America/Ciudad_Juarez", "2022-11-29T12:00:00Z",
			[]string{"2022-11-29T23:30:00-06:00", "2022-11-30T23:30:00-07:00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ticks(t, c.expr, c.zone, c.after, time.RFC3339, len(c.want))); diff != "" {
				t.Errorf("%q in %s (-want +got):\n%s", c.expr, c.zone, diff)
			}
		})
	}
}

func TestNextNOfNothing(t *testing.T) {
	s := parse(t, "@daily", "")
	for _, n := range []int{0, -1} {
		if got := s.NextN(time.Unix(0, 0), n); len(got) != 0 {
			t.Errorf("NextN(%d) = %v, want none", n, got)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, c := range []struct{ name, expr, zone string }{
		{"every second", "* * * * * *", ""},
		{"quarter hours", "*/15 * * * *", ""},
		{"quarter hours in a zone", "*/15 * * * *", "America/New_York"},
		{"daily in a zone", "30 2 * * *", "America/New_York"},
		{"leap days on a Monday in a zone", "0 0 0 29 2 MON", "Europe/Berlin"},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, err := cron.Parse(c.expr, c.zone)
			if err != nil {
				b.Fatal(err)
			}
			start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			at := start
			for b.Loop() {
				next, ok := s.Next(at)
				if !ok {
					next = start
				}
				at = next
			}
		})
	}
}
