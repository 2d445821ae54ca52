package cli

import (
	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/tui/cli/internal/manual"
	"github.com/kagzi/kagzi/tui/guide"
)

// newMan writes man pages for packages: one per command, or with --guide one per chapter of the
// guide.
func newMan(e *env) *cobra.Command {
	dir, chapters := "", false
	cmd := &cobra.Command{
		Use:   "man --dir DIR",
		Short: "Write man pages, one per command, to a directory",
		Long: `Write man pages, one per command, to a directory: kagzi.1, kagzi-workflow.1,
kagzi-workflow-start.1 and so on. With --guide write one per chapter of the guide instead:
kagzi-guide-backup.7 and so on.

Existing files with these names are replaced. The output depends only on the version of kagzi.`,
		Example: "  kagzi man --dir man1 && man man1/kagzi-workflow.1\n" +
			"  sudo kagzi man --dir /usr/local/share/man/man1\n" +
			"  sudo kagzi man --guide --dir /usr/local/share/man/man7",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return usagef("--dir is required, for example --dir ~/.local/share/man/man1")
			}
			if !chapters {
				return manual.Write(cmd.Root(), e.version, dir)
			}
			topics, err := guide.Load(e.local.Guides)
			if err != nil {
				return err
			}
			root := cmd.Root()
			var pages []manual.Chapter
			for _, t := range topics {
				pages = append(pages, manual.Chapter{Name: t.Name, Title: t.Title, Lines: guide.Text(t, guide.Layout{
					Width: manual.Columns, Topics: topics,
					Command: func(name string) string { return topicCommand(root, name) },
				})})
			}
			return manual.WriteChapters(pages, e.version, dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "directory to write to; created if missing")
	cmd.Flags().BoolVar(&chapters, "guide", false, "write the guide's chapters (section 7) instead of the commands")
	_ = cmd.MarkFlagDirname("dir") // fails only if the flag does not exist
	return cmd
}
