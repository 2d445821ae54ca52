//go:build linux

package main

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestAStampShowsAClock(t *testing.T) {
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		stamp stamp
		ahead time.Duration
		want  bool
	}{
		"as it was set":                 {stamp{95 * ms, 105 * ms}, 100 * ms, true},
		"not at all":                    {stamp{-5 * ms, 5 * ms}, 100 * ms, false},
		"not that far":                  {stamp{80 * ms, 98 * ms}, 100 * ms, false},
		"within the slack":              {stamp{80 * ms, 99 * ms}, 100 * ms, true},
		"taken too slowly to tell":      {stamp{0, 150 * ms}, 100 * ms, false},
		"set back, and it went forward": {stamp{95 * ms, 105 * ms}, -100 * ms, false},
	} {
		if got := test.stamp.shows(test.ahead, ms, 40*ms); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// stamping is a server whose clock is ahead.
type stamping struct {
	kagziv1.UnimplementedWorkflowServiceServer
	kagziv1.UnimplementedAdminServiceServer
	ahead time.Duration
	says  string
	asked atomic.Int64
}

func (s *stamping) StartWorkflow(context.Context,
	*kagziv1.StartWorkflowRequest) (*kagziv1.StartWorkflowResponse, error) {
	s.asked.Add(1)
	return &kagziv1.StartWorkflowResponse{RunId: "r"}, nil
}

func (s *stamping) GetWorkflow(context.Context, *kagziv1.GetWorkflowRequest) (*kagziv1.GetWorkflowResponse, error) {
	return &kagziv1.GetWorkflowResponse{Workflow: &kagziv1.Workflow{
		RunId: "r", CreatedAt: timestamppb.New(time.Now().Add(s.ahead))}}, nil
}

func (s *stamping) GetServerInfo(context.Context,
	*kagziv1.GetServerInfoRequest) (*kagziv1.GetServerInfoResponse, error) {
	return &kagziv1.GetServerInfoResponse{Facts: []*kagziv1.ServerFact{{Name: "clock offset", Value: s.says}}}, nil
}

func TestAClockThatNoServerGoesByWasNotSet(t *testing.T) {
	s := &stamping{ahead: -time.Hour, says: "-30000.4 ms, measured 1s ago"}
	sdk := clientOf(t, func(g *grpc.Server) {
		kagziv1.RegisterWorkflowServiceServer(g, s)
		kagziv1.RegisterAdminServiceServer(g, s)
	})
	tortured := &torture{load: &workload.Load{}, replays: history.NewLog("replayer")}
	for ahead, want := range map[time.Duration]bool{-time.Hour: true, 0: false, time.Hour: false} {
		limit := time.Minute
		if !want {
			limit = 50 * time.Millisecond
		}
		if got := tortured.stampsShow(t.Context(), sdk, ahead, time.Minute, time.Minute, limit); got != want {
			t.Errorf("a server that stamps with an hour ago, asked for %s: %t, want %t", ahead, got, want)
		}
	}
	for ahead, want := range map[time.Duration]bool{30 * time.Second: true, 0: false, -30 * time.Second: false} {
		limit := time.Minute
		if !want {
			limit = 50 * time.Millisecond
		}
		if got := offsetShows(t.Context(), sdk, ahead, time.Second, limit); got != want {
			t.Errorf("a server half a minute ahead of Postgres, asked for %s: %t, want %t", ahead, got, want)
		}
	}
	if events := tortured.replays.Events(); int64(len(events)) != s.asked.Load() || events[0].Run != "r" ||
		events[0].Outcome != history.OK {
		t.Errorf("%d starts for stamps, %d written down: %+v", s.asked.Load(), len(events), events)
	}
	if _, err := offsetOf(nil); err == nil {
		t.Error("a server that tells no offset is believed to have told one")
	}
}
