package daemon

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/daemon/internal/parts"
)

// healthyStore is a store that nothing is asked of.
type healthyStore struct{ engine.Store }

func (healthyStore) Fatal() <-chan struct{} { return nil }
func (healthyStore) Close() error           { return nil }

func TestAServerThatDoesNotStopLogsAllStacks(t *testing.T) {
	defer func(before time.Duration) { stopLimit = before }(stopLimit)
	stopLimit = 20 * time.Millisecond
	var log bytes.Buffer
	p := &process{log: slog.New(slog.NewTextHandler(&log, nil)), store: healthyStore{}, parts: parts.New()}
	held := make(chan struct{})
	defer close(held)
	p.parts.Start("matcher", func(context.Context) error { <-held; return nil })
	if err := p.stop(); err == nil || !strings.Contains(err.Error(), "waiting for the matcher") {
		t.Errorf("stop = %v, want what it waits for", err)
	}
	if !strings.Contains(log.String(), "TestAServerThatDoesNotStopLogsAllStacks") {
		t.Errorf("log %q, want the stacks", log.String())
	}
}
