package installer

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Ready tells the service manager that the server serves, with a status line, and that it is
// stopping once ctx ends. Without a service manager it does nothing. An error means that the
// manager was not told: it will consider the start failed.
func Ready(ctx context.Context, status string) error {
	listened, err := daemon.SdNotify(false, daemon.SdNotifyReady+"\nSTATUS="+plain(status))
	if err != nil || !listened {
		return err
	}
	context.AfterFunc(ctx, func() {
		_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping+"\nSTATUS=stopping") // systemd notices the exit anyway
	})
	return nil
}

// Watchdog tells the service manager at its interval that the process is alive, until ctx ends.
// While alive returns an error it sends nothing, so that the manager restarts the process; a nil
// alive means that a running process is alive. Without a watchdog it returns at once.
func Watchdog(ctx context.Context, alive func(context.Context) error) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil || interval <= 0 {
		return // no watchdog, or an invalid interval
	}
	beat(ctx, interval/3, alive, func() { _, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog) })
}

// beat calls tell once per interval, unless alive returns an error.
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
