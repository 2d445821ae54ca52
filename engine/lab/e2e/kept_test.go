package e2e

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	kagzi "github.com/kagzi/kagzi/sdk"
)

func TestAParkedRunComesBackToTheCodeInMemory(t *testing.T) {
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		const rounds = 20
		for _, c := range []struct{ cache, begins int32 }{{0, 1}, {-1, rounds + 1}} {
			var begins atomic.Int32
			_, stop := s.work(t, kagzi.WorkerOptions{Cache: int(c.cache)}, func(w *kagzi.Worker) {
				kagzi.Handle(w, "loop", func(ctx kagzi.Context, n int) (int, error) {
					begins.Add(1)
					sum := 0
					for i := range n {
						v, err := kagzi.Step(ctx, fmt.Sprint("step-", i), func(context.Context) (int, error) { return i, nil })
						if err != nil {
							return 0, err
						}
						sum += v
						kagzi.Sleep(ctx, fmt.Sprint("nap-", i), time.Millisecond)
					}
					return sum, nil
				})
			})
			client := s.client(t)
			run, err := kagzi.Start(t.Context(), client, "loop", rounds, kagzi.StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := kagzi.Result[int](t.Context(), run)
			if want := rounds * (rounds - 1) / 2; err != nil || got != want {
				t.Errorf("the result is %d, %v, want %d", got, err, want)
			}
			if n := begins.Load(); n != c.begins {
				t.Errorf("with a cache of %d the code began %d times, want %d", c.cache, n, c.begins)
			}
			stop()
		}
	})
}
