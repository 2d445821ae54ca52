package view

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
)

func TestQueuesLookRight(t *testing.T) { goldenView(t, "queues", always("queues")) }

// noWorkers is a server with a queue in which runs of two types wait for a missing worker.
type noWorkers struct{ tui.API }

func (noWorkers) GetQueueDepth(context.Context, *kagziv1.GetQueueDepthRequest,
	...grpc.CallOption) (*kagziv1.GetQueueDepthResponse, error) {
	return &kagziv1.GetQueueDepthResponse{Queues: []*kagziv1.QueueDepth{
		{TaskQueue: "media", Pending: 3, UnservedByType: map[string]int64{"encode": 1, "thumbnail": 2}}}}, nil
}

func TestTheBannerOfQueuesCountsAllThatNobodyTakes(t *testing.T) {
	onFixture(t, func() Options {
		w := newShop()
		return Options{API: noWorkers{w}, Open: "queues", Now: w.Now}
	}, 80, 24, func(r *fixture) {
		r.shows(`3 runs wait on queue "media", which no worker serves`)
	})
}

func TestEnterOnAQueueShowsItsRuns(t *testing.T) {
	var w *shop
	onFixture(t, inShop(&w, "queues"), 120, 30, func(r *fixture) {
		r.shows("emails", "onboarding (", "█████ 6/6")
		r.press("down", "enter")
		r.settle()
		r.shows("runs queue:media", "thumbnail")
		r.lacks("invoice.send")
		r.press("esc")
		r.shows("Queues (4)")
	})
}
