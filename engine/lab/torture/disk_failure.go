//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// diskFailure is one life of a server whose disk failed: when it failed, and when the server was
// gone. Times are of history.Now.
type diskFailure struct{ first, over int64 }

// firstInjected returns when the first call was made that strace failed.
func firstInjected(trace string) (int64, error) {
	file, err := os.Open(trace)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "(INJECTED)") {
			at, err := tracedAt(lines.Text())
			return at - time.Now().UnixNano() + history.Now(), err
		}
	}
	return 0, fmt.Errorf("%s tells of no call that was let fail (%w)", trace, lines.Err())
}

// tracedAt parses the time of a line of strace -f -ttt, which begins with the thread and the
// seconds since 1970; in nanoseconds.
func tracedAt(line string) (int64, error) {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return 0, fmt.Errorf("strace said %.100q", line)
	}
	seconds, micros, _ := strings.Cut(fields[1], ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("strace said %.100q: %w", line, err)
	}
	fraction, err := strconv.ParseInt(micros, 10, 64)
	if err != nil || len(micros) != 6 {
		return 0, fmt.Errorf("strace said %.100q (%w)", line, err)
	}
	return (s*1e6 + fraction) * 1e3, nil
}

// changes reports whether an operation is acknowledged only when its change is on disk.
func changes(op history.Op) bool {
	return op == history.Start || op == history.Cancel || check.Writes(op)
}

// nothingAfter requires that no change is acknowledged that was requested between the disk's
// failure and the end of the server. A change that was requested earlier may have been synced
// earlier, with its answer in transit; the power cut shows whether it was on disk. A repeated call
// may get the answer of its first time.
func nothingAfter(t *torture) figure {
	type call struct {
		op                  history.Op
		request, run, token string
		step                string
	}
	as := func(e history.Event) call { return call{e.Op, e.Request, e.Run, e.Token, e.Step} }
	asked := map[call]int64{} // first request
	for _, e := range t.events {
		c := as(e)
		if e.Op == history.Start {
			c.run = "" // only its answer names it
		}
		if at, ok := asked[c]; !ok || e.Invoked < at {
			asked[c] = e.Invoked
		}
	}
	answered, acknowledged := 0, 0
	for _, e := range t.events {
		c := as(e)
		if e.Op == history.Start {
			c.run = ""
		}
		during := slices.ContainsFunc(t.failures, func(f diskFailure) bool {
			return asked[c] > f.first && e.Invoked < f.over
		})
		if !changes(e.Op) || !during {
			continue
		}
		answered++
		if e.Outcome == history.OK && slices.ContainsFunc(t.failures, func(f diskFailure) bool {
			return asked[c] > f.first && e.Returned <= f.over
		}) {
			acknowledged++
		}
	}
	return figure{name: "changes requested between the disk's first failure and the server's end",
		got:   fmt.Sprintf("%d, %d of them acknowledged", answered, acknowledged),
		limit: "none acknowledged", ok: acknowledged == 0, hard: true}
}

// gone requires servers to end soon after their disk failed.
func gone(limit time.Duration) func(t *torture) figure {
	return func(t *torture) figure {
		f := figure{name: "from the disk's first failure until the server has ended", got: "no disk failed",
			limit: "≤ " + limit.String()}
		var took []time.Duration
		for _, d := range t.failures {
			took = append(took, time.Duration(d.over-d.first))
		}
		if len(took) > 0 {
			slices.Sort(took)
			f.got = fmt.Sprintf("%d times, p50 %s, longest %s", len(took), round(percentile(took, 50)),
				round(took[len(took)-1]))
			f.ok = took[len(took)-1] <= limit
		}
		return f
	}
}
