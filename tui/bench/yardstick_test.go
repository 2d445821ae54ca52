package bench

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheYardstickMeasuresTheDiskOfDatabasesAndLeavesNothing(t *testing.T) {
	names := func(dir string) (of []string) {
		look, err := yardstick(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range look {
			if !(f.value > 0) {
				t.Errorf("%s = %v %s, want more than 0", f.name, f.value, f.unit)
			}
			of = append(of, f.name)
		}
		return of
	}
	dir := t.TempDir()
	if got, want := strings.Join(names(dir), ", "), sorting+", "+roundTrip+", "+syncing; got != want {
		t.Errorf("looked at %s, want %s", got, want)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
	if got, want := strings.Join(names(""), ", "), sorting+", "+roundTrip; got != want {
		t.Errorf("without a directory, looked at %s, want %s", got, want)
	}
	if _, err := yardstick(filepath.Join(dir, "nope")); err == nil || !strings.Contains(err.Error(), "nope") {
		t.Errorf("in a directory that is not there: %v, want it named", err)
	}
}

func TestWhatFailsIsNotCalledAgain(t *testing.T) {
	broken := errors.New("broken")
	calls := 0
	got := repeatedly(func() error {
		if calls++; calls == 3 {
			return broken
		}
		return nil
	})
	if !errors.Is(got.err, broken) || calls != 3 {
		t.Errorf("%d calls, %v; want 3 and the error of the last", calls, got.err)
	}
}
