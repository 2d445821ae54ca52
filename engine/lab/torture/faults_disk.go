//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// diskMaker makes the disk for the database.
type diskMaker func(ctx context.Context, base string) (*fixture.Disk, error)

func onLoop(size int64) diskMaker {
	return func(ctx context.Context, base string) (*fixture.Disk, error) {
		return fixture.LoopDisk(ctx, base, size)
	}
}

func inMemory(size int64) diskMaker {
	return func(_ context.Context, base string) (*fixture.Disk, error) { return fixture.MemoryDisk(base, size) }
}

// powerCuts is F-40: the disk loses what was not synced, and the server dies.
func powerCuts(ctx context.Context, t *torture) error {
	return t.every(ctx, t.brief(2), t.brief(5), func() error {
		ctx := context.WithoutCancel(ctx)
		s, d := t.system.servers[0], t.system.disk
		var cut error
		t.system.fault("cut the power", func() bool {
			// a server may exit because of what it reads from the lost disk, before it is killed
			s.current().MayEnd(fixture.ExitDisk, fixture.ExitDamaged)
			cut = d.CutPower()
			s.kill()
			return cut == nil
		})
		if cut != nil {
			return cut
		}
		if err := d.Unmount(); err != nil {
			return err
		}
		if err := d.Mount(ctx); err != nil {
			return err
		}
		if err := t.soundNow(ctx); err != nil {
			return err
		}
		return s.start(ctx)
	})
}

// fillDisk is F-43: first there is little space, in which open runs may end; when all continues
// again, there is none at all.
func fillDisk(ctx context.Context, t *torture) error {
	ballast, err := t.newBallast(ctx)
	if err != nil {
		return err
	}
	return t.every(ctx, t.brief(2), t.brief(4), func() error {
		if err := t.leave(ctx, roomForEnds, func() bool { return true }); err != nil {
			return err
		}
		// until many runs are open again: a server checks for space once a second
		t.pause(ctx, 3*time.Second, 5*time.Second)
		err := t.leave(ctx, 0, func() bool { return ballast.useUp(context.WithoutCancel(ctx)) })
		t.pause(ctx, roomAgain+time.Second, roomAgain+2*time.Second) // for starts to be accepted again
		return err
	})
}

// leave leaves only this many MiB on the disk for a while. It did hit if the servers are out of
// space because of it.
func (t *torture) leave(ctx context.Context, left int64, fills func() bool) (failed error) {
	t.system.fault(fmt.Sprintf("%s%d MiB", faultLeave, left), func() bool {
		free, err := t.system.disk.Fill(left)
		if failed = err; err != nil {
			return false
		}
		hit := fills()
		t.pause(context.WithoutCancel(ctx), t.brief(10), t.brief(15))
		failed = free()
		return failed == nil && hit
	})
	return failed
}

// faultLeave is the prefix of faults that leave little disk space.
const faultLeave = "of the disk is left "

// roomForEnds is in MiB: too little for a server to accept new runs, and enough to end open ones.
const roomForEnds = 100

// failing makes the fault of F-44 and F-46: from a moment on, some of a server's system calls fail.
func failing(failure string, kinds ...string) func(context.Context, *torture) error {
	return func(ctx context.Context, t *torture) error {
		strace, err := exec.LookPath("strace")
		if err != nil {
			return fixture.NotHere("strace is not installed")
		}
		n := 0
		return t.every(ctx, t.brief(0.5), t.brief(1), func() error {
			calls := kinds[n%len(kinds)]
			n++
			return t.failCalls(context.WithoutCancel(ctx), strace, calls, failure)
		})
	}
}

// failCalls starts a life of a server in which the calls fail from the n-th on; this must end it.
// Then the power is cut before another server looks, because pages that could not be synced can
// still be read.
func (t *torture) failCalls(ctx context.Context, strace, calls, failure string) error {
	s, d := t.system.servers[0], t.system.disk
	s.kill()
	trace := filepath.Join(t.options.dir, fmt.Sprintf("strace.%d", len(t.failures)+1))
	s.wrap = []string{strace, "-D", "-f", "-qq", "-ttt", "-e", "signal=none", "-o", trace, "--seccomp-bpf", "-e",
		"trace=" + calls,
		"-e", fmt.Sprintf("inject=%s:error=%s:when=%d+", calls, failure, 30+t.system.random.n(60))}
	s.ends = []fixture.Ending{fixture.ExitDisk}
	err := s.start(ctx)
	s.wrap = nil
	if err != nil && !s.current().Ended() {
		return err
	}
	t.system.fault(failure+" from "+calls, func() bool {
		life := s.current()
		select {
		case <-life.Done:
		case <-time.After(pointLimit):
			t.system.report("a server whose %s end with %s went on", calls, failure)
		}
		over := history.Now()
		if life.Ended() && life.Ending() != fixture.ExitDisk {
			t.system.report("a server whose %s end with %s ended with %s, want exit code %d: %s", calls, failure,
				life.Cmd.ProcessState, fixture.ExitDisk, life.Out.Tail())
		}
		var first int64
		if first, err = firstInjected(trace); err != nil {
			return false
		}
		t.failures = append(t.failures, diskFailure{first, over})
		return true
	})
	if err == nil {
		err = d.CutPower()
	}
	s.kill() // if it has not ended
	if err != nil {
		return err
	}
	if err := errors.Join(d.Unmount(), d.Mount(ctx)); err != nil {
		return err
	}
	if err := t.soundNow(ctx); err != nil {
		return err
	}
	return s.start(ctx)
}

// slowSyncs delays each sync of the servers.
func slowSyncs(delay time.Duration) func(s *shape) {
	return func(s *shape) { s.Wrap = slowed(delay) }
}

// slowed returns the command prefix for a server with slow syncs.
func slowed(delay time.Duration) []string {
	return []string{"strace", "-D", "-f", "-qq", "-o", "/dev/null", "--seccomp-bpf", "-e", "trace=fsync,fdatasync",
		"-e", fmt.Sprintf("inject=fsync,fdatasync:delay_enter=%d", delay.Microseconds())}
}

// slowMeanwhile makes a fault that delays syncs until it ends: so long that no schedule which fires
// each second ever catches up.
func slowMeanwhile(delay time.Duration) func(context.Context, *torture) error {
	return func(ctx context.Context, t *torture) error {
		wrap := slowed(delay)
		if _, err := exec.LookPath(wrap[0]); err != nil {
			return fixture.NotHere("%s is not installed", wrap[0])
		}
		s := t.system.servers[0]
		again := func(wrap []string) error {
			t.ends(s.name, s.current())
			s.wrap = wrap
			return s.start(context.WithoutCancel(ctx))
		}
		if err := again(wrap); err != nil {
			return err
		}
		t.system.fault("syncs are slow", func() bool { <-ctx.Done(); return true })
		return again(nil)
	}
}

// justSlow notes that syncs were slow all the time.
func justSlow(ctx context.Context, t *torture) error {
	t.system.fault("syncs are slow", func() bool { <-ctx.Done(); return true })
	return nil
}

// pinLog is F-50: another process reads the file in a transaction that stays open.
func pinLog(ctx context.Context, t *torture) error {
	db, err := openSQL(t.system.url(), "ro")
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	var rows int
	if err := tx.QueryRowContext(ctx, "select count(*) from runs").Scan(&rows); err != nil {
		return err
	}
	t.system.fault("a reader holds the log", func() bool {
		<-ctx.Done()
		if info, err := os.Stat(t.system.sqliteFile() + "-wal"); err == nil {
			t.peak = info.Size()
		}
		_ = tx.Rollback()
		return t.peak > 0
	})
	return nil
}

// logShrinks requires the log to be small again after its reader has gone.
func logShrinks(t *torture) figure {
	const limit = 64 << 20
	f := figure{name: "the log after its reader ended", limit: "≤ 64 MiB"}
	f.got = fmt.Sprintf("%.1f MiB, %.1f MiB with the reader", float64(t.left)/(1<<20), float64(t.peak)/(1<<20))
	f.ok = t.left <= limit
	return f
}

// lostAcknowledgements reports how many acknowledged writes the control run lost: it shows that
// power cuts have an effect.
func lostAcknowledgements(r *report) int {
	lost := 0
	for _, l := range r.lines {
		if strings.Contains(" I1 I2 I4 LIN ", " "+l.ID+" ") {
			lost += len(l.Violations)
		}
	}
	return lost
}
