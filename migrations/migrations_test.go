package migrations

import (
	"slices"
	"testing"
)

func TestBothDialectsHaveTheSameNumbersAndNames(t *testing.T) {
	names := func(dialect string) []string {
		list, err := List(dialect)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, m := range list {
			names = append(names, m.Name)
		}
		return names
	}
	sqlite, postgres := names("sqlite"), names("postgres")
	if len(sqlite) == 0 || !slices.Equal(sqlite, postgres) {
		t.Fatalf("sqlite has %q, postgres has %q: twins are wanted", sqlite, postgres)
	}
}
