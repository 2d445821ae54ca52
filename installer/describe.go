package installer

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// describe prints what run would do, and rejects what run would reject, as far as a
// non-administrator can know.
func (i *installation) describe(ctx context.Context) error {
	old, found, same, err := i.look(ctx)
	if err != nil {
		return err
	}
	name, place := i.plan.spec.Name, plain(i.manager.place())
	switch {
	case !found:
		return i.plan.describe(i.out, i.manager.place(), i.copyFrom, i.startNow)
	case same:
		i.plan.describePlaces(i.out, i.copyFrom)
		i.say("%s is already installed, and %s would not change", name, place)
	default:
		i.plan.describePlaces(i.out, i.copyFrom)
		i.say("would change %s:\n%s", place, strings.TrimRight(difference(old, i.plan.definition), "\n"))
	}
	switch {
	case !same:
		i.say("would restart %s, if it runs", name)
	case i.copyFrom != "":
		i.say("would restart %s, if it runs and its program differs", name)
	}
	if i.startNow {
		i.say("would start %s, if it does not run", name)
	}
	return nil
}

// describe prints what a first installation would do.
func (p *plan) describe(w io.Writer, place, copyFrom string, now bool) error {
	p.describePlaces(w, copyFrom)
	fmt.Fprintf(w, "would register %s:\n", plain(place))
	for line := range strings.Lines(p.definition) {
		fmt.Fprintf(w, "  %s\n", plainLines(strings.TrimRight(line, "\n")))
	}
	if now {
		fmt.Fprintf(w, "would start %s\n", p.spec.Name)
	}
	return nil
}

func (p *plan) describePlaces(w io.Writer, copyFrom string) {
	if copyFrom != "" {
		fmt.Fprintf(w, "would copy %s to %s, if they differ\n", plain(copyFrom), plain(p.spec.Binary))
	}
	for _, d := range p.directories {
		fmt.Fprintf(w, "would create %s%s, if it is missing\n", plain(d.path), p.access(d))
	}
	for _, f := range p.files {
		fmt.Fprintf(w, "would write %s%s, if it is missing\n", plain(f.path), p.access(directory{mode: f.mode}))
	}
}

// access describes the permissions of a created path. Windows has no modes: a path without an
// access list inherits that of its directory.
func (p *plan) access(d directory) string {
	switch {
	case d.sddl != "":
		return " (" + d.sddl + ")"
	case p.spec.System == "windows":
		return ""
	}
	text := fmt.Sprintf(" (mode %04o", d.mode)
	if d.account != "" || d.group != "" {
		text += ", " + plain(d.account) + ":" + plain(d.group)
	}
	return text + ")"
}

// describeUninstall prints what uninstall would do.
func describeUninstall(w io.Writer, m manager, s Spec, d *disk, found, purge bool) error {
	if found {
		fmt.Fprintf(w, "would stop %s and remove %s\n", s.Name, plain(m.place()))
	} else {
		fmt.Fprintf(w, "%s is not installed\n", s.Name)
	}
	for _, path := range m.additions() {
		fmt.Fprintf(w, "would keep %s, which was created by hand\n", plain(path))
	}
	if !found && !s.remains(d) {
		return nil
	}
	for _, path := range s.leftovers() {
		switch why := s.shared(d, path); {
		case !purge:
			fmt.Fprintf(w, "would keep %s\n", plain(path))
		case why != "":
			fmt.Fprintf(w, "would keep %s, %s\n", plain(path), why)
		default:
			fmt.Fprintf(w, "would remove %s\n", plain(path))
		}
	}
	if !s.copied(d) {
		return nil
	}
	why, err := s.sharedBinary(m.place())
	switch {
	case err != nil:
		return err
	case !purge:
		fmt.Fprintf(w, "would keep %s\n", plain(s.Binary))
	case why != "":
		fmt.Fprintf(w, "would keep %s, %s\n", plain(s.Binary), why)
	default:
		fmt.Fprintf(w, "would remove %s\n", plain(s.Binary))
	}
	return nil
}

func newPrint(here hostFunc) *cobra.Command {
	var (
		o      settings
		system string
		binary string
	)
	cmd := &cobra.Command{
		Use:   "print [-- SERVER-FLAGS]",
		Short: "Print the definition that install would register: a systemd unit, a property list or JSON",
		Args:  onlyAfterDash,
		RunE: func(cmd *cobra.Command, args []string) error {
			h := here(cmd)
			if system != "" && system != h.system {
				h.places, h.system = foreign(system), system
				h.groupOf = func(account string) (string, error) { return account, nil }
				o.copyBinary = o.copyBinary || binary == ""
			}
			s, _, err := o.complete(h, o.over(Spec{System: h.system, User: o.user, Name: o.name, Binary: binary},
				cmd, args))
			if err != nil {
				return err
			}
			p, err := planOf(s)
			if err != nil {
				return err
			}
			_, err = io.WriteString(h.out, p.definition)
			return err
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&system, "os", "", "operating system: linux, darwin or windows (default: this one)")
	cmd.Flags().StringVar(&binary, "binary", "",
		"path of the program (default: this one, or the usual path on another system)")
	return cmd
}
