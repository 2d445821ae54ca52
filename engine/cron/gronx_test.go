package cron_test

import (
	"sync"
	"testing"
	"time"

	"github.com/adhocore/gronx"
	"github.com/google/go-cmp/cmp"
	"github.com/kagzi/kagzi/engine/cron"
)

// Each of these names a fault or a habit of gronx (v1.20.4) that must not be seen through this
// package. The log says when a newer gronx no longer has it.

func TestGronxAnswersWithTheSameInstantAfterTheLastTick(t *testing.T) {
	last := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	if next, err := gronx.NextTickAfter("0 0 12 1 1 * 2027", last, false); err != nil || !next.Equal(last) {
		t.Log("gronx no longer does this")
	}
	if next, ok := parse(t, "0 0 12 1 1 * 2027", "").Next(last); ok {
		t.Errorf("after the last tick Next says %s", next)
	}
}

func TestGronxFindsNonsenseValid(t *testing.T) {
	for _, expr := range []string{"70/5 * * * *", "*/99 * * * *", "1-2-3 * * * *", "+5 * * * *", "0 0 * * 9#9",
		"0 0 * * 9L", "0 0 99W * *", "0 0 31 2 *"} {
		if !gronx.IsValid(expr) {
			t.Logf("gronx no longer takes %q", expr)
		}
		if _, err := cron.Parse(expr, ""); err == nil {
			t.Errorf("%q is accepted", expr)
		}
	}
}

func TestGronxChecksAListOnlyUpToTheMinuteOfTheProcess(t *testing.T) {
	for minute := range 60 { // whatever minute it is now, one of the lists begins with it
		expr := time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC).Format("4") + ",99 * * * *"
		if _, err := cron.Parse(expr, ""); err == nil {
			t.Errorf("%q is accepted", expr)
		}
	}
}

func TestGronxTakesTheSixthFieldForAYearWhenItLooksLikeOne(t *testing.T) {
	if segments, err := gronx.Segments("0 0 12 1 1 2027"); err != nil || len(segments) != 7 {
		t.Log("gronx no longer does this")
	}
	if _, err := cron.Parse("0 0 12 1 1 2027", ""); err == nil {
		t.Error("six fields with a year are accepted")
	}
}

func TestGronxLosesTicksInLocalZones(t *testing.T) {
	for _, c := range []struct {
		name, expr, zone, after, want string
	}{
		{"in the gap", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00-05:00", "2026-03-08T03:00:00-04:00"},
		{"at a midnight in the gap", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00-03:00",
			"2018-11-04T01:00:00-02:00"},
		{"in the first pass of a repeated half hour", "*/15 * * * *", "Australia/Lord_Howe",
			"2026-04-05T01:20:00+11:00", "2026-04-05T01:30:00+11:00"},
		{"on a day that a zone left out", "0 0 30 12 *", "Pacific/Apia", "2011-12-28T13:00:00-10:00",
			"2011-12-31T00:00:00+14:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			zone, err := time.LoadLocation(c.zone)
			if err != nil {
				t.Fatal(err)
			}
			after, err := time.Parse(time.RFC3339, c.after)
			if err != nil {
				t.Fatal(err)
			}
			if next, err := gronx.NextTickAfter(c.expr, after.In(zone), false); err == nil &&
				next.Format(time.RFC3339) == c.want {
				t.Log("gronx no longer does this")
			}
			if diff := cmp.Diff([]string{c.want}, ticks(t, c.expr, c.zone, c.after, time.RFC3339, 1)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestGronxTakesEitherDayWithSecondsToo(t *testing.T) {
	after := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if next, err := gronx.NextTickAfter("0 0 0 13 * FRI", after, false); err != nil || next.Day() == 13 {
		t.Log("gronx no longer does this")
	}
	if next, ok := parse(t, "0 0 0 13 * FRI", "").Next(after); !ok || next.Day() != 13 ||
		next.Weekday() != time.Friday {
		t.Errorf("Next says %s, want a Friday the 13th", next)
	}
}

func TestGronxStepsYearsFromZero(t *testing.T) {
	after := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	if next, err := gronx.NextTickAfter("0 0 0 1 1 * */4", after, false); err != nil || next.Year() != 2028 {
		t.Log("gronx no longer does this")
	}
	if next, ok := parse(t, "0 0 0 1 1 * */4", "").Next(after); !ok || next.Year() != 2030 {
		t.Errorf("Next says %s, want 2030, as every other field steps from its least value", next)
	}
}

// addTag is once in a process: gronx refuses a tag that it has, as it does when this test is
// repeated.
var addTag = sync.OnceValue(func() error { return gronx.AddTag("@fortnightly", "0 0 1,15 * *") })

func TestGronxKeepsTagsForTheWholeProcess(t *testing.T) {
	if err := addTag(); err != nil {
		t.Fatal(err)
	}
	if _, err := cron.Parse("@fortnightly", ""); err == nil {
		t.Error("another package's tag is accepted")
	}
}

func TestGronxGivesBackAFractionOfASecond(t *testing.T) {
	after := time.Date(2026, 1, 1, 0, 0, 0, 5e8, time.UTC)
	if next, err := gronx.NextTickAfter("* * * * * *", after, true); err != nil || next.Nanosecond() == 0 {
		t.Log("gronx no longer does this")
	}
	if next, ok := parse(t, "* * * * * *", "").Next(after); !ok || !next.Equal(after.Add(5e8)) {
		t.Errorf("Next says %s, want the next whole second", next)
	}
}
