package kagzi

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// lines is a writer of log lines to a channel.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

func TestAWorkerThatDoesNotEndLogsAllStacks(t *testing.T) {
	defer func(before time.Duration) { endLimit = before }(endLimit)
	endLimit = time.Millisecond
	said := make(lines, 1)
	w := &Worker{log: slog.New(slog.NewTextHandler(said, nil))}
	stop := w.watchEnd()
	defer stop()
	select {
	case line := <-said:
		if !strings.Contains(line, "does not end") ||
			!strings.Contains(line, "TestAWorkerThatDoesNotEndLogsAllStacks") {
			t.Errorf("log %q, want the stacks", line)
		}
	case <-time.After(10 * time.Second):
		t.Error("nothing was logged")
	}
}
