package installer

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// notified is a service manager's socket; it returns the next message.
func notified(t *testing.T) func() string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Skipf("SKIPPED: no datagram sockets here: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		text := make([]byte, 4096)
		n, err := c.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
}

func TestTheServiceManagerIsToldOfReadinessAndOfTheStop(t *testing.T) {
	next := notified(t)
	ctx, stop := context.WithCancel(t.Context())
	if err := Ready(ctx, "serving on \x1b"); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != "READY=1\nSTATUS=serving on \\x1b" {
		t.Errorf("told %q, want that it is ready", got)
	}
	stop()
	if got := next(); got != "STOPPING=1\nSTATUS=stopping" {
		t.Errorf("told %q, want that it is stopping", got)
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Ready(t.Context(), "x"); err != nil {
		t.Errorf("Ready without a service manager = %v, want nil", err)
	}
}

func TestTheWatchdogIsNotifiedWhileAlive(t *testing.T) {
	next := notified(t)
	t.Setenv("WATCHDOG_USEC", "30000000")
	t.Setenv("WATCHDOG_PID", fmt.Sprint(os.Getpid()))
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { Watchdog(ctx, nil) })
	if got := next(); got != "WATCHDOG=1" {
		t.Errorf("told %q, want WATCHDOG=1", got)
	}
	stop()
	group.Wait()
	t.Setenv("WATCHDOG_USEC", "")
	Watchdog(t.Context(), nil) // must return at once
}

func TestTheWatchdogIsNotNotifiedOfAHangingProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		var told atomic.Int32
		var dead atomic.Bool
		group.Go(func() {
			beat(ctx, 10*time.Second, func(ctx context.Context) error {
				if dead.Load() {
					<-ctx.Done() // hangs
				}
				return ctx.Err()
			}, func() { told.Add(1) })
		})
		time.Sleep(25 * time.Second) // the bubble's clock
		synctest.Wait()
		if got := told.Load(); got != 3 {
			t.Errorf("told %d times in 25 s, want 3", got)
		}
		dead.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		stop()
		group.Wait()
		if got := told.Load(); got != 3 {
			t.Errorf("told %d times, want 3, none since it hangs", got)
		}
	})
}
