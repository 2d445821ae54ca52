package query

import (
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "-7d": -168 * time.Hour, "2w": 336 * time.Hour, "+1h30m": 90 * time.Minute,
		"1d12h": 36 * time.Hour, "1w1d1h": 193 * time.Hour, "0d": 0,
		"36600d": 36600 * 24 * time.Hour, "-5228w": -36596 * 24 * time.Hour} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "--1d", "1.5d", "99999999w", "36601d", "5229w", "-20000w", "31000w",
		"36600w", "1y", "-", "1d-1h", "1d1w", "36600d2540400h", "-+1h", "5228w5d"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", text, got)
		}
	}
}

// Most programs write an unset time as 0001-01-01. Read as now, it would make `created <` match
// every run.
func TestTheFirstMomentOfTheYear1IsNotNow(t *testing.T) {
	run := someRun()
	for _, text := range []string{"0001-01-01", "0001-01-01T00:00:00Z"} {
		if got, err := ParseTime(text, noon); err != nil || !got.IsZero() {
			t.Errorf("ParseTime(%q) = %v, %v, want the first moment", text, got, err)
		}
		if runQuery(t, "created < "+text).Matches(run) || !runQuery(t, "created > "+text).Matches(run) {
			t.Errorf("%s is not before a run", text)
		}
	}
}
