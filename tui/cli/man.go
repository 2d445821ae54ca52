package cli

import (
	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/tui/cli/internal/guide"
	"github.com/kagzi/kagzi/tui/cli/internal/manual"
)

// newMan makes the manual for packages: a page for each command, or with --guide for each chapter
// of the guide.
func newMan(e *env) *cobra.Command {
	dir, chapters := "", false
	cmd := &cobra.Command{
		Use:   "man --dir DIR",
		Short: "Write the manual's pages, one for each command, into a directory",
		Long: `Write the manual's pages, one for each command, into a directory: kagzi.1, kagzi-workflow.1, kagzi-workflow-start.1, …
With --guide, one for each chapter of the guide instead: kagzi-guide-backup.7, …

A file of such a name that is there is replaced. The same program always writes the same bytes.`,
		Example: "  kagzi man --dir man1 && man man1/kagzi-workflow.1\n" +
			"  sudo kagzi man --dir /usr/local/share/man/man1\n" +
			"  sudo kagzi man --guide --dir /usr/local/share/man/man7",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return usagef("where to? want --dir DIR, such as ~/.local/share/man/man1")
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
	cmd.Flags().StringVar(&dir, "dir", "", "directory to write to; made when it is not there")
	cmd.Flags().BoolVar(&chapters, "guide", false, "write the guide's chapters, for section 7, instead of the commands")
	_ = cmd.MarkFlagDirname("dir") // fails only for a flag that is not there
	return cmd
}
