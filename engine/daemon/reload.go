package daemon

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"strings"
)

// reloading is how a running server takes settings up again when it is asked to.
type reloading struct {
	heard <-chan os.Signal
	lost  func() bool // what was heard means that the terminal is gone
	stop  func()      // ends the server in good order
	read  func() (Config, []string, error)
	level *slog.LevelVar // of the log
}

// run is the part that waits to be asked.
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

// reload reads the settings and takes up what can be changed in a running server. The others are
// named. Where the settings are not good, those before hold.
func (r *reloading) reload(p *process) {
	next, warnings, err := r.read()
	if err != nil {
		p.log.Warn("the settings could not be read again; those before hold", "error", err)
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
	p.log.Info("settings read again", "log_level", held.LogLevel.String())
	if len(fixed) > 0 {
		p.log.Warn("settings cannot change while the server runs; restart it", "settings", strings.Join(fixed, ", "))
	}
}
