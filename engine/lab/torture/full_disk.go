//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// ballast is a run without a worker that accepts signals. On a full disk a server still has space
// in its preallocated log; the signals use that up.
type ballast struct {
	run    *kagzi.Run
	server *server
	filler string
}

// newBallast starts it. It ends by itself when the load ends.
func (t *torture) newBallast(ctx context.Context) (*ballast, error) {
	const request = "ballast"
	t.load.Expected.Store(request, check.Wanted{Type: workload.FloodType, Queue: "default", Input: `""`})
	event := t.replays.Begin(history.Event{Op: history.Start, Request: request})
	run, err := kagzi.Start(ctx, t.load.Clients[0].SDK, workload.FloodType, "", kagzi.StartOptions{
		RequestID: request, Requirements: map[string]string{"torture": "nobody"},
		ExecutionTimeout: t.options.duration + leastRecovery})
	if err != nil {
		return nil, err
	}
	event.Outcome, event.Run = history.OK, run.ID()
	t.replays.Finish(event)
	return &ballast{run, t.system.servers[0], workload.Filler(newRandom(t.options.seed).r, 1<<20)}, nil
}

const (
	mostBallast  = 128     // signals that may be needed, of a MiB each and finally smaller
	leastBallast = 4 << 10 // bytes that must not fit at the end, as for a run's writes
)

// useUp sends signals until a small one does not fit.
func (b *ballast) useUp(ctx context.Context) bool {
	life := b.server.current()
	for n, size := 0, len(b.filler); n < mostBallast && !life.Ended(); n++ {
		call, cancel := context.WithTimeout(ctx, workload.CallLimit)
		err := kagzi.Signal(call, b.run, "ballast", b.filler[:size], kagzi.SignalOptions{})
		cancel()
		switch o, code := workload.Outcome(err); {
		case o == history.Unknown: // the index of the log is full
			return !life.Ended()
		case exhausted(history.Event{Code: code}) && size <= leastBallast:
			return true
		case exhausted(history.Event{Code: code}):
			size /= 4
		}
	}
	return false
}

// fills are the periods in which a disk had only this many MiB left.
func (t *torture) fills(left int64) []history.Event {
	var fills []history.Event
	for _, e := range t.events {
		if e.Op == history.Fault && e.Step == fmt.Sprintf("%s%d MiB", faultLeave, left) {
			fills = append(fills, e)
		}
	}
	return fills
}

// exhausted reports whether an operation was refused because the disk is full.
func exhausted(e history.Event) bool {
	return strings.EqualFold(strings.ReplaceAll(e.Code, "_", ""), "ResourceExhausted")
}

// noRoomFor reports whether an operation failed on a full disk: it was refused, or its outcome is
// unknown, as when the index of SQLite's log is full.
func noRoomFor(e history.Event) bool {
	return exhausted(e) || e.Outcome == history.Unknown && strings.EqualFold(e.Code, "Unavailable")
}

// littleRoom requires new runs to be refused while there is little space, and the steps of open
// ones to be accepted. Each time that there is no space at all, writes of open runs must fail too,
// or else there was space.
func littleRoom(t *torture) figure {
	little, none := t.fills(roomForEnds), t.fills(0)
	refused, taken, failed, idle := 0, 0, 0, 0
	for _, fault := range little {
		for _, e := range t.events {
			switch {
			case e.Invoked < fault.Invoked || e.Invoked > fault.Returned:
			case e.Op == history.Start && exhausted(e):
				refused++
			case e.Op == history.Complete && e.Outcome == history.OK:
				taken++
			}
		}
	}
	for _, fault := range none {
		before := failed
		for _, e := range t.events {
			if e.Invoked >= fault.Invoked && e.Invoked <= fault.Returned && noRoomFor(e) && check.Writes(e.Op) {
				failed++
			}
		}
		if failed == before {
			idle++
		}
	}
	return figure{name: "writes with little space, and with none", limit: "some of each, and each time there was none",
		hard: true,
		got: fmt.Sprintf("%d starts refused, %d steps' results taken; %d writes failed in %d times, in %d of them none",
			refused, taken, failed, len(none), idle),
		ok: refused > 0 && taken > 0 && failed > 0 && idle == 0}
}

// refusedAtOnce requires starts that do not fit to be refused without delay.
func refusedAtOnce(t *torture) figure {
	const limit = 100 * time.Millisecond
	f := figure{name: "until a start is refused because the disk is full", got: "none was",
		limit: "p99 ≤ " + limit.String()}
	var took []time.Duration
	for _, e := range t.events {
		if e.Op == history.Start && exhausted(e) {
			took = append(took, time.Duration(e.Returned-e.Invoked))
		}
	}
	if len(took) > 0 {
		slices.Sort(took)
		f.got = fmt.Sprintf("%d refused, p50 %s, p99 %s, longest %s", len(took), round(percentile(took, 50)),
			round(percentile(took, 99)), round(took[len(took)-1]))
		f.ok = percentile(took, 99) <= limit
	}
	return f
}

// roomAgain limits how soon after there is space a server must accept starts.
const roomAgain = 5 * time.Second

// backWithRoom requires starts to be accepted soon after there is space, each time without a
// restart.
func backWithRoom(t *torture) figure {
	f := figure{name: "from free space until a start is acknowledged", got: "there was always space",
		limit: "≤ " + roomAgain.String(), hard: true}
	var longest time.Duration
	fills := t.fills(0)
	for _, fault := range fills {
		first := int64(math.MaxInt64)
		for _, e := range t.events {
			if e.Op == history.Start && e.Outcome == history.OK && e.Returned > fault.Returned {
				first = min(first, e.Returned)
			}
		}
		longest = max(longest, time.Duration(first-fault.Returned))
	}
	if len(fills) > 0 {
		f.got = fmt.Sprintf("%d times, longest %s", len(fills), round(longest))
		f.ok = longest <= roomAgain
	}
	return f
}
