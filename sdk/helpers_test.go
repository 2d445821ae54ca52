package kagzi

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func equal[T any](t testing.TB, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("-want +got:\n%s", d)
	}
}

func contains(t testing.TB, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Fatalf("got %q, want %q in it", got, want)
	}
}
