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
		Short:   "See which servers kagzi.toml knows, and where each setting comes from",
		Long: `See which servers kagzi.toml knows, and where each setting comes from.

The file is that of KAGZI_CONFIG, else kagzi/kagzi.toml in the folder of your settings. [client] holds what is common to all, and
profile = "NAME" there chooses the profile where neither --profile nor KAGZI_PROFILE does:

  [client]
  profile = "prod"

  [profile.prod]
  address = "kagzi.example.com:50051"
  api-key-file = "prod.key"
  tls-ca = "ca.crt"

A flag goes before the environment (KAGZI_ADDRESS, …), which goes before the profile, which goes before the default.`,
	}
	cmd.AddCommand(newProfileList(e), newProfileShow(e))
	e.register(cmd)
	return cmd
}

// completeProfiles completes the name of a profile.
func completeProfiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names, _, _ := profile.Names() // an error leaves nothing to suggest
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

// runProfileList lists the profiles; inUse is the name of the one that holds.
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
		Short: "Show every setting as it holds, and where it comes from; secrets are left out",
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

// shown is a setting's value for people; of a key only that there is one.
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

// source says in words where a setting's value comes from: "--address", "KAGZI_ADDRESS", "kagzi.toml:3", "the default".
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
		return "the other settings of TLS"
	}
	return "the default"
}
