//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// A starved worker runs for a twentieth of the time, and most of that goes to goroutines in it that
// spin.
const (
	rationPeriod = 200 * time.Millisecond
	ration       = 10 * time.Millisecond
	spinners     = 4
)

// faultStarve is the prefix of faults that leave a worker hardly any CPU time.
const faultStarve = "starve "

// starve is F-19. A worker was starved if its heartbeats came late while it held leases.
func starve(ctx context.Context, t *torture) error {
	var group sync.WaitGroup
	defer group.Wait()
	for _, w := range t.system.workers {
		life, file, name := w.current(), w.history(w.number()), w.alias()
		group.Go(func() {
			t.system.fault(faultStarve+name, func() bool {
				from := history.Now()
				share := starveOne(ctx, life)
				events, err := history.Read(file)
				if err != nil {
					t.system.report("%v", err)
					return false
				}
				t.mu.Lock()
				t.shares = append(t.shares, share)
				t.mu.Unlock()
				return starvationOf(events, from, history.Now(), t.system.shape.Heartbeat).hit()
			})
		})
	}
	return nil
}

// starveOne stops and continues a process until ctx ends. It returns the share of a core that the
// process used.
func starveOne(ctx context.Context, life *fixture.Process) (share float64) {
	begun, used := time.Now(), processorTime(life.PID())
	life.Signal(workload.SpinSignal)
	for ctx.Err() == nil {
		time.Sleep(ration)
		life.Signal(syscall.SIGSTOP)
		select {
		case <-time.After(rationPeriod - ration):
		case <-ctx.Done():
		}
		life.Signal(syscall.SIGCONT)
	}
	share = float64(processorTime(life.PID())-used) / float64(time.Since(begun))
	life.Signal(workload.SpinSignal)
	return share
}

// processorTime returns the CPU time of all threads of a process; 0 if it is gone.
func processorTime(pid int) time.Duration {
	const tick = time.Second / 100 // the unit in which Linux reports it
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}

// starvation is what a worker's heartbeats say about a period.
type starvation struct {
	gap     time.Duration // longest time from sending a confirmed heartbeat until the next was confirmed
	delayed int           // gaps that were longer than without a fault
	leases  int           // that were held through one of those
}

// leastStarved is how many leases must be held through late heartbeats.
const leastStarved = 3

func (s starvation) hit() bool { return s.delayed > 0 && s.leases >= leastStarved }

// starvationOf examines a worker's events between two moments. A heartbeat is late if it is
// confirmed a tenth of the interval after it was due, and later than any before.
func starvationOf(events []history.Event, from, to int64, interval time.Duration) starvation {
	var s starvation
	beats := workload.Confirmations(events)
	usual := time.Duration(0)
	held := map[string]bool{}
	for i := 1; i < len(beats); i++ {
		last, next := beats[i-1], beats[i]
		gap := time.Duration(next.Returned - last.Invoked)
		switch {
		case next.Returned < from:
			usual = max(usual, gap)
		case last.Invoked >= from && last.Invoked <= to:
			s.gap = max(s.gap, gap)
			if gap >= interval+interval/10 && gap > usual {
				s.delayed++
				for _, token := range heldThrough(events, last.Invoked, next.Returned) {
					held[token] = true
				}
			}
		}
	}
	s.leases = len(held)
	return s
}

// heldThrough returns the tokens of runs that a worker got before a period and did not try to give
// up before its end.
func heldThrough(events []history.Event, from, to int64) []string {
	held := map[string]bool{}
	for _, e := range events {
		if e.Op == history.Claim && e.Returned <= from {
			held[e.Token] = true
		}
	}
	var tokens []string
	for token := range held {
		if !ended(events, token, to) {
			tokens = append(tokens, token)
		}
	}
	return tokens
}

// starvedFor reports how long starved workers had no confirmed heartbeat, and the lease that this
// put at risk.
func starvedFor(t *torture) figure {
	f := figure{name: "longest gap between confirmed heartbeats of starved workers",
		limit: "some were late"}
	var gap time.Duration
	delayed, leases := 0, 0
	for _, fault := range t.events {
		name, ok := strings.CutPrefix(fault.Step, faultStarve)
		if fault.Op != history.Fault || !ok {
			continue
		}
		own := slices.DeleteFunc(slices.Clone(t.events), func(e history.Event) bool { return e.Proc != name })
		s := starvationOf(own, fault.Invoked, fault.Returned, t.system.shape.Heartbeat)
		gap, delayed, leases = max(gap, s.gap), delayed+s.delayed, leases+s.leases
	}
	var share float64
	for _, s := range t.shares {
		share = max(share, 100*s)
	}
	f.got = fmt.Sprintf(
		"%s at a lease of %s, %d of them late, %d leases held through these; at most %.1f %% of a core each",
		round(gap), t.system.shape.Lease, delayed, leases, share)
	f.ok = delayed > 0
	return f
}
