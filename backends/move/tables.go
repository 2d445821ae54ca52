package move

import (
	"fmt"
	"slices"

	"github.com/kagzi/kagzi/engine"
)

// Compare returns an error unless both databases have the same tables, with the same columns and
// keys.
func Compare(from, to []engine.CopyTable) error {
	for _, t := range from {
		if find(to, t.Name) == nil {
			return fmt.Errorf("the target has no table %s", t.Name)
		}
	}
	for _, t := range to {
		source := find(from, t.Name)
		if source == nil {
			return fmt.Errorf("the source has no table %s", t.Name)
		}
		if err := compareTable(source, &t); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	return nil
}

func compareTable(from, to *engine.CopyTable) error {
	if len(to.Key) == 0 || !slices.Equal(from.Key, to.Key) {
		return fmt.Errorf("the source's key is %v, the target's %v", from.Key, to.Key)
	}
	for _, c := range from.Columns {
		if to.At(c.Name) < 0 {
			return fmt.Errorf("the target has no column %s", c.Name)
		}
	}
	for _, c := range to.Columns {
		i := from.At(c.Name)
		if i < 0 {
			return fmt.Errorf("the source has no column %s", c.Name)
		}
		if from.Columns[i].Kind != c.Kind {
			return fmt.Errorf("column %s has another type in the source than in the target", c.Name)
		}
	}
	return nil
}

// parentsFirst orders tables so that each comes after the tables that it refers to, and otherwise
// by name.
func parentsFirst(tables []engine.CopyTable) (ordered []engine.CopyTable, err error) {
	for len(ordered) < len(tables) {
		before := len(ordered)
		for _, t := range tables {
			ready := find(ordered, t.Name) == nil && !slices.ContainsFunc(t.Refers, func(name string) bool {
				return name != t.Name && find(ordered, name) == nil
			})
			if ready {
				ordered = append(ordered, t)
			}
		}
		if len(ordered) == before {
			return nil, fmt.Errorf("the tables refer to each other in a circle")
		}
	}
	return ordered, nil
}
