//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

func TestWhenTheFirstCallWasLetFail(t *testing.T) {
	now := time.Now()
	at := func(ago time.Duration) string {
		then := now.Add(-ago)
		return fmt.Sprintf("%d.%06d", then.Unix(), then.Nanosecond()/1000)
	}
	trace := func(text string) string {
		path := filepath.Join(t.TempDir(), "trace")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	lines := "7 " + at(9*time.Second) + " fsync(4) = 0\n7 " + at(5*time.Second) +
		" fsync(4) = -1 EIO (Input/output error) (INJECTED)\n" +
		"8 " + at(3*time.Second) + " fsync(4) = -1 EIO (Input/output error) (INJECTED)\n"
	first, err := firstInjected(trace(lines))
	if ago := time.Duration(history.Now() - first); err != nil || ago < 5*time.Second ||
		ago > 5*time.Second+time.Since(now)+time.Millisecond {
		t.Errorf("first failed %s ago (%v), want 5 s", ago, err)
	}
	for _, wrong := range []string{"7 " + at(0) + " fsync(4) = 0\n", "7 soon fsync(4) = -1 EIO (INJECTED)\n",
		"(INJECTED)\n", ""} {
		if _, err := firstInjected(trace(wrong)); err == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
}

func TestNothingMayBeAcknowledgedAfterTheDiskHasFailed(t *testing.T) {
	event := func(op history.Op, name string, asked, answered int64) history.Event {
		e := history.Event{Op: op, Request: name, Outcome: history.OK, Invoked: asked, Returned: answered}
		if op != history.Start {
			e.Run, e.Request = name, ""
		}
		return e
	}
	refused := event(history.Start, "a", 12, 14)
	refused.Outcome = history.Refused
	for name, test := range map[string]struct {
		events []history.Event
		ok     bool
	}{
		"nothing":            {nil, true},
		"a start":            {[]history.Event{event(history.Start, "a", 12, 14)}, false},
		"a cancellation":     {[]history.Event{event(history.Cancel, "a", 12, 14)}, false},
		"a step's result":    {[]history.Event{event(history.Complete, "a", 12, 14)}, false},
		"in the second life": {[]history.Event{event(history.Start, "a", 32, 34)}, false},
		"a refusal":          {[]history.Event{refused}, true},
		"asked for before":   {[]history.Event{event(history.Start, "a", 8, 14)}, true},
		"asked for again, and before": {[]history.Event{
			event(history.Start, "a", 8, 0), event(history.Start, "a", 12, 14)}, true},
		"answered by the next life":          {[]history.Event{event(history.Start, "a", 12, 25)}, true},
		"asked for between the failed lives": {[]history.Event{event(history.Start, "a", 25, 34)}, true},
		"what does not change anything": {[]history.Event{
			event(history.Observe, "a", 12, 14), event(history.Claim, "a", 12, 14)}, true},
	} {
		if f := nothingAfter(&torture{events: test.events, failures: []diskFailure{{10, 20}, {30, 40}}}); f.ok !=
			test.ok || !f.hard {
			t.Errorf("%s: %s, hard %t, want ok %t and hard", name, f, f.hard, test.ok)
		}
	}
}

func TestAServerMustEndSoonAfterItsDiskHasFailed(t *testing.T) {
	for name, test := range map[string]struct {
		failures []diskFailure
		ok       bool
	}{
		"in time":       {[]diskFailure{{1, 2}, {3 * sec, 4 * sec}}, true},
		"once too late": {[]diskFailure{{3 * sec, 4*sec + 1}, {1, 2}}, false},
		"never":         {nil, false},
	} {
		if f := gone(time.Second)(&torture{failures: test.failures}); f.ok != test.ok {
			t.Errorf("%s: %s, want ok %t", name, f, test.ok)
		}
	}
}
