package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/tui/cli/internal/spelling"
	"github.com/kagzi/kagzi/tui/guide"
	"github.com/kagzi/kagzi/tui/render"
)

// guidePrefix may precede a topic, for topics that have the name of a command.
const guidePrefix = "guide"

// addHelp replaces cobra's help command with one that also shows the chapters of the guide, which
// are embedded in the binary.
func addHelp(root *cobra.Command, e *env) {
	load := sync.OnceValues(func() ([]guide.Topic, error) { return guide.Load(e.local.Guides) })
	help := &cobra.Command{
		Use:   "help [COMMAND... | TOPIC]",
		Short: "Show the help of a command, or a chapter of the guide",
		Long: `Show the help of a command, or a chapter of the guide; without an argument, list both. The
chapters are part of the binary and need no network.

If a topic has the name of a command, use kagzi help guide TOPIC.`,
		Example: "  kagzi help\n  kagzi help workflow start\n  kagzi help backup\n  kagzi help guide tls",
		ValidArgsFunction: func(help *cobra.Command, args []string, typed string) (
			[]cobra.Completion, cobra.ShellCompDirective,
		) {
			topics, _ := load() // on an error there are no topics to suggest
			return completeHelp(help.Root(), topics, args, typed), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(help *cobra.Command, args []string) error {
			topics, err := load()
			if err != nil {
				return err
			}
			return runHelp(help, newOutput(e.streams(help), e.flags, e.lookup), topics, args)
		},
	}
	root.SetHelpCommand(help)
}

func runHelp(help *cobra.Command, out *output, topics []guide.Topic, args []string) error {
	root := help.Root()
	if len(args) == 0 {
		if err := showHelp(help, root); err != nil {
			return err
		}
		return out.lines(append([]string{""}, topicList(root, topics, out)...))
	}
	if args[0] == guidePrefix {
		switch len(args) {
		case 1:
			return out.lines(topicList(root, topics, out))
		case 2:
			return showTopic(root, out, topics, args[1])
		}
		return usagef("unexpected argument %q; kagzi help guide takes one topic", args[2])
	}
	cmd, rest, _ := root.Find(args)
	switch {
	case len(rest) == 0 && cmd != root:
		if err := showHelp(help, cmd); err != nil {
			return err
		}
		for _, name := range []string{args[0], cmd.Name()} {
			if t, ok := guide.Find(topics, name); ok && cmd.Parent() == root {
				return out.lines([]string{"", "The guide's chapter: " + topicCommand(root, t.Name)})
			}
		}
		return nil
	case cmd != root:
		return unknownCommand(cmd, rest[0])
	case len(args) > 1:
		return unknownCommand(root, args[0])
	}
	return showTopic(root, out, topics, args[0])
}

func showHelp(help, cmd *cobra.Command) error {
	cmd.SetContext(help.Context())
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	return cmd.Help()
}

func showTopic(root *cobra.Command, out *output, topics []guide.Topic, name string) error {
	t, ok := guide.Find(topics, strings.TrimSuffix(name, ".md"))
	if !ok {
		return unknownTopic(root, topics, name)
	}
	return out.lines(guide.Text(t, guide.Layout{
		Width: cmp.Or(out.width, 80), Strong: out.colour, Topics: topics,
		Command: func(name string) string { return topicCommand(root, name) },
	}))
}

// unknownTopic suggests commands and topics with similar names.
func unknownTopic(root *cobra.Command, topics []guide.Topic, name string) error {
	if len(topics) == 0 || spelling.OtherCommand(root, name) != "" {
		return unknownCommand(root, name)
	}
	err := usagef("unknown command or topic %q for %s", name, root.CommandPath())
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(append(names, c.Name()), c.Aliases...)
		}
	}
	for _, t := range topics {
		if !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	var near []string
	for _, n := range guide.Near(names, name) {
		near = append(near, root.CommandPath()+" help "+n)
	}
	if len(near) > 0 {
		err.hint = append(err.hint, "did you mean: "+strings.Join(near, ", or "))
	}
	err.hint = append(err.hint, "see: "+root.CommandPath()+" help")
	return err
}

// topicCommand returns the command that shows a topic.
func topicCommand(root *cobra.Command, name string) string {
	for _, c := range root.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return root.CommandPath() + " help " + guidePrefix + " " + name
		}
	}
	return root.CommandPath() + " help " + name
}

func topicList(root *cobra.Command, topics []guide.Topic, out *output) []string {
	if len(topics) == 0 {
		return nil
	}
	width := 0
	for _, t := range topics {
		width = max(width, len(topicCommand(root, t.Name)))
	}
	lines, section := []string{out.paint("The guide, by topic", render.Strong)}, ""
	for _, t := range topics {
		if t.Section != section {
			section = t.Section
			lines = append(lines, "", section+":")
		}
		lines = append(lines, fmt.Sprintf("  %-*s  %s", width, topicCommand(root, t.Name), t.Title))
	}
	return lines
}

// completeHelp completes commands, and topics if no command was typed yet.
func completeHelp(root *cobra.Command, topics []guide.Topic, args []string, typed string) []cobra.Completion {
	var found []cobra.Completion
	offer := func(name, about string) {
		if strings.HasPrefix(name, typed) {
			found = append(found, cobra.CompletionWithDesc(name, about))
		}
	}
	if len(args) == 1 && args[0] == guidePrefix {
		for _, t := range topics {
			offer(t.Name, t.Title)
		}
		return found
	}
	cmd, rest, err := root.Find(args)
	if err != nil || len(rest) > 0 {
		return nil
	}
	taken := map[string]bool{}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			taken[c.Name()] = true
			for _, alias := range c.Aliases {
				taken[alias] = true
			}
			offer(c.Name(), c.Short)
		}
	}
	if cmd == root && len(args) == 0 {
		for _, t := range topics {
			if !taken[t.Name] {
				offer(t.Name, t.Title)
			}
		}
		if len(topics) > 0 {
			offer(guidePrefix, "The guide's chapters")
		}
	}
	return found
}
