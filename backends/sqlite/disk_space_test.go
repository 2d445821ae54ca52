package sqlite

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func TestADiskThatIsNearlyFullIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "kagzi.db"),
		engine.OpenOptions{Serving: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	left := uint64(100 << 20)
	s.space.Free = func(string) (uint64, error) { return left, nil }
	again := func() engine.DiskSpace {
		time.Sleep(1050 * time.Millisecond) // it asks the disk once a second
		return s.Space()
	}
	for range 2 {
		if got, want := again(), (engine.DiskSpace{Free: left, Low: true, Known: true}); got != want {
			t.Errorf("space = %+v, want %+v", got, want)
		}
	}
	if n := strings.Count(log.String(), "the disk is nearly full"); n != 1 {
		t.Errorf("said %d times: %s", n, log.String())
	}
	left = 1 << 30
	if again().Low || !strings.Contains(log.String(), "the disk has room again") {
		t.Errorf("with 1 GiB: %+v, %s", s.Space(), log.String())
	}
}
