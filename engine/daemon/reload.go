package daemon

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"strings"
)

// reloading is how a running server reloads its settings.
type reloading struct {
	heard <-chan os.Signal
	lost  func() bool // reports whether the signal means that the terminal was closed
	stop  func()      // stops the server gracefully
	read  func() (Config, []string, error)
	level *slog.LevelVar // of the log
}

// run waits for reload requests.
func (r *reloading) run(ctx context.Context, p *process) error {
	for {
		select {
		case <-r.heard:
			if r.lost() {
				r.stop()
			} else {
				r.reload(p)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// reload reads the settings again, applies those that can change at runtime and logs the others. On
// an error it keeps the current settings.
func (r *reloading) reload(p *process) {
	next, warnings, err := r.read()
	if err != nil {
		p.log.Warn("reload of settings failed; keeping the current settings", "error", err)
		return
	}
	for _, w := range warnings {
		p.log.Warn(w)
	}
	held := *p.config.Load()
	held.Sources = maps.Clone(held.Sources)
	fixed := p.renewCertificates(&next, &held)
	for i := range serverSettings {
		s := &serverSettings[i]
		text := s.show(&next)
		switch {
		case text == s.show(&held):
		case !s.live:
			fixed = append(fixed, s.name)
		default:
			_ = s.parse(&held, text) // it was shown in the form that parse takes
			held.Sources[s.name] = next.Sources[s.name]
		}
	}
	r.level.Set(held.LogLevel)
	p.config.Store(&held)
	p.log.Info("settings reloaded", "log_level", held.LogLevel.String())
	if len(fixed) > 0 {
		p.log.Warn("changed settings need a restart", "settings", strings.Join(fixed, ", "))
	}
}
