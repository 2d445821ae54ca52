package daemon

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestTheClockOfTestsFollowsItsInput(t *testing.T) {
	c := &Config{Log: slog.New(slog.DiscardHandler), WorkerLease: time.Second, Retention: time.Hour}
	clock, err := c.newTestClock("1", "sqlite:x")
	if err != nil {
		t.Fatal(err)
	}
	if c.WorkerLease != testLease || c.Retention != 0 {
		t.Errorf("lease %s and retention %s, want jumps to end neither", c.WorkerLease, c.Retention)
	}
	start, looks := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0
	var out strings.Builder
	clock.follow(strings.NewReader("pass 48h\npass 1h\npass -1h\npass 2000000h\njump\n"), &out,
		func() time.Time { return start.Add(clock.aheadOf()()) }, func() { looks++ })
	want := `now 2026-01-03T00:00:00Z
now 2026-01-03T01:00:00Z
error the clock cannot be set ahead by -1h0m0s: it goes forwards only, and at most 876000h0m0s in all
error the clock cannot be set ahead by 2000000h0m0s: it goes forwards only, and at most 876000h0m0s in all
error want "pass DURATION" such as "pass 720h", got "jump"
`
	if out.String() != want || looks != 2 {
		t.Errorf("%d looks, and\n%s", looks, out.String())
	}
}

func TestTheClockOfTestsIsAskedForAndOnSQLiteOnly(t *testing.T) {
	c := &Config{Log: slog.New(slog.DiscardHandler), WorkerLease: time.Second}
	clock, err := c.newTestClock("", "sqlite:x")
	if clock != nil || err != nil || clock.aheadOf() != nil || c.WorkerLease != time.Second {
		t.Errorf("without the variable: clock %v, error %v, lease %s", clock, err, c.WorkerLease)
	}
	for value, url := range map[string]string{"yes": "sqlite:x", "1": "postgres://x"} {
		if _, err := c.newTestClock(value, url); err == nil || !strings.Contains(err.Error(), "KAGZI_TEST_CLOCK") {
			t.Errorf("%s on %s: error %v, want one that names the variable", value, url, err)
		}
	}
}
