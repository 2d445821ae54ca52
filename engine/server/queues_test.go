package server

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// crowd is a store with a queue for each device.
type crowd struct {
	servertest.StubStore
	queues []engine.QueueDepth
}

func (c crowd) GetQueueDepth(context.Context, string, string, time.Time) ([]engine.QueueDepth, error) {
	return c.queues, nil
}

func TestQueuesThatAreTooManyForAnAnswerComeInSeveral(t *testing.T) {
	const n = 40_000
	store := crowd{}
	for i := range n {
		store.queues = append(store.queues, engine.QueueDepth{
			Queue: fmt.Sprintf("device-%05d-%s", i, strings.Repeat("x", 150)), Pending: 1, Running: 2, Sleeping: 3})
	}
	s := New(store, matching.New(servertest.StubStore{}, nil), Options{})
	request := &kagziv1.GetQueueDepthRequest{}
	listed, answers := 0, 0
	for more := true; more; answers++ {
		a, err := s.GetQueueDepth(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if size := proto.Size(a); size > engine.MaxMessage || len(a.DepthByQueue) != len(a.Queues) {
			t.Errorf("an answer has %d bytes, %d queues and counts of %d", size, len(a.Queues), len(a.DepthByQueue))
		}
		if a.PendingCount != n || a.RunningCount != 2*n || a.SleepingCount != 3*n {
			t.Errorf("counted %d, %d and %d, want all", a.PendingCount, a.RunningCount, a.SleepingCount)
		}
		for _, q := range a.Queues {
			if q.TaskQueue != store.queues[listed].Queue {
				t.Fatalf("queue %d is %s, want %s", listed, q.TaskQueue, store.queues[listed].Queue)
			}
			listed++
		}
		request.Page, more = &kagziv1.PageRequest{PageToken: a.Page.NextPageToken}, a.Page.HasMore
	}
	if listed != n || answers < 2 {
		t.Errorf("%d queues in %d answers, want %d in several", listed, answers, n)
	}
}
