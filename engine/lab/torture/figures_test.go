//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

const sec = int64(time.Second)

// ends returns n runs that ended between two moments at equal distances.
func endsAt(n int, from, to int64) (events []history.Event) {
	for i := range n {
		at := from + int64(i)*(to-from)/int64(n)
		events = append(events, history.Event{Op: history.End, Outcome: history.OK, Run: fmt.Sprint(from, i),
			Invoked: at, Returned: at})
	}
	return events
}

func TestRecoveryIsOfTheHalvesThatAreFarthestFromTheFaults(t *testing.T) {
	const n = 1000
	before, after := endsAt(n, 10*sec, 20*sec), endsAt(n, 50*sec, 60*sec)
	refused := slices.Clone(after)
	for i := range refused {
		refused[i].Outcome = history.Refused
	}
	for name, test := range map[string]struct {
		events []history.Event
		got    string
		ok     bool
	}{
		"as before":        {slices.Concat(before, after), "100 % (100.0/s before, 100.0/s after)", true},
		"within chance":    {slices.Concat(before, after[:900]), "90 % (100.0/s before, 90.0/s after)", true},
		"less than before": {slices.Concat(before, after[:800]), "80 % (100.0/s before, 80.0/s after)", false},
		"nothing after":    {before, "0 % (100.0/s before, 0.0/s after)", false},
		"refused ends":     {slices.Concat(before, refused), "0 % (100.0/s before, 0.0/s after)", false},
		"nothing before":   {after, "no run ended before the faults", false},
		"a rush after the fault": {slices.Concat(before, endsAt(n, 41*sec, 50*sec)),
			"0 % (100.0/s before, 0.0/s after)", false},
		"warming up": {slices.Concat(endsAt(n, 1*sec, 10*sec), before, after),
			"100 % (100.0/s before, 100.0/s after)", true},
	} {
		f := recovery(&torture{calm: 0, faulty: 20 * sec, healed: 40 * sec, over: 60 * sec, events: test.events})
		if f.got != test.got || f.ok != test.ok {
			t.Errorf("%s: %s, want %s, ok %t", name, f, test.got, test.ok)
		}
	}
}

func TestThroughputDuringTheFaultIsComparedWithThatBefore(t *testing.T) {
	before := endsAt(1000, 10*sec, 20*sec)
	for n, want := range map[int]bool{2000: true, 1800: true, 1500: false, 0: false} {
		if f := during(&torture{calm: 0, faulty: 20 * sec, healed: 40 * sec, over: 60 * sec,
			events: slices.Concat(before, endsAt(n, 20*sec, 40*sec))}); f.ok != want {
			t.Errorf("%d runs ended during the fault: %s, want ok %t", n, f, want)
		}
	}
}

func TestTheFirstStartAfterTheLastFault(t *testing.T) {
	start := func(o history.Outcome, at int64) history.Event {
		return history.Event{Op: history.Start, Outcome: o, Returned: at}
	}
	for name, test := range map[string]struct {
		events []history.Event
		got    string
		ok     bool
	}{
		"in time": {[]history.Event{start(history.OK, 9*sec), start(history.OK, 20*sec),
			start(history.OK, 15*sec)}, "after 5s", true},
		"too late":     {[]history.Event{start(history.OK, 15*sec+1e6)}, "after 5.001s", false},
		"before alone": {[]history.Event{start(history.OK, 10*sec-1)}, "never", false},
		"refused": {[]history.Event{start(history.Refused, 11*sec), start(history.Unknown, 12*sec)},
			"never", false},
		"an end is not": {endsAt(1, 11*sec, 12*sec), "never", false},
	} {
		if f := backAgain(&torture{healed: 10 * sec, events: test.events}); f.got != test.got || f.ok != test.ok {
			t.Errorf("%s: %s, want %s, ok %t", name, f, test.got, test.ok)
		}
	}
}

func TestFromARunsEndUntilItsClientLearnsOfIt(t *testing.T) {
	at := func(op history.Op, o history.Outcome, status string, at int64) history.Event {
		return history.Event{Op: op, Run: "r", Outcome: o, Status: status, Returned: at}
	}
	seen := at(history.Observe, history.OK, "COMPLETED", 13*sec)
	for name, test := range map[string]struct {
		events []history.Event
		got    string
		ok     bool
	}{
		"in time": {[]history.Event{at(history.End, history.OK, "", 3*sec), seen}, "longest 10s", true},
		"too late": {[]history.Event{at(history.End, history.OK, "", 3*sec-1e6), seen},
			"longest 10.001s", false},
		"after a failure": {[]history.Event{at(history.EndBadly, history.OK, "FAILED", 1*sec), seen},
			"longest 12s", false},
		"of its first end": {[]history.Event{
			at(history.End, history.OK, "", 1*sec), at(history.End, history.OK, "", 12*sec), seen},
			"longest 12s", false},
		"when first seen": {[]history.Event{
			at(history.End, history.OK, "", 12*sec), seen, at(history.Observe, history.OK, "COMPLETED", 30*sec)},
			"longest 1s", true},
		"seen before its end": {[]history.Event{
			at(history.Observe, history.OK, "RUNNING", 1*sec), at(history.End, history.OK, "", 12*sec), seen},
			"longest 1s", true},
		"to be run again": {[]history.Event{
			at(history.EndBadly, history.OK, "PENDING", 1*sec), at(history.End, history.OK, "", 12*sec), seen},
			"longest 1s", true},
		"no answer to an end": {[]history.Event{at(history.End, history.Unknown, "", 1*sec), seen},
			"nobody waited", true},
	} {
		if f := heard(&torture{events: test.events}); !strings.HasSuffix(f.got, test.got) || f.ok != test.ok {
			t.Errorf("%s: %s, want %s, ok %t", name, f, test.got, test.ok)
		}
	}
}

func TestTheTimeUntilAStartIsAcknowledgedBeginsWithTheFirstCall(t *testing.T) {
	start := func(request string, o history.Outcome, asked, answered int64) history.Event {
		return history.Event{Op: history.Start, Request: request, Outcome: o, Invoked: asked, Returned: answered}
	}
	for name, test := range map[string]struct {
		events []history.Event
		got    string
		ok     bool
	}{
		"at once": {[]history.Event{start("a", history.OK, 1*sec, 4*sec)},
			"p50 3s, p99 3s, longest 3s", true},
		"at the second call": {[]history.Event{
			start("a", history.OK, 5*sec, 6*sec), start("a", history.Unknown, 1*sec, 0)},
			"p50 5s, p99 5s, longest 5s", false},
		"never": {[]history.Event{start("a", history.Unknown, 1*sec, 0)}, "", false},
		"an operation in a branch": {[]history.Event{
			start("a", history.OK, 1*sec, 2*sec), {Op: history.Cancel, Outcome: history.OK, Returned: 90 * sec}},
			"p50 1s, p99 1s, longest 1s", true},
	} {
		if f := clientErrors(&torture{events: test.events}); f.got != test.got || f.ok != test.ok {
			t.Errorf("%s: %s, want %s, ok %t", name, f, test.got, test.ok)
		}
	}
}

func TestRunsOfLostWorkersMustBeHandedOutAgainInTime(t *testing.T) {
	stopped := &torture{system: &system{shape: shape{Lease: 2 * time.Second, Heartbeat: 500 * time.Millisecond}}}
	if f := takeover(stopped); !f.ok || f.got != "none" {
		t.Errorf("of none: %s", f)
	}
	for after, want := range map[int64]bool{4500: true, 4501: false} {
		stopped.events = []history.Event{
			{Op: history.Claim, Proc: "a", Run: "r", Token: "1", Outcome: history.OK, Invoked: 1, Returned: 1},
			{Op: history.Fault, Step: faultOnWorker + "a", Outcome: history.OK, Invoked: 2, Returned: 2},
			{Op: history.Claim, Proc: "b", Run: "r", Token: "2", Outcome: history.OK, Invoked: 2 + after*1e6,
				Returned: 2 + after*1e6},
		}
		if f := takeover(stopped); f.ok != want {
			t.Errorf("after %d ms: %s, want ok %t", after, f, want)
		}
	}
}

func TestOnlyTheFirstStartOfAServerIsNoRestart(t *testing.T) {
	for name, test := range map[string]struct {
		starts []time.Duration
		got    string
		ok     bool
	}{
		"never": {[]time.Duration{time.Minute}, "never restarted", true},
		"in time": {[]time.Duration{time.Minute, 2 * time.Second, time.Second},
			"2 restarts, p50 2s, longest 2s", true},
		"too late": {[]time.Duration{1, 2001 * time.Millisecond, 1}, "2 restarts, p50 2.001s, longest 2.001s", false},
	} {
		if f := restart(&torture{system: &system{servers: []*server{{starts: test.starts}}}}); f.got != test.got ||
			f.ok != test.ok {
			t.Errorf("%s: %s, want %s, ok %t", name, f, test.got, test.ok)
		}
	}
}

// replayed is a torture in which writes were sent again, each with its outcome.
func replayed(writes ...history.Event) *torture {
	t := &torture{replays: history.NewLog("replayer")}
	for _, e := range writes {
		begun := t.replays.Begin(e)
		begun.Outcome = e.Outcome
		t.replays.Finish(begun)
	}
	return t
}

func TestForgedAndLateWritesMustBeRefused(t *testing.T) {
	write := func(value string, o history.Outcome) history.Event {
		return history.Event{Op: history.Complete, Value: value, Outcome: o}
	}
	refused, repeated, lost := write(forgery, history.Refused), write("v", history.OK), write("v", history.Refused)
	for name, test := range map[string]struct {
		writes       []history.Event
		forged, late bool
	}{
		"a forgery is refused, a repetition answered": {[]history.Event{refused, repeated}, true, false},
		"a forgery is accepted": {
			[]history.Event{refused, repeated, write(forgery, history.OK)}, false, false},
		"no forgery":            {[]history.Event{repeated, lost}, false, false},
		"no repetition":         {[]history.Event{refused, lost}, false, true},
		"late ones are refused": {[]history.Event{lost}, false, true},
		"no answer":             {[]history.Event{write("v", history.Unknown)}, false, false},
		"nothing":               {nil, false, false},
	} {
		if f := forged(replayed(test.writes...)); f.ok != test.forged || !f.hard {
			t.Errorf("%s: %s, hard %t, want ok %t and hard", name, f, f.hard, test.forged)
		}
		if f := lateWrites(replayed(test.writes...)); f.ok != test.late || !f.hard {
			t.Errorf("%s: %s, hard %t, want ok %t and hard", name, f, f.hard, test.late)
		}
	}
}

func TestPromisesThatAreCountedInTheEnd(t *testing.T) {
	codes := func(codes ...string) *torture {
		t := &torture{}
		for _, code := range codes {
			t.events = append(t.events, history.Event{Code: code})
		}
		return t
	}
	pauses := func(firedAt int64, schedule string) *torture {
		return &torture{pauses: []pausing{{"s", 10, 20}},
			dump: check.Dump{Fires: []check.Fire{{Schedule: schedule, FiredAt: firedAt}}}}
	}
	skipped := func(every, skipped int64) *torture {
		return &torture{dump: check.Dump{Schedules: []check.Schedule{{Every: every, Skipped: skipped}, {}}}}
	}
	boots := func(gaveUp int, boots ...time.Duration) *torture { return &torture{boots: boots, gaveUp: gaveUp} }
	takenOf := func(n int64) *torture {
		t := &torture{healed: 1}
		t.flood.sent.Add(5)
		t.flood.taken.Add(n)
		return t
	}
	for name, test := range map[string]struct {
		of   func(*torture) figure
		with *torture
		ok   bool
	}{
		"no internal error":              {noInternal, codes("NOT_FOUND", ""), true},
		"an internal error for a worker": {noInternal, codes("", "INTERNAL"), false},
		"an internal error for a client": {noInternal, codes("Internal"), false},
		"a run that ended with one": {
			noInternal, &torture{events: []history.Event{{Op: history.Observe, Outcome: history.OK, Code: "INTERNAL"}}},
			true},
		"a tick in a pause":                    {quietWhilePaused, pauses(15, "s"), false},
		"a tick at the beginning of a pause":   {quietWhilePaused, pauses(11, "s"), false},
		"a tick before a pause":                {quietWhilePaused, pauses(9, "s"), true},
		"a tick after a pause":                 {quietWhilePaused, pauses(21, "s"), true},
		"a tick of another schedule":           {quietWhilePaused, pauses(15, "else"), true},
		"an hour's ticks but those caught up":  {skippedOnce, skipped(1, 3500), true},
		"some more":                            {skippedOnce, skipped(1, 3562), true},
		"too many":                             {skippedOnce, skipped(1, 3563), false},
		"some less":                            {skippedOnce, skipped(1, 3438), true},
		"too few":                              {skippedOnce, skipped(1, 3437), false},
		"an hour's minutes, all caught up":     {skippedOnce, skipped(60, 0), true},
		"an hour's minutes that were skipped":  {skippedOnce, skipped(60, 4), false},
		"servers that gave up and serve":       {serveSoon, boots(1, 10*time.Second, time.Second), true},
		"a server that serves too late":        {serveSoon, boots(1, time.Second, 10*time.Second+1), false},
		"servers that never gave up":           {serveSoon, boots(0, time.Second), false},
		"servers that were never started":      {serveSoon, boots(1), false},
		"memory within its limit":              {hard(memory(5)), &torture{memory: 5}, true},
		"memory beyond it":                     {hard(memory(5)), &torture{memory: 6}, false},
		"memory that was never measured":       {hard(memory(5)), &torture{}, false},
		"a storm that was partly accepted":     {flooded, takenOf(1), true},
		"a storm that was not accepted":        {flooded, takenOf(0), false},
		"a log of its size":                    {hard(logShrinks), &torture{left: 64 << 20, peak: 99 << 20}, true},
		"a log that stays":                     {hard(logShrinks), &torture{left: 64<<20 + 1}, false},
		"enough upgrades that were cut short":  {hard(upgradesCut), &torture{cutShort: leastCutShort}, true},
		"too few upgrades that were cut short": {hard(upgradesCut), &torture{cutShort: leastCutShort - 1}, false},
	} {
		if f := test.of(test.with); f.ok != test.ok || !f.hard {
			t.Errorf("%s: %s, hard %t, want ok %t and hard", name, f, f.hard, test.ok)
		}
	}
}

func TestASleepEndsByTheClockThatWasSet(t *testing.T) {
	events := []history.Event{{Woken: true, Early: int64(time.Hour), Returned: 150},
		{Woken: true, Early: 5, Returned: 50}, {Early: 7, Returned: 150}}
	set := &torture{settings: []setting{{0, 0}, {100, time.Hour}}}
	set.byTheirClock(events)
	if events[0].Early != 0 || events[1].Early != 5 || events[2].Early != 7 {
		t.Errorf("ended early by %d, %d and %d ns, want 0, 5 and, as it did not sleep, 7", events[0].Early,
			events[1].Early, events[2].Early)
	}
}
