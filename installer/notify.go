package installer

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Ready tells the service manager that the server serves, with one line of status for people, and
// that it is stopping once ctx ends. Where no service manager listens it does nothing. An error
// means that the manager could not be told: it will then take the start for failed.
func Ready(ctx context.Context, status string) error {
	listened, err := daemon.SdNotify(false, daemon.SdNotifyReady+"\nSTATUS="+plain(status))
	if err != nil || !listened {
		return err
	}
	context.AfterFunc(ctx, func() {
		_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping+"\nSTATUS=stopping") // systemd sees the end anyway
	})
	return nil
}

// Watchdog notifies the service manager at the interval it asks for that the process is alive, until ctx
// ends. While alive returns an error it sends nothing, so that the manager ends and restarts the process;
// a nil alive means that a running process is alive. Without a watchdog, Watchdog returns at once.
func Watchdog(ctx context.Context, alive func(context.Context) error) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil || interval <= 0 {
		return // not under a watchdog, or one that says nonsense
	}
	beat(ctx, interval/3, alive, func() { _, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog) })
}

// beat calls tell once an interval, unless alive returns an error.
func beat(ctx context.Context, interval time.Duration, alive func(context.Context) error, tell func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if isAlive(ctx, interval, alive) {
			tell()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func isAlive(ctx context.Context, limit time.Duration, alive func(context.Context) error) bool {
	if alive == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return alive(ctx) == nil
}
