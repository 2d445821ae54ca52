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

// diskFailure is one life of a server whose disk failed it: from when, and when the server was gone. As of history.Now.
type diskFailure struct{ first, over int64 }

// firstInjected is when the first call was made that strace let fail.
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

// tracedAt is the time of a line of strace -f -ttt, which begins with the thread and the seconds
// since 1970: nanoseconds.
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

// changes reports whether an operation is acknowledged only when what it changed is on the disk.
func changes(op history.Op) bool {
	return op == history.Start || op == history.Cancel || check.Writes(op)
}

// nothingAfter wants no change to be acknowledged that was asked for after the disk had failed, and
// before the server was gone. One that was asked for before may have been synced before, and its
// answer on its way; whether it was there, the power cut shows. A call that is made again may be
// answered with what it did the first time.
func nothingAfter(t *torture) figure {
	type call struct {
		op                  history.Op
		request, run, token string
		step                string
	}
	as := func(e history.Event) call { return call{e.Op, e.Request, e.Run, e.Token, e.Step} }
	asked := map[call]int64{} // for the first time
	for _, e := range t.events {
		c := as(e)
		if e.Op == history.Start {
			c.run = "" // which only its answer tells
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
	return figure{name: "changes asked for between the disk's first failure and the server's end",
		got:   fmt.Sprintf("%d, %d of them acknowledged", answered, acknowledged),
		limit: "none acknowledged", ok: acknowledged == 0, hard: true}
}

// gone wants servers to end soon after their disk has failed.
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
