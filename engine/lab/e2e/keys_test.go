package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

func keyed(key string, limit int32) func(*kagziv1.StartWorkflowRequest) {
	return func(r *kagziv1.StartWorkflowRequest) { r.ConcurrencyKey, r.ConcurrencyLimit = key, limit }
}

// census counts in the database how many runs of each key are held at a time.
func (s *Server) census(t testing.TB) map[string]int {
	held := map[string]int{}
	for _, w := range s.find(t, &kagziv1.ListWorkflowsRequest{StatusFilter: running.Enum()}) {
		held[w.ConcurrencyKey]++
	}
	return held
}

func TestNoMoreRunsOfAKeyAreHeldThanItsLimit(t *testing.T) {
	var o Options // a slow disk must not lose a worker that sends heartbeats
	o.Server.HeartbeatInterval, o.Server.WorkerLease = 200*time.Millisecond, 5*time.Second
	eachPair(t, o, func(t *testing.T, one, other *Server) {
		const runs, limit = 24, 2
		keys := []string{"a", "b", "c"}
		var want []string
		for i := range runs {
			want = append(want, one.start(t, keyed(keys[i%len(keys)], limit)))
		}
		// Three workers, on both servers. The first two die in turn while they hold runs.
		var mu sync.Mutex
		ended := map[string]bool{}
		ctx, stop := context.WithCancel(within(t, 3*time.Minute))
		defer stop()
		var died atomic.Int32
		work := func(server *Server, dies bool) {
			w := server.session(t)
			die := w.lives()
			defer die()
			w.grant(4)
			beat := time.NewTicker(100 * time.Millisecond)
			defer beat.Stop()
			held := map[string]*kagziv1.Task{}
			for beats := 0; ; {
				select {
				case <-ctx.Done():
					return
				case task := <-w.tasks:
					held[task.RunId] = task
				case <-beat.C:
					w.beat(slices.Collect(maps.Values(held))...)
					if dies && len(held) > 0 {
						if beats++; beats == 2 {
							died.Add(1)
							return // from here on it is silent, and still holds its runs
						}
						continue
					}
					for id, task := range held {
						if a := w.do(w.runDone(task, "")); a.GetCompletedWorkflow() != nil {
							mu.Lock()
							ended[id] = true
							mu.Unlock()
						}
						delete(held, id)
						w.grant(1)
					}
				}
			}
		}
		var group sync.WaitGroup
		group.Go(func() { work(one, true) })
		group.Go(func() { work(other, true) })
		group.Go(func() { work(one, false) })
		group.Go(func() { work(other, false) })
		done := func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(ended)
		}
		eventually(t, "all runs have ended", func() bool {
			for key, n := range other.census(t) {
				if n > limit {
					t.Errorf("%d runs of key %s are held, want %d at most", n, key, limit)
				}
			}
			return done() == runs
		})
		stop()
		group.Wait()
		for _, run := range want {
			w := one.get(t, run)
			if w.Status != completed {
				t.Errorf("run %s is %v", run, w)
			}
		}
		if died.Load() == 0 {
			t.Error("no worker died while it held a run")
		}
	})
}

func TestRunsOfAKeyGoInTheirOrderAndLetOthersPass(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		w := s.register(t)
		var line []string
		for range 4 {
			line = append(line, s.start(t, keyed("customer", 0))) // 0 means one at a time
		}
		free, otherKey := s.start(t), s.start(t, keyed("other", 1))
		first := w.take(t)
		if got := []string{first.RunId, w.take(t).RunId, w.take(t).RunId}; !slices.Equal(
			got, []string{line[0], free, otherKey}) {
			t.Errorf("handed out %v, want the first of the key and the runs without one", got)
		}
		w.wantNothing(t, "while the first of the key runs")
		for _, next := range line[1:] {
			w.complete(t, first, "")
			if first = w.take(t); first.RunId != next {
				t.Errorf("the next of the line is %s, want %s", first.RunId, next)
			}
			w.wantNothing(t, "while it runs")
		}
		// The key is that of a type, and a sleeping run lets the next one in.
		again := s.start(t, keyed("customer", 1))
		w.wantNothing(t, "while the last of the line runs")
		fine(s.workers().Sleep(within(t, 20*time.Second),
			&kagziv1.SleepRequest{RunId: first.RunId, StepId: "nap", Duration: hour, LeaseToken: first.LeaseToken}))(t)
		if got := w.take(t).RunId; got != again {
			t.Errorf("while the holder sleeps %s is handed out, want %s", got, again)
		}
	})
}

func TestKeysHoldWithTheSDK(t *testing.T) {
	eachPair(t, jumpy, func(t *testing.T, one, other *Server) {
		var mu sync.Mutex
		now, most := map[string]int{}, map[string]int{}
		for _, server := range []*Server{one, other, one} {
			server.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
				kagzi.Handle(w, "exclusive", func(ctx kagzi.Context, key string) (int, error) {
					for i := range 2 {
						if _, err := kagzi.Step(ctx, fmt.Sprint(i), func(context.Context) (int, error) {
							mu.Lock()
							now[key]++
							most[key] = max(most[key], now[key])
							mu.Unlock()
							<-time.After(time.Millisecond)
							mu.Lock()
							now[key]--
							mu.Unlock()
							return 0, nil
						}); err != nil {
							return 0, err
						}
						kagzi.Sleep(ctx, fmt.Sprintf("nap-%d", i), 2*time.Millisecond)
					}
					return 0, nil
				})
			})
		}
		ctx, c := within(t, time.Minute), one.client(t)
		keys := make([]string, 27)
		for i := range keys {
			keys[i] = fmt.Sprint(i % 3)
		}
		runs := fine(kagzi.StartMany(ctx, c, "exclusive", keys, kagzi.StartOptions{},
			func(i int, o *kagzi.StartOptions) {
				o.ConcurrencyKey, o.ConcurrencyLimit = keys[i], i%3+1
			}))(t)
		for _, run := range runs {
			fine(kagzi.Result[int](ctx, run))(t)
		}
		losses := 0 // code that lost its lease may run beside that of the next run
		for _, run := range runs {
			losses += int(one.get(t, run.ID()).LeaseLosses)
		}
		for i, key := range []string{"0", "1", "2"} {
			if most[key] > i+1 || most[key] == 0 {
				t.Errorf("%d runs of key %s ran at a time, want %d at most; %d leases were lost", most[key], key,
					i+1, losses)
			}
		}
	})
}

func TestOpenRunsOfAKeyKeepToItsLimitOnSeveralServers(t *testing.T) {
	eachPair(t, jumpy, func(t *testing.T, one, other *Server) {
		type job struct {
			Key string
			Leg int
		}
		var mu sync.Mutex
		now, most := map[string]int{}, map[string]int{}
		count := func(key string, by int) func(context.Context) error {
			return func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				now[key] += by
				most[key] = max(most[key], now[key])
				return nil
			}
		}
		for _, server := range []*Server{one, other, one} {
			server.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
				kagzi.Handle(w, "whole", func(ctx kagzi.Context, j job) (int, error) {
					if j.Leg == 0 {
						if err := kagzi.Do(ctx, "enter", count(j.Key, 1)); err != nil {
							return 0, err
						}
					}
					kagzi.Sleep(ctx, "nap", 2*time.Millisecond)
					if j.Leg < 2 {
						return kagzi.ContinueAsNew[int](ctx, job{j.Key, j.Leg + 1})
					}
					return 0, kagzi.Do(ctx, "leave", count(j.Key, -1))
				})
			})
		}
		ctx, c := within(t, time.Minute), one.client(t)
		jobs := make([]job, 27)
		for i := range jobs {
			jobs[i].Key = fmt.Sprint(i % 3)
		}
		runs := fine(kagzi.StartMany(ctx, c, "whole", jobs, kagzi.StartOptions{ConcurrencyScope: kagzi.ScopeOpen},
			func(i int, o *kagzi.StartOptions) {
				o.ConcurrencyKey, o.ConcurrencyLimit = jobs[i].Key, i%3+1
			}))(t)
		for _, run := range runs {
			fine(kagzi.Result[int](ctx, run))(t)
		}
		for i, key := range []string{"0", "1", "2"} {
			if most[key] > i+1 || most[key] == 0 || now[key] != 0 {
				t.Errorf("%d runs of key %s were open at a time and %d are in the end, want %d at most and none",
					most[key], key, now[key], i+1)
			}
		}
	})
}

func TestPriorities(t *testing.T) {
	eachServer(t, jumpy, func(t *testing.T, s *Server) {
		w := s.register(t)
		with := func(priority int32) string {
			return s.start(t, func(r *kagziv1.StartWorkflowRequest) { r.Priority = proto.Int32(priority) })
		}
		low := with(-100)
		with(-100)
		s.Jump(time.Hour)
		var urgent []string
		for range engine.ClaimByAgeEvery {
			urgent = append(urgent, with(100))
		}
		for i := range engine.ClaimByAgeEvery - 1 {
			if got := w.take(t).RunId; got != urgent[i] {
				t.Fatalf("run %d handed out is %s, want the urgent one, however long the others wait", i, got)
			}
		}
		if got := w.take(t).RunId; got != low {
			t.Errorf("the eighth run handed out is %s, want the one that has been due longest", got)
		}
		if got := w.take(t).RunId; got != urgent[len(urgent)-1] {
			t.Errorf("the ninth run handed out is %s, want the last urgent one", got)
		}
	})
}
