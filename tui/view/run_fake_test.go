package view

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// WatchWorkflow finds no run once they are lost.
func (f *forgetful) WatchWorkflow(ctx context.Context, request *kagziv1.WatchWorkflowRequest,
	options ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.WatchWorkflowEvent], error) {
	if f.lost {
		return nil, errDeleted
	}
	return f.shop.WatchWorkflow(ctx, request, options...)
}

// told is a stream of prepared messages.
type told[M any] struct {
	grpc.ClientStream
	messages []*M
}

func (s *told[M]) Recv() (*M, error) {
	if len(s.messages) == 0 {
		return nil, io.EOF
	}
	m := s.messages[0]
	s.messages = s.messages[1:]
	return m, nil
}

// long is a shop with one run of very many steps.
type long struct {
	*shop
	run   *kagziv1.Workflow
	steps []*kagziv1.Step
}

func newLong(n int) *long {
	l := &long{shop: emptyShop()}
	at := func(i int) *timestamppb.Timestamp {
		return timestamppb.New(begin.Add(time.Duration(i-n) * time.Second))
	}
	l.run = &kagziv1.Workflow{
		Namespace: "default", RunId: absent, WorkflowType: "long", TaskQueue: "default", Attempts: 1,
		StepCount: int64(n), CreatedAt: at(0), StartedAt: at(0),
		Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, FinishedAt: at(n),
	}
	for i := range n {
		s := &kagziv1.Step{
			StepId: fmt.Sprint("attempt-", i), RunId: absent, Name: fmt.Sprint("step-", i),
			Kind: kagziv1.StepKind_STEP_KIND_FUNCTION, AttemptNumber: 1, IsLatest: true,
			Status: kagziv1.StepStatus_STEP_STATUS_COMPLETED, Sequence: int64(i + 1), CreatedAt: at(i),
			StartedAt: at(i), FinishedAt: at(i + 1),
			Output: &kagziv1.Payload{Data: []byte(`{"done":true}`)},
		}
		l.steps = append(l.steps, s)
	}
	return l
}

func (l *long) WatchWorkflow(context.Context, *kagziv1.WatchWorkflowRequest,
	...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.WatchWorkflowEvent], error) {
	return &told[kagziv1.WatchWorkflowEvent]{
		messages: []*kagziv1.WatchWorkflowEvent{{Steps: l.steps}, {Workflow: l.run}, {SnapshotDone: true}}}, nil
}

// BenchmarkARunOf10000Steps draws each tab of a very long run: first, after a change, and
// unchanged.
func BenchmarkARunOf10000Steps(b *testing.B) {
	l := newLong(10_000)
	screen := tcell.NewSimulationScreen("UTF-8")
	if err := screen.Init(); err != nil {
		b.Fatal(err)
	}
	screen.SetSize(120, 40)
	a := newApp(b.Context(), Options{API: l, Open: "run " + absent, Now: l.Now, Screen: screen, Zone: time.UTC})
	a.begin()
	defer a.end()
	p := a.trails.top().(*runPage)
	f := newFrame(a)
	f.SetRect(0, 0, 120, 40)
	for !p.run.Loaded() {
		<-a.posts.Kick
		a.posts.Run()
	}
	for i, name := range tabNames {
		b.Run("changed/"+name.command, func(b *testing.B) {
			p.choose(i)
			for b.Loop() {
				p.changed()
				f.Draw(screen)
			}
		})
		b.Run("frame/"+name.command, func(b *testing.B) {
			p.choose(i)
			for b.Loop() {
				f.Draw(screen)
			}
		})
	}
}
