package installer

import (
	"context"
	"runtime"

	"github.com/spf13/cobra"
)

// Installed is the system service of this machine, as far as other commands need it.
type Installed struct {
	Name            string
	Config          string // its settings file
	Environment     string // its file of environment variables
	DataDir         string
	DatabaseURLFile string // file with the database URL; empty: none
}

// Find returns the system service kagzi of this machine; false if none is installed, or if it was
// not installed by `kagzi service install` or a package.
func Find(ctx context.Context) (Installed, bool) {
	return findOn(ctx, newHost(&cobra.Command{}))
}

func findOn(ctx context.Context, h *host) (Installed, bool) {
	m, err := h.manager(Spec{System: runtime.GOOS, Name: defaultName})
	if err != nil {
		return Installed{}, false
	}
	text, found, err := m.definition(ctx)
	if err != nil || !found {
		return Installed{}, false
	}
	s, err := specOf(text)
	if err != nil || s.Name != defaultName || s.User {
		return Installed{}, false
	}
	return Installed{Name: s.Name, Config: s.Config, DataDir: s.DataDir, DatabaseURLFile: s.DatabaseURLFile,
		Environment: joinOn(s.System, dir(s.System, s.Config), "kagzi.env")}, true
}
