//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// noRoom is a period in which the disk of Postgres was full.
type noRoom struct {
	freed  int64 // when there was space again
	failed int64 // when the first write failed because of it; 0: none did
	said   bool  // Postgres reported that its disk is full
	// by server: from the first failure until it reported that it is unhealthy, and from the space
	// until it reported that it is healthy; -1: never
	red, green []time.Duration
}

const (
	noRoomText  = "No space left on device"
	unwellLimit = 5 * time.Second  // for a server to report it
	wellLimit   = 30 * time.Second // for all to be healthy once there is space
)

// fillPostgres is F-27. Postgres stops when it cannot write its log, and is restarted when there is
// space. Its preallocated log may outlast the fault, so the fault writes until that is used up, and
// again whenever there is some.
func fillPostgres(ctx context.Context, t *torture) error {
	return t.every(ctx, t.brief(2), t.brief(5), func() error {
		ctx := context.WithoutCancel(ctx)
		var failed error
		t.system.fault("fill the disk of Postgres", func() bool {
			free, err := t.system.disk.Fill(0)
			if failed = err; err != nil {
				return false
			}
			o := &noRoom{}
			t.filled = append(t.filled, o)
			watch := t.watchHealth(ctx)
			for limit := time.Now().Add(2 * wellLimit); o.failed == 0 && time.Now().Before(limit); {
				t.useUpLog(ctx, o)
			}
			hold, over := context.WithTimeout(ctx,
				max(unwellLimit+time.Second, t.system.random.between(t.brief(20), t.brief(30))))
			for t.pause(hold, 50*time.Millisecond, 100*time.Millisecond) {
				t.useUpLog(hold, o)
			}
			over()
			failed = free()
			o.freed = history.Now()
			if failed == nil && t.system.cluster.Life.Ended() {
				failed = t.system.cluster.Start(ctx)
			}
			watch.until(ctx, o.freed, wellLimit)
			o.red, o.green = watch.tell(o.failed, o.freed)
			return failed == nil && o.failed > 0 && o.said
		})
		return failed
	})
}

// useUpLog writes to Postgres's log once, and notes the outcome.
func (t *torture) useUpLog(ctx context.Context, o *noRoom) {
	err := t.system.cluster.Ask(ctx, "select pg_logical_emit_message(true, 'torture', repeat('x', 1 << 20))")
	if err != nil && o.failed == 0 {
		o.failed = history.Now()
	}
	o.said = o.said || t.system.cluster.Life.Out.Has(noRoomText)
}

// healthWatch polls the health of the servers.
type healthWatch struct {
	stop  func()
	group sync.WaitGroup

	mu    sync.Mutex
	heard [][]healthAnswer // by server, in order
}

// healthAnswer is a server's health, or no answer.
type healthAnswer struct {
	at   int64
	well bool
}

const (
	healthEvery   = 100 * time.Millisecond
	healthTimeout = 4 * time.Second // a server that does not answer within this counts as unhealthy
)

func (t *torture) watchHealth(ctx context.Context) *healthWatch {
	w := &healthWatch{heard: make([][]healthAnswer, len(t.system.servers))}
	ctx, w.stop = context.WithCancel(ctx)
	for i := range t.system.servers {
		// the clients are spread over the servers in this order
		admin := kagziv1.NewAdminServiceClient(t.load.Clients[i].SDK.Conn())
		w.group.Go(func() {
			for t.pause(ctx, healthEvery, 2*healthEvery) {
				call, cancel := context.WithTimeout(ctx, healthTimeout)
				answer, err := admin.HealthCheck(call, &kagziv1.HealthCheckRequest{})
				cancel()
				if ctx.Err() != nil {
					return
				}
				w.note(i, healthAnswer{history.Now(), err == nil &&
					answer.Status == kagziv1.ServingStatus_SERVING_STATUS_SERVING})
			}
		})
	}
	return w
}

func (w *healthWatch) note(server int, v healthAnswer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard[server] = append(w.heard[server], v)
}

// until waits until all servers have been healthy after the given moment, or for atMost, and ends
// the watch.
func (w *healthWatch) until(ctx context.Context, from int64, atMost time.Duration) {
	for limit := time.Now().Add(atMost); time.Now().Before(limit) && !w.allWell(from); {
		fixture.Breathe(ctx)
	}
	w.stop()
	w.group.Wait()
}

func (w *healthWatch) allWell(from int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, heard := range w.heard {
		if n := len(heard); n == 0 || heard[n-1].at < from || !heard[n-1].well {
			return false
		}
	}
	return true
}

// tell returns by server how long after the first failure it was unhealthy, and how long after
// there was space it was healthy for good; -1: never.
func (w *healthWatch) tell(failed, freed int64) (red, green []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, heard := range w.heard {
		turned, back := time.Duration(-1), time.Duration(-1)
		for _, v := range heard {
			switch {
			case turned < 0 && !v.well && v.at >= failed && v.at <= freed:
				turned = time.Duration(v.at - failed)
			case v.at > freed && !v.well:
				back = -1
			case v.at > freed && back < 0:
				back = time.Duration(v.at - freed)
			}
		}
		red, green = append(red, turned), append(green, back)
	}
	return red, green
}

// quietWithoutRoom reports what was acknowledged while the disk of Postgres was full and its log
// used up. All of it must exist at the end (I1, I2, I4): Postgres has space as soon as it removes
// some of its log.
func quietWithoutRoom(t *torture) figure {
	acknowledged, open := 0, 0
	for _, e := range t.events {
		for _, o := range t.filled {
			switch {
			case o.failed == 0 || e.Invoked < o.failed || e.Invoked > o.freed:
			case e.Op != history.Start && e.Op != history.Complete && e.Op != history.End:
			case e.Outcome == history.OK && e.Returned <= o.freed:
				acknowledged++
			default:
				open++
			}
		}
	}
	return figure{name: "starts, results and ends while the disk was full", limit: "none acknowledged, some tried",
		hard: true,
		got:  fmt.Sprintf("%d acknowledged, %d others", acknowledged, open), ok: acknowledged == 0 && open > 0}
}

// toldOfNoRoom requires each server to report soon that it is unhealthy.
func toldOfNoRoom(t *torture) figure {
	f := figure{name: "from the first failure on the full disk until a server reports that it is unhealthy",
		limit: "≤ " + unwellLimit.String()}
	var all []time.Duration
	for _, o := range t.filled {
		all = append(all, o.red...)
	}
	return f.within(all, unwellLimit)
}

// wellWithRoom requires each server to be healthy soon after there is space.
func wellWithRoom(t *torture) figure {
	f := figure{name: "from free space until a server is healthy", limit: "≤ " + wellLimit.String()}
	var all []time.Duration
	for _, o := range t.filled {
		all = append(all, o.green...)
	}
	return f.within(all, wellLimit)
}

// within requires all times to be within a limit; -1 means never. A missing event is a broken
// promise, not a matter of speed.
func (f figure) within(all []time.Duration, limit time.Duration) figure {
	f.got, f.ok = "", len(all) > 0
	never, longest := 0, time.Duration(0)
	for _, d := range all {
		if d < 0 {
			never++
		}
		longest = max(longest, d)
	}
	f.ok, f.hard = len(all) > 0 && never == 0 && longest <= limit, never > 0 || len(all) == 0
	f.got = fmt.Sprintf("%d times, longest %s, %d times never", len(all)-never, round(longest), never)
	return f
}
