package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// TestStepsChildrenAndSignalsInParallel runs workflows that do everything at once. Their steps,
// children and signals end in any order, and their worker is stopped over and over, so that each
// activation replays another part of its history.
func TestStepsChildrenAndSignalsInParallel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	eachServer(t, patient, func(t *testing.T, s *Server) {
		var randMu sync.Mutex
		dice := rand.New(rand.NewPCG(seed, 1))
		roll := func(n int) time.Duration {
			randMu.Lock()
			defer randMu.Unlock()
			return time.Duration(dice.IntN(n)) * time.Millisecond
		}
		var activations atomic.Int64
		handle := func(w *kagzi.Worker) {
			kagzi.Handle(w, "everything", func(ctx kagzi.Context, n int) (string, error) {
				activations.Add(1)
				signals := kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) {
					sum := 0
					for range 3 {
						v, err := kagzi.WaitSignal[int](ctx, "add", 0)
						if err != nil {
							return 0, err
						}
						sum += v
					}
					return sum, nil
				})
				children := kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) {
					var kids []*kagzi.Child[int]
					for i := range 3 {
						kid, err := kagzi.StartChild[int](ctx, fmt.Sprintf("kid-%d", i), "kid", i, kagzi.ChildOptions{})
						if err != nil {
							return 0, err
						}
						kids = append(kids, kid)
					}
					all, err := kagzi.WaitAll(ctx, kids...)
					sum := 0
					for _, v := range all {
						sum += v
					}
					return sum, err
				})
				naps := kagzi.Go(ctx, func(ctx kagzi.Context) (int, error) {
					for i := range 3 {
						kagzi.Sleep(ctx, fmt.Sprintf("nap-%d", i), roll(30)+time.Millisecond)
					}
					return 3, nil
				})
				steps, err := kagzi.Map(ctx, []int{0, 1, 2, 3}, func(ctx kagzi.Context, i int) (int, error) {
					return kagzi.Step(ctx, fmt.Sprintf("step-%d", i), func(step context.Context) (int, error) {
						<-time.After(roll(20))
						if kagzi.Attempt(step) == 1 && i == 2 {
							return 0, fmt.Errorf("once")
						}
						return i, nil
					}, kagzi.Retry{Initial: 5 * time.Millisecond, Attempts: 10})
				})
				if err != nil {
					return "", err
				}
				total := 0
				for _, v := range steps {
					total += v
				}
				for _, part := range []*kagzi.Future[int]{signals, children, naps} {
					v, err := part.Wait(ctx)
					if err != nil {
						return "", err
					}
					total += v
				}
				return fmt.Sprintf("%d: %d", n, total), nil
			})
			kagzi.Handle(w, "kid", func(ctx kagzi.Context, n int) (int, error) {
				kagzi.Sleep(ctx, "nap", roll(30)+time.Millisecond)
				return n * 10, nil
			})
		}
		ctx, c := within(t, 90*time.Second), s.client(t)
		const runs = 8
		var group sync.WaitGroup
		defer group.Wait()
		var started []*kagzi.Run
		for i := range runs {
			run := fine(kagzi.Start(ctx, c, "everything", i, kagzi.StartOptions{}))(t)
			started = append(started, run)
			group.Go(func() {
				for j := range 3 {
					<-time.After(roll(60))
					if err := kagzi.Signal(ctx, run, "add", 100*(j+1), kagzi.SignalOptions{}); err != nil {
						t.Errorf("signal %d of run %d: %v", j, i, err)
					}
				}
			})
		}
		// Workers that stop after a moment, and one that stays.
		for range 4 {
			_, stop := s.work(t, kagzi.WorkerOptions{DrainTimeout: time.Millisecond}, handle)
			<-time.After(roll(60))
			stop()
		}
		s.work(t, kagzi.WorkerOptions{}, handle)
		for i, run := range started {
			// 0+1+2+3, 100+200+300, 0+10+20, and three naps
			if got, want := fine(kagzi.Result[string](ctx, run))(t), fmt.Sprintf("%d: %d", i, 6+600+30+3); got != want {
				t.Errorf("run %d returned %q, want %q", i, got, want)
			}
			w := s.get(t, run.ID())
			if w.LeaseLosses != 0 || w.StepCount < 3+3+3+4 {
				t.Errorf("run %d is %v", i, w)
			}
			for _, step := range s.steps(t, run.ID()) {
				if step.IsLatest && step.Status != kagziv1.StepStatus_STEP_STATUS_COMPLETED {
					t.Errorf("step %s of run %d is %s", step.Name, i, step.Status)
				}
			}
		}
		t.Logf("%d activations of %d runs", activations.Load(), runs)
	})
}
