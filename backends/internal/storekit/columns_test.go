package storekit

import (
	"slices"
	"testing"
)

func TestColumns(t *testing.T) {
	c := NewColumns("run_columns", "-- The columns, in order.\nrun_id, namespace,\nstatus\n")
	if want := []string{"run_id", "namespace", "status"}; !slices.Equal(c.Names(), want) {
		t.Fatalf("columns = %q, want %q", c.Names(), want)
	}
	for _, statement := range []struct{ name, text, want string }{
		{"an alias before each column", "select {r.run_columns}, 1 from runs r",
			"select r.run_id, r.namespace, r.status, 1 from runs r"},
		{"columns and parameters", "insert into runs ({run_columns}, tied) values ({@run_columns}, @tied)",
			"insert into runs (run_id, namespace, status, tied) values (@run_id, @namespace, @status, @tied)"},
		{"a statement without a reference", "select '{}' from runs", "select '{}' from runs"},
		{"another list and a brace without an end", "select {step_columns} from {", "select {step_columns} from {"},
		{"a reference behind a lone brace", "select '{', {run_columns}", "select '{', run_id, namespace, status"},
	} {
		if got := c.Expand(statement.text); got != statement.want {
			t.Errorf("%s: got %q, want %q", statement.name, got, statement.want)
		}
	}
}
