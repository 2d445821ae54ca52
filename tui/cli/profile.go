package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/sdk/profile"
	"github.com/kagzi/kagzi/tui/render"
)

func newProfile(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "profile",
		Aliases: []string{"profiles"},
		Short:   "Show the profiles in kagzi.toml and where settings come from",
		Long: `Show the profiles in kagzi.toml and where settings come from.

The file is the one of KAGZI_CONFIG, or kagzi/kagzi.toml in your configuration directory. [client]
holds common settings; profile = "NAME" there selects the profile unless --profile or KAGZI_PROFILE
does:

  [client]
  profile = "prod"

  [profile.prod]
  address = "kagzi.example.com:50051"
  api-key-file = "prod.key"
  tls-ca = "ca.crt"

Precedence: flag, environment (KAGZI_ADDRESS, …), profile, [client], default.`,
	}
	cmd.AddCommand(newProfileList(e), newProfileShow(e))
	e.register(cmd)
	return cmd
}

// completeProfiles completes the name of a profile.
func completeProfiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, _, _ := profile.Names() // on an error there is nothing to suggest
	var list []cobra.Completion
	for _, name := range names {
		list = suggest(list, "", name, "")
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

func newProfileList(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the profiles of kagzi.toml by name",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := e.resolve(cmd); err != nil {
				return err
			}
			return runProfileList(newOutput(e.streams(cmd), e.flags, e.lookup), e.flags.Name)
		},
	}
}

// runProfileList lists the profiles; inUse is the name of the current one.
func runProfileList(out *output, inUse string) error {
	names, file, err := profile.Names()
	if err != nil {
		return &usageError{err: err}
	}
	if len(names) == 0 && out.format == "table" {
		out.say("no profiles: no table [profile.NAME] in %s", cmp.Or(file, "kagzi.toml, which is not there"))
		return nil
	}
	t := render.Table{Columns: []render.Column{
		{Title: "PROFILE", Flex: true}, {Title: "ADDRESS", Flex: true}, {Title: "NAMESPACE", Flex: true},
		{Title: "IN USE"}}}
	items := make([]any, len(names))
	for i, name := range names {
		p, err := profile.Load(name)
		if err != nil {
			return &usageError{err: err}
		}
		mark := render.Cell{}
		if name == inUse {
			mark = render.Cell{Text: "yes", Style: render.Good}
		}
		p.Address, p.Namespace = cmp.Or(p.Address, profile.DefaultAddress),
			cmp.Or(p.Namespace, profile.DefaultNamespace)
		t.Rows = append(t.Rows, []render.Cell{render.Text(name), render.Text(p.Address),
			render.Text(p.Namespace), mark})
		items[i] = render.Object{{Name: "name", Value: name}, {Name: "address", Value: p.Address},
			{Name: "namespace", Value: p.Namespace}, {Name: "in_use", Value: name == inUse}}
	}
	return out.print(result{
		human:    func() []string { return out.table(t) },
		document: render.Object{{Name: "file", Value: file}, {Name: "profiles", Value: items}},
		items:    items,
	})
}

func newProfileShow(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show every setting in effect and where it comes from, without secrets",
		Args:  cobra.MaximumNArgs(1),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeProfiles(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				e.flags.Name = args[0]
			}
			if err := e.resolve(cmd); err != nil {
				return err
			}
			return runProfileShow(cmd.Context(), newOutput(e.streams(cmd), e.flags, e.lookup), e.flags)
		},
	}
}

func runProfileShow(_ context.Context, out *output, f *ClientFlags) error {
	t := render.Table{Columns: []render.Column{
		{Title: "SETTING"}, {Title: "VALUE", Flex: true}, {Title: "FROM", Flex: true}}}
	items := []any{}
	for _, name := range profile.Keys() {
		value, source := f.shown(name), f.source(name)
		style := render.Plain
		if source == "the default" {
			style = render.Dim
		}
		t.Rows = append(t.Rows, []render.Cell{{Text: name}, render.Text(value),
			{Text: render.Safe(source), Style: style}})
		items = append(items, render.Object{{Name: "name", Value: name}, {Name: "value", Value: value},
			{Name: "source", Value: source}})
	}
	if err := out.print(result{
		human:    func() []string { return out.table(t) },
		document: render.Object{{Name: "profile", Value: f.Name}, {Name: "settings", Value: items}},
		items:    items,
	}); err != nil {
		return err
	}
	for _, warning := range f.Warnings {
		out.say("warning: %s", warning)
	}
	return nil
}

// shown returns a setting's value for display; a key is masked.
func (f *ClientFlags) shown(name string) string {
	switch name {
	case "address":
		return f.Address
	case "namespace":
		return f.Namespace
	case "api-key":
		return f.APIKey.String()
	case "api-key-file":
		return f.APIKeyFile
	case "tls":
		return fmt.Sprint(f.Encrypted())
	case "tls-ca":
		return f.TLSCA
	case "tls-client-cert":
		return f.TLSCert
	case "tls-client-key":
		return f.TLSKey
	}
	return f.TLSServerName
}

// source names the origin of a setting: "--address", "KAGZI_ADDRESS", "kagzi.toml:3", "the
// default".
func (f *ClientFlags) source(name string) string {
	source := f.Sources[name]
	if variable, ok := strings.CutPrefix(source, "environment "); ok {
		return variable
	}
	if file, ok := strings.CutPrefix(source, "file "); ok {
		return file
	}
	switch {
	case source == "given":
		return "--" + name
	case name == "tls" && f.Encrypted():
		return "the other TLS settings"
	}
	return "the default"
}
