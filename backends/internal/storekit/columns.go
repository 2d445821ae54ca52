package storekit

import (
	"regexp"
	"strings"
)

// Columns is a list of columns that statements share. Expand replaces {NAME} in a statement by the
// list. A prefix in the braces is put before each column: {r.NAME} for a table alias, {@NAME} for
// parameters. A statement that was not expanded cannot be prepared, because braces are not SQL.
type Columns struct {
	reference *regexp.Regexp
	columns   []string
}

// NewColumns reads a list of column names separated by commas. It ignores comment lines.
func NewColumns(name, list string) Columns {
	c := Columns{reference: regexp.MustCompile(`\{([a-z.@]*)` + name + `\}`)}
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, "--") {
			continue
		}
		for column := range strings.SplitSeq(line, ",") {
			if column = strings.TrimSpace(column); column != "" {
				c.columns = append(c.columns, column)
			}
		}
	}
	return c
}

// Names returns the columns in order.
func (c Columns) Names() []string { return c.columns }

// Expand replaces the list's placeholders in the statement.
func (c Columns) Expand(statement string) string {
	return c.reference.ReplaceAllStringFunc(statement, func(reference string) string {
		prefix := c.reference.FindStringSubmatch(reference)[1]
		return prefix + strings.Join(c.columns, ", "+prefix)
	})
}
