// Package manual writes man pages from the commands.
package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Write writes the pages of a command and its subcommands to dir.
func Write(cmd *cobra.Command, version, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(manualPage(cmd, name, version)), 0o644); err != nil {
		return err
	}
	for _, child := range shownCommands(cmd) {
		if err := Write(child, version, dir); err != nil {
			return err
		}
	}
	return nil
}

func shownCommands(cmd *cobra.Command) []*cobra.Command {
	var shown []*cobra.Command
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			shown = append(shown, c)
		}
	}
	return shown
}

// manualPage returns a command's page as man(7) source. It has no date, so that the same program
// writes the same bytes.
func manualPage(cmd *cobra.Command, name, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH \"%s\" \"1\" \"\" \"%s\" \"Kagzi\"\n", roff(strings.ToUpper(name)), roff("kagzi "+version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(cmd.Short))
	b.WriteString(".SH SYNOPSIS\n.B " + roff(cmd.UseLine()) + "\n")
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n" + RoffText(about))
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n" + RoffText(cmd.Example))
	}
	roffFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	roffFlags(&b, "OPTIONS OF THE GROUP", cmd.InheritedFlags())
	if !cmd.HasParent() {
		b.WriteString(manualExits)
	}
	roffOthers(&b, cmd, name)
	return b.String()
}

// manualExits lists the exit codes of all commands.
const manualExits = `.SH EXIT STATUS
0 ok, 1 error, 2 run failed, 3 run timed out, 4 run cancelled or terminated, 5 not found, 6 conflict, 7 unavailable,
8 permission denied, 64 usage, 78 unsafe settings, 130 interrupted.
`

func roffFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH " + title + "\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		short := ""
		if f.Shorthand != "" {
			short = "-" + f.Shorthand + ", "
		}
		value, usage := pflag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" && f.DefValue != "0s" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s", roff(strings.TrimSpace(short+"--"+f.Name+" "+value)), RoffText(usage))
	})
}

func roffOthers(b *strings.Builder, cmd *cobra.Command, name string) {
	var others []string
	if cmd.HasParent() {
		others = append(others, strings.ReplaceAll(cmd.Parent().CommandPath(), " ", "-"))
	}
	for _, c := range shownCommands(cmd) {
		others = append(others, name+"-"+c.Name())
	}
	if len(others) == 0 {
		return
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, other := range others {
		end := ","
		if i == len(others)-1 {
			end = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", roff(other), end)
	}
}

// RoffText converts text: blank lines separate paragraphs, and lines that start with a space keep
// their layout.
func RoffText(text string) string {
	var b strings.Builder
	shaped := false
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if blank := strings.TrimSpace(line) == ""; !blank && shaped != (line[0] == ' ') {
			shaped = !shaped
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[shaped])
		} else if blank {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(roff(line) + "\n")
	}
	if shaped {
		b.WriteString(".fi\n")
	}
	return b.String()
}

var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "…", "...")

// roff escapes a line, so that nothing in it is a request or an escape.
func roff(line string) string {
	line = roffEscapes.Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		return `\&` + line
	}
	return line
}
