package storekit

import (
	"regexp"
	"strings"
)

// Columns is a list of columns that statements share. A statement with {NAME} in it stands for
// itself with the list in that place; what stands in the braces before the name is put before each
// column: {r.NAME} for a table with an alias, {@NAME} for parameters. Braces are no SQL, so a
// statement that was not expanded cannot be prepared.
type Columns struct {
	reference *regexp.Regexp
	columns   []string
}

// NewColumns reads a list: column names between commas. Lines that are comments do not count.
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

// Expand returns the statement with the list in the places that ask for it.
func (c Columns) Expand(statement string) string {
	return c.reference.ReplaceAllStringFunc(statement, func(reference string) string {
		prefix := c.reference.FindStringSubmatch(reference)[1]
		return prefix + strings.Join(c.columns, ", "+prefix)
	})
}
