package kagzi

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/grpc"
)

func (d *desk) ExplainWorkflow(_ context.Context,
	r *kagziv1.ExplainWorkflowRequest) (*kagziv1.ExplainWorkflowResponse, error) {
	return &kagziv1.ExplainWorkflowResponse{Summary: "run " + r.RunId + " waits for signal approve"}, nil
}

func (d *desk) WatchWorkflow(r *kagziv1.WatchWorkflowRequest,
	stream grpc.ServerStreamingServer[kagziv1.WatchWorkflowEvent]) error {
	if r.RunOnly {
		_ = stream.Send(&kagziv1.WatchWorkflowEvent{Workflow: &kagziv1.Workflow{RunId: r.RunId}})
		<-stream.Context().Done()
	}
	return nil
}

// sharedText is what several goroutines have written.
type sharedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *sharedText) Write(more []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(more)
}

func (s *sharedText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestResultLogsWhatTheRunWaitsForAfter3Seconds(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk, c *Client) {
		var log sharedText
		c.log = slog.New(slog.NewTextHandler(&log, nil))
		lines := func() int { d.took(); return strings.Count(log.String(), "\n") }
		var ids []string
		var ended []*kagziv1.Workflow
		for i := range maxExplained + 3 {
			ids = append(ids, fmt.Sprint("r", i))
			ended = append(ended, goodRun(ids[i]))
		}
		all := results(t.Context(), c, ids[0])
		time.Sleep(2999 * time.Millisecond)
		equal(t, lines(), 0)
		time.Sleep(time.Millisecond)
		equal(t, lines(), 1)
		if want := `level=INFO msg="waiting for a run" run=r0 state="run r0 waits for signal approve"`; !strings.Contains(
			log.String(), want) {
			t.Errorf("the log is %s, want %s", log.String(), want)
		}
		others := results(t.Context(), c, ids[1:]...)
		time.Sleep(time.Hour)
		equal(t, lines(), maxExplained) // the others are awaited in silence
		d.ends(ended...)
		all()
		others()
		d.mu.Lock()
		d.ended = func(string) *kagziv1.Workflow { return nil }
		d.mu.Unlock()
		last := results(t.Context(), c, "last") // the slots are free again
		time.Sleep(3 * time.Second)
		equal(t, lines(), maxExplained+1)
		d.ends(goodRun("last"))
		last()
		equal(t, len(c.explained), 0)
	})
}
