package cli

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestGuideTopics(t *testing.T) {
	guides := fstest.MapFS{
		"installer/guide/workflow.md": {Data: []byte(
			"# Workflows, again\n\nIt shares its name with a command. See [backups](backup.md).\n")},
		"installer/guide/backup.md": {Data: []byte("# Backups\n\nHow to make one. See [the other](workflow.md).\n")},
	}
	help := func(args ...string) (code int, stdout, stderr string) {
		e := (&session{server: &fake{}}).env()
		e.local.Guides = guides
		var out, errs strings.Builder
		code = Execute(t.Context(), root(e), args, strings.NewReader(""), &out, &errs)
		return code, out.String(), errs.String()
	}
	for _, try := range []struct {
		name string
		args []string
		code int
		want []string // in stdout, or in stderr when code is not 0
	}{
		{"lists commands and topics", []string{"help"}, 0,
			[]string{"Available Commands:", "kagzi help backup ", "kagzi help guide workflow  Workflows, again"}},
		{"shows a chapter", []string{"help", "backup"}, 0,
			[]string{"Backups\n\n  How to make one. See the other (`kagzi help guide workflow`)."}},
		{"takes a file's name", []string{"help", "backup.md"}, 0, []string{"Backups\n"}},
		{"shows a command before a topic of the same name", []string{"help", "workflow"}, 0,
			[]string{"kagzi workflow", "The guide's chapter: kagzi help guide workflow\n"}},
		{"shows a command of a group", []string{"help", "workflow", "list"}, 0, []string{"kagzi workflow list"}},
		{"shows a topic that a command hides", []string{"help", "guide", "workflow"}, 0,
			[]string{"Workflows, again\n", "(`kagzi help backup`)"}},
		{"lists topics alone", []string{"help", "guide"}, 0, []string{"Operating a server:"}},
		{"names the nearest topic", []string{"help", "bakup"}, ExitUsage,
			[]string{`unknown command or topic "bakup" for kagzi`, "did you mean: kagzi help backup"}},
		{"names the nearest command", []string{"help", "schedul"}, ExitUsage,
			[]string{"did you mean: kagzi help schedule"}},
		{"names the nearest command of a group", []string{"help", "workflow", "lits"}, ExitUsage,
			[]string{"did you mean: kagzi workflow list"}},
		{"points to the list", []string{"help", "zzzz"}, ExitUsage, []string{"see: kagzi help"}},
		{"takes one topic", []string{"help", "guide", "backup", "x"}, ExitUsage,
			[]string{`unexpected argument "x"`}},
		{"completes topics beside commands", []string{"__complete", "help", "b"}, 0, []string{"backup\tBackups\n"}},
		{"completes a hidden topic after guide", []string{"__complete", "help", "guide", "w"}, 0,
			[]string{"workflow\tWorkflows, again\n"}},
		{"completes commands of a group", []string{"__complete", "help", "workflow", "lis"}, 0, []string{"list\t"}},
	} {
		t.Run(try.name, func(t *testing.T) {
			code, out, errs := help(try.args...)
			text := out
			if try.code != 0 {
				text = errs
			}
			if code != try.code {
				t.Errorf("exit code %d, want %d: %s", code, try.code, errs)
			}
			for _, want := range try.want {
				if !strings.Contains(text, want) {
					t.Errorf("lacks %q:\n%s", want, text)
				}
			}
		})
	}
	t.Run("names the broken chapter", func(t *testing.T) {
		guides["sdk/guide/1-bad.md"] = &fstest.MapFile{Data: []byte("no title\n")}
		if code, _, errs := help("help", "backup"); code != ExitError || !strings.Contains(errs, "sdk/guide/1-bad.md") {
			t.Errorf("exit code %d: %s", code, errs)
		}
	})
}
