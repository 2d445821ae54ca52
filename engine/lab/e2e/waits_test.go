package e2e

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// eachPair runs a test on two servers on one Postgres, and on one server on SQLite that is both.
func eachPair(t *testing.T, o Options, test func(t *testing.T, one, other *Server)) {
	eachBackend(t, func(t *testing.T, url string) {
		one := New(t, openStore(t, url), o)
		other := one
		if _, embedded := cutSQLite(url); !embedded {
			other = New(t, openStore(t, url), o)
		}
		test(t, one, other)
	})
}

func TestEveryWaiterLearnsOfTheEndAtOnceOnAnyServer(t *testing.T) {
	eachPair(t, patient, func(t *testing.T, one, other *Server) {
		ctx := within(t, time.Minute)
		w := one.register(t)
		const runs, waiters = 5, 4
		type end struct {
			run string
			by  string
			at  time.Time
			w   *kagziv1.Workflow
		}
		ends := make(chan end, 2*runs*waiters)
		started := map[string]*kagziv1.Task{}
		for range runs {
			run := one.start(t)
			started[run] = w.take(t)
			for i := range waiters {
				server := []*Server{one, other}[i%2]
				go func() {
					a, err := server.workflows().WaitWorkflow(
						ctx, &kagziv1.WaitWorkflowRequest{RunId: run, Wait: durationpb.New(30 * time.Second)})
					if err == nil && a.Finished {
						ends <- end{run, fmt.Sprintf("wait %d", i), time.Now(), a.Workflow}
					}
				}()
				watch := fine(server.workflows().WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{RunId: run}))(t)
				fine(watch.Recv())(t)
				go func() {
					var last *kagziv1.Workflow
					for {
						event, err := watch.Recv()
						if err != nil {
							ends <- end{run, fmt.Sprintf("watch %d", i), time.Now(), last}
							return
						}
						if event.Workflow != nil {
							last = event.Workflow
						}
					}
				}()
			}
		}
		other.awaitPoller(t)
		for run, task := range started {
			began := time.Now()
			if task.RunId == run {
				w.complete(t, task, "of "+run)
			}
			for range 2 * waiters {
				e := receive(t, "the end for a waiter", ends)
				if e.run != run || string(e.w.GetOutput().GetData()) != "of "+run {
					t.Fatalf("%s of run %s got %v of %s", e.by, run, e.w, e.run)
				}
				if took := e.at.Sub(began); took > promptly {
					t.Errorf("%s learnt of the end after %s", e.by, took)
				}
			}
		}
	})
}

func TestAResultCanBeWaitedForBeforeAndAfterTheEndAndByIDAlone(t *testing.T) {
	eachPair(t, patient, func(t *testing.T, one, other *Server) {
		ctx := within(t, time.Minute)
		c := other.client(t)
		run := one.start(t)
		w := one.register(t)
		results := make(chan string, 3)
		for range 3 {
			go func() {
				if got, err := kagzi.Result[string](ctx, c.Run(run)); err == nil {
					results <- got
				}
			}()
		}
		other.awaitPoller(t)
		wantEmpty(t, "a result before the end", results)
		w.complete(t, w.take(t), `"done"`)
		for range 3 {
			if got := receive(t, "the result", results); got != "done" {
				t.Errorf("the result is %q", got)
			}
		}
		if got := fine(kagzi.Result[string](ctx, c.Run(run)))(t); got != "done" {
			t.Errorf("after the end the result is %q", got)
		}
	})
}

func TestRunsOfOneServerReachWorkersOfAnother(t *testing.T) {
	eachPair(t, patient, func(t *testing.T, one, other *Server) {
		other.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "hello", func(ctx kagzi.Context, n int) (int, error) {
				kagzi.Sleep(ctx, "nap", 20*time.Millisecond)
				return n * n, nil
			})
		})
		ctx, c := within(t, time.Minute), one.client(t)
		inputs := make([]int, 30)
		for i := range inputs {
			inputs[i] = i
		}
		for i, run := range fine(kagzi.StartMany(ctx, c, "hello", inputs, kagzi.StartOptions{}))(t) {
			if got := fine(kagzi.Result[int](ctx, run))(t); got != i*i {
				t.Errorf("run %d returned %d", i, got)
			}
		}
		// A request to one server reaches the worker on the other.
		held := other.session(t)
		held.grant(1)
		run := one.start(t)
		task := receive(t, "the run", held.tasks)
		began := time.Now()
		fine(one.workflows().CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: run}))(t)
		if told := receive(t, "word of the cancel", held.cancels); told.LeaseToken != task.LeaseToken {
			t.Errorf("the worker is told %v", told)
		}
		if took := time.Since(began); took > promptly {
			t.Errorf("word of the cancel took %s", took)
		}
		if err := drain(t, one, held.id); err != nil {
			t.Fatal(err)
		}
		receive(t, "word of the drain", held.drains)
	})
}
