package move_test

import (
	"bufio"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kagzi/kagzi/backends"
	"github.com/kagzi/kagzi/backends/move"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
)

var errDead = errors.New("the process is dead")

// life limits how many calls to the databases a process makes before it dies. The last call may
// have taken effect.
type life struct {
	left    atomic.Int64
	happens bool
}

// mortal is a database used by a process with a limited life.
type mortal struct {
	move.Database
	life *life
}

func (m mortal) call(do func() error) error {
	switch left := m.life.left.Add(-1); {
	case left < 0:
		return errDead
	case left == 0 && !m.life.happens:
		return errDead
	case left == 0:
		do()
		return errDead
	}
	return do()
}

func (m mortal) Standing(ctx context.Context, name string) (value string, err error) {
	err = m.call(func() (err error) {
		value, err = m.Database.Standing(ctx, name)
		return err
	})
	return value, err
}

func (m mortal) Read(ctx context.Context, r engine.CopyRange) (rows [][]any, err error) {
	err = m.call(func() (err error) {
		rows, err = m.Database.Read(ctx, r)
		return err
	})
	return rows, err
}

func (m mortal) Fence(ctx context.Context, f engine.CopyFence) error {
	return m.call(func() error { return m.Database.Fence(ctx, f) })
}

func (m mortal) Unfence(ctx context.Context, standing, old, copied string) error {
	return m.call(func() error { return m.Database.Unfence(ctx, standing, old, copied) })
}

func (m mortal) Amend(ctx context.Context, standing, old, new string) error {
	return m.call(func() error { return m.Database.Amend(ctx, standing, old, new) })
}

func (m mortal) Write(ctx context.Context, b engine.CopyBatch) error {
	return m.call(func() error { return m.Database.Write(ctx, b) })
}

func (m mortal) Settle(ctx context.Context, tables []engine.CopyTable) error {
	return m.call(func() error { return m.Database.Settle(ctx, tables) })
}

// live copies until the process dies, and returns how many calls it made.
func live(t *testing.T, from, to string, calls int64, happens bool) (made int64, report engine.CopyReport, err error) {
	t.Helper()
	l := &life{happens: happens}
	l.left.Store(calls)
	source, target := openEnd(t, from), openEnd(t, to)
	report, err = move.Copy(t.Context(), mortal{source, l}, mortal{target, l},
		engine.CopyParams{From: from, To: to, Now: someDay})
	if closing := errors.Join(source.Close(), target.Close()); closing != nil {
		t.Fatal(closing)
	}
	if err != nil && !errors.Is(err, errDead) {
		t.Fatalf("copy: %v", err)
	}
	return calls - l.left.Load(), report, err
}

// refuses fails unless a server refuses to open the database.
func refuses(t *testing.T, url, why string) {
	t.Helper()
	store, err := backends.Open(t.Context(), url, engine.OpenOptions{})
	if err == nil {
		store.Close()
		t.Fatalf("a server could start on %s, want it refused: %s", url, why)
	}
	if !strings.Contains(err.Error(), "kagzi db copy") {
		t.Fatalf("refusal = %v, want what to do", err)
	}
}

func TestKilledCopyContinues(t *testing.T) {
	eachWay(t, func(t *testing.T, from, to string) {
		n := long.Seed(t)
		rnd := rand.New(rand.NewPCG(n, 2))
		populate(t, from, rnd, 30)
		want := dump(t, from)
		if err := backends.Migrate(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		lives := 0
		for err := errDead; err != nil; lives++ {
			if lives == 60 {
				t.Fatal("the copy does not end")
			}
			_, _, err = live(t, from, to, 1+rnd.Int64N(int64(60*(lives+2))), rnd.IntN(2) == 0)
		}
		t.Logf("ended in life %d", lives)
		sameRows(t, dump(t, to), want)
		openStore(t, to)
		refuses(t, from, "it was moved")
	})
}

func TestKillNearEndOfCopyLeavesOneServable(t *testing.T) {
	eachWay(t, func(t *testing.T, from, to string) {
		populate(t, from, rand.New(rand.NewPCG(long.Seed(t), 3)), 3)
		if err := backends.Migrate(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		const whole = 1 << 40
		total, _, err := live(t, from, to, whole, false)
		if err == nil {
			err = backends.Release(t.Context(), from, true)
		}
		if err != nil {
			t.Fatal(err)
		}
		kind := "postgres"
		if strings.HasPrefix(to, "sqlite:") {
			kind = "sqlite"
		}
		for back := range int64(3) { // counted from the end: opening the target, marking the source, the last read
			for _, happens := range []bool{false, true} {
				next := freshURL(t, kind)
				if err := backends.Migrate(t.Context(), next); err != nil {
					t.Fatal(err)
				}
				if _, _, err := live(t, from, next, total-back, happens); err == nil {
					t.Fatal("the copy ended before it was killed")
				}
				refuses(t, from, "it is fenced")
				opened := back == 0 && happens
				if !opened {
					refuses(t, next, "it is not whole")
				}
				told := back == 0 || back == 1 && happens
				if err := backends.Release(t.Context(), from, false); (err != nil) != told {
					t.Fatalf("release after a kill %d calls before the end: %v, want a refusal: %t", back, err, told)
				}
				if !told {
					refuses(t, next, "its copy was given up")
					continue
				}
				if _, report, err := live(t, from, next, whole, false); err != nil || report.Before != opened {
					t.Fatalf("the copy after that: %+v (%v)", report, err)
				}
				openStore(t, next).Close()
				refuses(t, from, "it was moved")
				if err := backends.Release(t.Context(), from, true); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func TestACopyOutlivesKillsOfItsProcess(t *testing.T) {
	eachWay(t, func(t *testing.T, from, to string) {
		n := long.Seed(t)
		rnd := rand.New(rand.NewPCG(n, 4))
		populate(t, from, rnd, 30)
		want := dump(t, from)
		for kill := range 4 {
			killed(t, from, to, 1+rnd.IntN(12*(kill+1)), rnd.IntN(2) == 0)
		}
		copied(t, from, to)
		sameRows(t, dump(t, to), want)
	})
}

// killed copies in a process that is killed after so many batches; late: during the batch after
// that.
func killed(t *testing.T, from, to string, batches int, late bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), self)
	child.Env = append(os.Environ(), childVariable+"="+from+"\n"+to)
	var said strings.Builder
	child.Stderr = &said
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 1; lines.Scan(); n++ {
		if n == batches && !late {
			break
		}
		if _, err := in.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		if n == batches {
			break
		}
	}
	child.Process.Kill()
	if err := child.Wait(); err == nil || said.Len() > 0 {
		t.Logf("the process ended by itself: %v %s", err, said.String())
	}
}
