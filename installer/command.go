package installer

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newInstall(here hostFunc) *cobra.Command {
	var o settings
	cmd := &cobra.Command{
		Use:   "install [-- SERVER-FLAGS]",
		Short: "Install and start the service; repeating it with the same flags changes nothing",
		Long: `Install the server as a service and start it. If a step fails, the steps before it are undone.
Repeating the command with the same flags changes nothing, except that --copy-binary upgrades the
program and restarts the service. Arguments after -- are passed to the server.

Exit code: 0 done or nothing to do, 6 installed with other settings, 7 no service manager here,
8 needs an administrator.`,
		Args: onlyAfterDash,
		RunE: func(cmd *cobra.Command, args []string) error {
			h := here(cmd)
			s, err := o.which.spec(h)
			if err != nil {
				return err
			}
			return o.apply(cmd.Context(), h, o.over(
				Spec{System: s.System, User: s.User, Name: s.Name}, cmd, args), false)
		},
	}
	o.registerDoing(cmd, true)
	return cmd
}

func newReconfigure(here hostFunc) *cobra.Command {
	var o settings
	cmd := &cobra.Command{
		Use:   "reconfigure [-- SERVER-FLAGS]",
		Short: "Change the settings of the service; flags that are not given keep their values",
		Args:  onlyAfterDash,
		RunE: func(cmd *cobra.Command, args []string) error {
			h := here(cmd)
			s, err := o.installedAs(cmd.Context(), h)
			if err != nil {
				return err
			}
			return o.apply(cmd.Context(), h, o.over(s, cmd, args), true)
		},
	}
	o.registerDoing(cmd, false)
	return cmd
}

// onlyAfterDash rejects arguments before the --.
func onlyAfterDash(cmd *cobra.Command, args []string) error {
	if n := cmd.ArgsLenAtDash(); n > 0 || n < 0 && len(args) > 0 {
		return fmt.Errorf("unexpected argument %q; put the server's flags after --", args[0])
	}
	return nil
}

// installedAs returns the Spec of the installed service.
func (o *which) installedAs(ctx context.Context, h *host) (Spec, error) {
	at, err := o.mustFind(ctx, h)
	if err != nil {
		return Spec{}, err
	}
	s, err := o.recorded(at.definition)
	if err != nil {
		return s, fmt.Errorf("%s cannot be changed: %h; uninstall it (its data are kept) and install it again",
			at.manager.place(), err)
	}
	return s, nil
}

// apply installs a service, or changes it to match a Spec.
func (o *settings) apply(ctx context.Context, h *host, s Spec, replace bool) error {
	s, copyFrom, err := o.complete(h, s)
	if err != nil {
		return err
	}
	if err := checkFiles(s, h.disk(), copyFrom); err != nil {
		return err
	}
	p, err := planOf(s)
	if err != nil {
		return err
	}
	m, err := h.manager(s)
	if err != nil {
		return err
	}
	i := &installation{plan: p, manager: m, disk: h.disk(), out: h.out, details: h.err, copyFrom: copyFrom,
		replace: replace, startNow: o.now}
	if o.dryRun {
		return i.describe(ctx)
	}
	if err := o.allowed(h); err != nil {
		return err
	}
	if err := i.run(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(h.out, "next\n  %s\n", strings.Join(p.next, "\n  "))
	return err
}

// registration is a service named by a command: its default Spec, and what is registered under its
// name.
type registration struct {
	spec       Spec
	manager    manager
	definition string
	found      bool // there is a definition
}

// managed returns the default Spec of the service, and its manager.
func (o *which) managed(h *host) (Spec, manager, error) {
	s, err := o.spec(h)
	if err != nil {
		return s, nil, err
	}
	m, err := h.manager(s)
	return s, m, err
}

// find looks up the service, which may not exist.
func (o *which) find(ctx context.Context, h *host) (at registration, err error) {
	if at.spec, at.manager, err = o.managed(h); err != nil {
		return at, err
	}
	at.definition, at.found, err = at.manager.definition(ctx)
	return at, err
}

// mustFind is find for a service that must exist.
func (o *which) mustFind(ctx context.Context, h *host) (registration, error) {
	at, err := o.find(ctx, h)
	if err == nil && !at.found {
		err = refuse(exitNotFound, "%s is not installed; run: kagzi service install%s", o.name, o.flags())
	}
	return at, err
}

// recorded returns the Spec in a definition. It must be for the same service: a definition copied
// for another service still names the data of the first.
func (o *which) recorded(definition string) (Spec, error) {
	s, err := specOf(definition)
	if err == nil && (s.Name != o.name || s.User != o.user) {
		err = fmt.Errorf("it is a copy of the definition of %s", s.Name)
	}
	return s, err
}
