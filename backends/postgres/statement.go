package postgres

import (
	"context"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
)

// statement is a hot one, whose named parameters are turned into positions once and not at every call.
type statement struct {
	text  string
	names []string // in the order of their positions
}

var parameterName = regexp.MustCompile(`@[a-z_]+`)

// hot prepares a statement. Its text is part of the program, so an error in it is a defect.
func hot(named string) statement {
	names := args{}
	for _, name := range parameterName.FindAllString(named, -1) {
		names[name[1:]] = name[1:]
	}
	text, positions, err := names.RewriteQuery(context.Background(), nil, named, nil)
	if err != nil {
		panic(fmt.Sprintf("statement with named parameters: %v", err))
	}
	s := statement{text: text}
	for _, name := range positions {
		s.names = append(s.names, name.(string))
	}
	return s
}

// bind puts the arguments into the order of their positions. A missing or foreign name is a defect, which any call shows.
func (s statement) bind(a args) []any {
	bound := make([]any, len(s.names))
	for i, name := range s.names {
		value, ok := a[name]
		if !ok {
			panic("statement without argument " + name)
		}
		bound[i] = value
	}
	if len(a) != len(s.names) {
		panic("statement with an argument that it does not name")
	}
	return bound
}

var _ pgx.QueryRewriter = args{}
