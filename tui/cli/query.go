package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/proto/query"
)

// queryFlag is -q of a list. The server selects the items; the command checks the text first, and
// leaves out what a server of an older version sends although it is not selected.
type queryFlag[M any] struct {
	list *query.List[M]
	text string
	q    *query.Query[M]
}

// register adds the flag, with an example, and the fields to the command's help.
func (f *queryFlag[M]) register(cmd *cobra.Command, example string) {
	cmd.Flags().StringVarP(&f.text, "query", "q", "", "filter, such as: "+example)
	if cmd.Long == "" {
		cmd.Long = cmd.Short + "."
	}
	cmd.Long += "\n\nFields of -q:\n" + wrapped(f.list.Names(), 76) + "\nSee kagzi help query."
}

// wrapped joins words by commas, in indented lines of at most so many characters.
func wrapped(words []string, width int) string {
	var b strings.Builder
	line := "  "
	for i, word := range words {
		if i < len(words)-1 {
			word += ","
		}
		if len(line)+len(word) > width {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = "  "
		}
		line += word + " "
	}
	return b.String() + strings.TrimRight(line, " ")
}

// parse checks the text of the flag.
func (f *queryFlag[M]) parse(now time.Time) (err error) {
	f.q, err = f.list.Parse(f.text, now)
	if err != nil {
		return filterError(err)
	}
	return nil
}

// selected returns the items that the query selects.
func (f *queryFlag[M]) selected(items []M) []M {
	if f.q == nil {
		return items
	}
	return slices.DeleteFunc(items, func(m M) bool { return !f.q.Matches(m) })
}

// matching says in a message what the items were selected by.
func (f *queryFlag[M]) matching() string {
	if f.q == nil {
		return ""
	}
	return " match " + f.text
}
