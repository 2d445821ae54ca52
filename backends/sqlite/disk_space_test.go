package sqlite

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestADiskThatIsNearlyFullIsLogged(t *testing.T) {
	var log bytes.Buffer
	s := &Store{log: slog.New(slog.NewTextHandler(&log, nil))}
	s.tellSpace(100<<20, true)
	if got := log.String(); !strings.Contains(got, "the disk is nearly full") || !strings.Contains(got, "100.0 MiB") {
		t.Errorf("log %q", got)
	}
	s.tellSpace(1<<30, false)
	if got := log.String(); !strings.Contains(got, "the disk has room again") {
		t.Errorf("log %q", got)
	}
}
