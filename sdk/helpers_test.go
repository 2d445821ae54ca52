package kagzi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func equal[T any](t testing.TB, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("-want +got:\n%s", d)
	}
}
