package installer

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newInstall(here machine) *cobra.Command {
	var o settings
	cmd := &cobra.Command{
		Use:   "install [-- SERVER-FLAGS]",
		Short: "Install and start the service; once more with the same flags changes nothing",
		Long: `Install the server as a service, and start it. What was done is taken back when a part of it fails. With the same flags
once more it changes nothing, but for --copy-binary, which upgrades the program and restarts the service. What follows -- is
handed to the server.

Exit code: 0 done or nothing to do, 6 installed with other settings, 7 no service manager here, 8 only an administrator may.`,
		Args: onlyAfterDash,
		RunE: func(cmd *cobra.Command, args []string) error {
			w := here(cmd)
			s, err := o.which.spec(w)
			if err != nil {
				return err
			}
			return o.apply(cmd.Context(), w, o.over(Spec{System: s.System, User: s.User, Name: s.Name}, cmd, args), false)
		},
	}
	o.registerDoing(cmd, true)
	return cmd
}

func newReconfigure(here machine) *cobra.Command {
	var o settings
	cmd := &cobra.Command{
		Use:   "reconfigure [-- SERVER-FLAGS]",
		Short: "Change what the service was installed with; what is not named stays",
		Args:  onlyAfterDash,
		RunE: func(cmd *cobra.Command, args []string) error {
			w := here(cmd)
			s, err := o.installedAs(cmd.Context(), w)
			if err != nil {
				return err
			}
			return o.apply(cmd.Context(), w, o.over(s, cmd, args), true)
		},
	}
	o.registerDoing(cmd, false)
	return cmd
}

// onlyAfterDash refuses arguments that are not meant for the server.
func onlyAfterDash(cmd *cobra.Command, args []string) error {
	if n := cmd.ArgsLenAtDash(); n > 0 || n < 0 && len(args) > 0 {
		return fmt.Errorf("%q is no flag; the server's flags follow --", args[0])
	}
	return nil
}

// installedAs is the Spec of the installed service.
func (o *which) installedAs(ctx context.Context, w *world) (Spec, error) {
	at, err := o.mustFind(ctx, w)
	if err != nil {
		return Spec{}, err
	}
	s, err := o.recorded(at.definition)
	if err != nil {
		return s, fmt.Errorf("%s cannot be changed: %w; uninstall it, its data stay, and install it anew", at.manager.place(), err)
	}
	return s, nil
}

// apply makes a service what a Spec says.
func (o *settings) apply(ctx context.Context, w *world, s Spec, replace bool) error {
	s, copyFrom, err := o.complete(w, s)
	if err != nil {
		return err
	}
	if err := checkFiles(s, w.disk(), copyFrom); err != nil {
		return err
	}
	p, err := planOf(s)
	if err != nil {
		return err
	}
	m, err := w.manager(s)
	if err != nil {
		return err
	}
	i := &installation{plan: p, manager: m, disk: w.disk(), out: w.out, details: w.err, copyFrom: copyFrom, replace: replace, startNow: o.now}
	if o.dryRun {
		return i.describe(ctx)
	}
	if err := o.allowed(w); err != nil {
		return err
	}
	if err := i.run(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.out, "next\n  %s\n", strings.Join(p.next, "\n  "))
	return err
}
