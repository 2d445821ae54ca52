package installer

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newVerb(here hostFunc, name, short string, do func(manager, context.Context) error) *cobra.Command {
	var o which
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h := here(cmd)
			m, err := o.installed(cmd.Context(), h)
			if err != nil {
				return err
			}
			if err := o.allowed(h); err != nil {
				return err
			}
			if err := do(m, cmd.Context()); err != nil {
				return fmt.Errorf("%s %s: %h; see: kagzi service logs%s", name, o.name, err, o.flags())
			}
			s, err := m.state(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(h.out, "%s is %s\n", o.name, s.Phase)
			return err
		},
	}
	o.register(cmd)
	return cmd
}

// installed returns the manager of a service that must exist.
func (o *which) installed(ctx context.Context, h *host) (manager, error) {
	at, err := o.mustFind(ctx, h)
	if err != nil {
		return nil, err
	}
	if recorded, err := o.recorded(at.definition); err == nil { // its log may be elsewhere
		return h.manager(recorded)
	}
	return at.manager, nil
}

func newUninstall(here hostFunc) *cobra.Command {
	var (
		o             which
		purge, dryRun bool
	)
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Stop and remove the service; its data are kept without --purge",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.uninstall(cmd.Context(), here(cmd), purge, dryRun)
		},
	}
	o.register(cmd)
	cmd.Flags().BoolVar(&purge, "purge", false, "also remove settings, logs and DATA")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be done, without changes")
	return cmd
}

// uninstall removes the service as it was installed or, if its record cannot be read, at its
// default paths.
func (o *which) uninstall(ctx context.Context, h *host, purge, dryRun bool) error {
	at, err := o.find(ctx, h)
	if err != nil {
		return err
	}
	s, m := at.spec, at.manager
	recorded, lost := o.recorded(at.definition)
	if at.found && lost == nil {
		s = recorded
	}
	if err := removable(m, s.Name, purge); err != nil {
		return err
	}
	if at.found && lost != nil && !ours(at.definition, s.Name) {
		return refuse(exitConflict,
			"%s is not a Kagzi service: %s was not written by kagzi service install; remove it by hand",
			s.Name, plain(m.place()))
	}
	if dryRun {
		return describeUninstall(h.out, m, s, h.disk(), at.found, purge)
	}
	if err := o.allowed(h); err != nil {
		return err
	}
	return uninstall(ctx, m, s, h.disk(), purge, h.out)
}

func newStatus(here hostFunc, options Options) *cobra.Command {
	var (
		o      which
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show whether the service is installed and running",
		Long: "Show whether the service is installed and running.\n\n" +
			"Exit code: 0 running or starting, 3 not running, 4 not installed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h := here(cmd)
			_, m, err := o.managed(h)
			if err != nil {
				return err
			}
			s, err := statusOf(cmd.Context(), o.name, m, options)
			if err != nil {
				return err
			}
			if asJSON {
				err = s.json(h.out)
			} else {
				err = s.table(h.out, o.flags())
			}
			if err != nil {
				return err
			}
			return s.exit(o.flags())
		},
	}
	o.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func newLogs(here hostFunc) *cobra.Command {
	var (
		o      which
		lines  int
		follow bool
	)
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Show the service's log",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lines < 0 {
				return refuse(exitUsage, "--lines %d: must be 0 or more", lines)
			}
			h := here(cmd)
			m, err := o.installed(cmd.Context(), h)
			if err != nil {
				return err
			}
			return m.logs(cmd.Context(), h.out, lines, follow)
		},
	}
	o.register(cmd)
	cmd.Flags().IntVar(&lines, "lines", 100, "number of last lines to show")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep showing new lines")
	return cmd
}
