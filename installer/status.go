package installer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// Status is the output of `kagzi service status`. Its JSON is a stable contract.
type Status struct {
	Name       string `json:"name"`
	Installed  bool   `json:"installed"`
	State      string `json:"state"` // running, starting, stopping, stopped, failed or not installed
	PID        int    `json:"pid,omitempty"`
	Restarts   *int   `json:"restarts,omitempty"` // after failures; omitted if the system does not count them
	LastExit   string `json:"last_exit,omitempty"`
	Health     string `json:"health,omitempty"` // "serving", or why not; omitted if not checked
	Definition string `json:"definition"`       // where it is stored
	// whether this version of kagzi would write the same definition for these settings
	Current bool   `json:"current"`
	Binary  string `json:"binary,omitempty"`
	Config  string `json:"config,omitempty"`
	DataDir string `json:"data_dir,omitempty"`
	LogDir  string `json:"log_dir,omitempty"` // omitted if the system keeps the log
}

// statusOf asks the service manager and, if Options.Health is set, the server itself.
func statusOf(ctx context.Context, name string, m manager, o Options) (Status, error) {
	s := Status{Name: name, State: "not installed", Definition: m.place()}
	definition, found, err := m.definition(ctx)
	if err != nil || !found {
		return s, err
	}
	s.Installed = true
	if place, inEffect := m.packaged(); inEffect {
		s.Definition = place
	}
	spec, recorded := specOf(definition)
	if recorded == nil {
		s.Binary, s.Config, s.DataDir, s.LogDir = spec.Binary, spec.Config, spec.DataDir, spec.LogDir
		now, err := planOf(spec)
		s.Current = err == nil && now.definition == definition
	}
	state, err := m.state(ctx)
	if err != nil {
		return s, err
	}
	s.State, s.PID, s.LastExit = state.Phase, state.PID, state.LastExit
	if state.Restarts >= 0 {
		s.Restarts = &state.Restarts
	}
	if s.State == running && o.Health != nil && recorded == nil {
		address := spec.Listen
		if address == "" && o.Listen != nil {
			address = o.Listen(spec.Config)
		}
		s.Health = "serving"
		if err := o.Health(ctx, address); err != nil {
			s.Health = err.Error()
		}
	}
	return s, nil
}

// exit returns an error with the exit code of a status.
func (s Status) exit(flags string) error {
	switch {
	case !s.Installed:
		return refuse(exitNotInstalled, "%s is not installed; run: kagzi service install%s", s.Name, flags)
	case s.State == stopped || s.State == failed || s.State == stopping:
		return refuse(exitStopped, "%s is %s; run: kagzi service start%s, or see: kagzi service logs%s", s.Name,
			s.State, flags, flags)
	}
	return nil
}

func (s Status) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

// table prints the status for people; flags name the service in hints.
func (s Status) table(w io.Writer, flags string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, plain(value))
		}
	}
	row("service", s.Name)
	row("state", s.State)
	if s.PID > 0 {
		row("pid", fmt.Sprint(s.PID))
	}
	if s.Restarts != nil {
		row("restarts", fmt.Sprint(*s.Restarts))
	}
	row("last exit", s.LastExit)
	row("health", s.Health)
	row("definition", s.Definition)
	if s.Installed && !s.Current {
		row("", "it was changed by hand or by another version; kagzi service reconfigure"+flags+" rewrites it")
	}
	row("binary", s.Binary)
	row("config", s.Config)
	row("data", s.DataDir)
	row("logs", s.LogDir)
	return t.Flush()
}
