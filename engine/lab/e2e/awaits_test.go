package e2e

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

func TestEachOfManyStartsAndResultsIsItsOwn(t *testing.T) {
	eachPair(t, patient, func(t *testing.T, one, other *Server) {
		one.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "echo", func(_ kagzi.Context, n int) (int, error) { return n, nil })
			kagzi.Handle(w, "doomed", func(_ kagzi.Context, n int) (int, error) {
				return 0, kagzi.NonRetryable(kagzi.WithType(fmt.Errorf("no %d", n), "refused"))
			})
			kagzi.Handle(w, "chain", func(ctx kagzi.Context, n int) (int, error) {
				if n%10 != 0 {
					return kagzi.ContinueAsNew[int](ctx, n-1)
				}
				return n, nil
			})
		})
		ctx := within(t, time.Minute)
		for where, s := range map[string]*Server{"the worker's server": one, "another": other} {
			c := s.client(t)
			var group sync.WaitGroup
			for i := range 120 {
				group.Go(func() {
					kind := []string{"echo", "doomed", "chain", "bad kind"}[i%4]
					run, err := kagzi.Start(ctx, c, kind, i, kagzi.StartOptions{})
					var refused *kagzi.Error
					if kind == "bad kind" {
						if !errors.As(err, &refused) || refused.Code != kagzi.CodeInvalidArgument ||
							refused.Metadata["field"] != "workflow_type" {
							t.Errorf("%s: start %d of a bad type: %v", where, i, err)
						}
						return
					}
					if err != nil {
						t.Errorf("%s: start %d: %v", where, i, err)
						return
					}
					got, err := kagzi.Result[int](ctx, run)
					var ended *kagzi.RunError
					switch {
					case kind == "doomed" && (!errors.As(err, &ended) || ended.RunID != run.ID() ||
						ended.Message != fmt.Sprint("no ", i) || ended.Type != "refused"):
						t.Errorf("%s: run %d ended with %v", where, i, err)
					case kind == "echo" && (got != i || err != nil):
						t.Errorf("%s: run %d returned %d, %v", where, i, got, err)
					case kind == "chain" && (got != i-i%10 || err != nil):
						t.Errorf("%s: chain %d returned %d, %v", where, i, got, err)
					}
				})
			}
			group.Wait()
		}
	})
}

func TestAViewerWaitsForEndsWithoutTheirPayloads(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		root := s.lock(t)
		_, secret := root.key(t, &kagziv1.Key{Name: "v", Role: viewer, Namespaces: []string{"default"}})
		ctx := within(t, 30*time.Second)
		w := root.register(t)
		run := root.start(t)
		stream := fine(s.as(t, secret).workflows().AwaitWorkflows(ctx))(t)
		if err := stream.Send(&kagziv1.AwaitWorkflowsRequest{
			Waits: []*kagziv1.AwaitWorkflowsRequest_Wait{
				{Seq: 1, RunId: run}, {Seq: 2, RunId: run, Whole: true}}}); err != nil {
			t.Fatal(err)
		}
		w.complete(t, w.take(t), "secret")
		for seen := 0; seen < 2; {
			for _, e := range fine(stream.Recv())(t).Ended {
				seen++
				for _, p := range []*kagziv1.Payload{e.Output, e.Workflow.GetOutput(), e.Workflow.GetInput()} {
					if len(p.GetData()) > 0 {
						t.Errorf("a viewer is shown %s", p)
					}
				}
				if e.Output == nil && e.Workflow.GetOutput() == nil {
					t.Errorf("no result in %v", e)
				}
			}
		}
	})
}
