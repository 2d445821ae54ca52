package e2e

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// watching is a watched namespace: changes arrive over the channel with the time at which they
// came.
type watching struct {
	events chan sighted
}

type sighted struct {
	*kagziv1.WatchEvent
	at time.Time
}

func (s *Server) watch(t testing.TB, namespace string) *watching {
	t.Helper()
	stream := fine(s.admin().Watch(within(t, time.Minute),
		&kagziv1.WatchRequest{Namespace: namespace, Interval: durationpb.New(50 * time.Millisecond)}))(t)
	fine(stream.Recv())(t) // it has begun
	w := &watching{events: make(chan sighted, 1000)}
	go pass(stream, w.events)
	return w
}

func pass(stream grpc.ServerStreamingClient[kagziv1.WatchEvent], to chan<- sighted) {
	for {
		event, err := stream.Recv()
		if err != nil {
			return
		}
		to <- sighted{event, time.Now()}
	}
}

// tells waits for a matching event and returns how long after began it arrived.
func (w *watching) tells(t testing.TB, what string, began time.Time, ok func(*kagziv1.WatchEvent) bool) time.Duration {
	t.Helper()
	for {
		if event := receive(t, "the change of "+what, w.events); ok(event.WatchEvent) {
			return event.at.Sub(began)
		}
	}
}

func TestAWatcherIsToldAtOnceOfEveryChangeOnAnyServer(t *testing.T) {
	eachPair(t, patient, func(t *testing.T, one, other *Server) {
		ctx := within(t, time.Minute)
		here, elsewhere := other.watch(t, "default"), other.watch(t, "elsewhere")
		var took []time.Duration
		follows := func(what string, began time.Time, ok func(*kagziv1.WatchEvent) bool) {
			t.Helper()
			took = append(took, here.tells(t, what, began, ok))
		}
		began := time.Now()
		run := one.start(t)
		follows("a start", began, func(e *kagziv1.WatchEvent) bool { return e.WorkflowsChanged })
		began = time.Now()
		w := one.register(t)
		follows("a worker", began, func(e *kagziv1.WatchEvent) bool { return e.WorkersChanged })
		stands := func(is func(*kagziv1.Workflow) bool) func(*kagziv1.WatchEvent) bool {
			return func(e *kagziv1.WatchEvent) bool {
				return slices.ContainsFunc(e.Workflows, func(r *kagziv1.Workflow) bool {
					return r.RunId == run && is(r)
				})
			}
		}
		began = time.Now()
		task := w.take(t)
		follows("a claim", began, stands(func(r *kagziv1.Workflow) bool { return r.Status == running }))
		began = time.Now()
		w.completeStep(t, task, "a", "x")
		follows("a step", began, stands(func(r *kagziv1.Workflow) bool { return r.StepCount == 1 }))
		began = time.Now()
		w.complete(t, task, "secret output")
		follows("an end", began, stands(func(r *kagziv1.Workflow) bool {
			return r.Status == completed && r.Output == nil && r.Input == nil
		}))
		began = time.Now()
		schedule := one.schedule(t)
		follows("a schedule", began, func(e *kagziv1.WatchEvent) bool { return e.SchedulesChanged })
		began = time.Now()
		fine(one.schedules().PauseWorkflowSchedule(
			ctx, &kagziv1.PauseWorkflowScheduleRequest{ScheduleId: schedule.ScheduleId}))(t)
		follows("a schedule that is paused", began, func(e *kagziv1.WatchEvent) bool { return e.SchedulesChanged })
		began = time.Now()
		fine(one.namespaces().CreateNamespace(ctx, &kagziv1.CreateNamespaceRequest{Namespace: "another"}))(t)
		follows("a namespace", began, func(e *kagziv1.WatchEvent) bool { return e.NamespacesChanged })
		for i, d := range took {
			if d > promptly {
				t.Errorf("change %d was told after %s, want at most %s", i, d, promptly)
			}
		}
		// A watcher of another namespace sees none of its runs. It then gets the runs that exist
		// there.
		one.start(t, func(r *kagziv1.StartWorkflowRequest) { r.Namespace = "elsewhere" })
		elsewhere.tells(t, "a start elsewhere", began, func(e *kagziv1.WatchEvent) bool {
			if len(e.Workflows) > 0 {
				t.Errorf("another namespace was told of %v", e.Workflows)
			}
			return e.WorkflowsChanged
		})
	})
}

func TestAServerThatIsOnlyWatchedAsksAndWritesNothing(t *testing.T) {
	eachBackend(t, func(t *testing.T, url string) {
		counted := &counting{}
		o := patient
		o.Wrap = func(store engine.Store) engine.Store {
			counted.store = store
			return counted
		}
		s := New(t, openStore(t, url), o)
		for range 20 {
			s.watch(t, "default")
		}
		counted.settle(t, url)
		calls, files := counted.calls.Load(), filesOf(t, url)
		<-time.After(2 * time.Second) // of nothing
		if n := counted.calls.Load() - calls; n != 0 {
			t.Errorf("%d calls of the store in two idle seconds with twenty watchers, want none", n)
		}
		for name, after := range filesOf(t, url) {
			if before := files[name]; after != before {
				t.Errorf("%s was %+v and is %+v", name, before, after)
			}
		}
	})
}

func TestWhatAServerDidIsInItsActivityItsEventsAndItsMethods(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		events := fine(s.admin().WatchEvents(ctx, &kagziv1.WatchEventsRequest{}))(t)
		w := s.register(t)
		good, bad := s.start(t), s.start(t)
		for range 2 {
			task := w.take(t)
			w.completeStep(t, task, "a", "x")
			if task.RunId == good {
				w.complete(t, task, "fine")
				continue
			}
			fine(s.workers().FailWorkflow(ctx, &kagziv1.FailWorkflowRequest{
				RunId: bad, LeaseToken: task.LeaseToken,
				Error: &kagziv1.ErrorDetail{Message: "the kiln is cold", NonRetryable: true}}))(t)
		}
		for deadline := time.Now().Add(20 * time.Second); ; { // a second is reported when it is over
			var started, done, failed, steps int64
			for _, p := range fine(s.admin().GetActivity(ctx, &kagziv1.GetActivityRequest{}))(t).Points {
				started, done, failed, steps = started+p.RunsStarted, done+p.RunsCompleted, failed+p.RunsFailed,
					steps+p.StepsCompleted
			}
			if started == 2 && done == 1 && failed == 1 && steps == 2 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("activity: %d started, %d completed, %d failed, %d steps, want 2, 1, 1 and 2", started, done,
					failed, steps)
			}
			<-time.After(100 * time.Millisecond)
		}
		info := fine(s.admin().GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{}))(t)
		if !slices.ContainsFunc(info.Methods, func(m *kagziv1.MethodStats) bool {
			return m.Method == "WorkflowService/StartWorkflow" && m.Calls == 2 && m.Errors == 0
		}) {
			t.Errorf("methods are %v, want two starts", info.Methods)
		}
		if !slices.ContainsFunc(info.Facts, func(f *kagziv1.ServerFact) bool {
			return f.Section == "database" && f.Value != ""
		}) {
			t.Errorf("facts are %v, want some of the database", info.Facts)
		}
		for last := int64(0); ; {
			event := fine(events.Recv())(t)
			if event.Sequence <= last {
				t.Fatalf("event %d comes after %d", event.Sequence, last)
			}
			last = event.Sequence
			if slices.ContainsFunc(event.Attributes, func(a *kagziv1.EventAttribute) bool { return a.Value == bad }) &&
				slices.ContainsFunc(event.Attributes, func(a *kagziv1.EventAttribute) bool {
					return a.Value == "the kiln is cold"
				}) {
				return
			}
		}
	})
}

// BenchmarkChangeToWatcher measures the time from a change to the event at a watcher, on another
// server where there can be one.
func BenchmarkChangeToWatcher(b *testing.B) {
	for _, backend := range []string{"sqlite", "postgres"} {
		b.Run(backend, func(b *testing.B) {
			url := freshURL(b, backend)
			one := New(b, openStore(b, url), patient)
			other := one
			if backend == "postgres" {
				other = New(b, openStore(b, url), patient)
			}
			benchWatcher(b, one, other)
		})
	}
}

func benchWatcher(b *testing.B, one, other *Server) {
	watcher := other.watch(b, "default")
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		run := one.start(b, ofQueue("watched"))
		watcher.tells(b, "a start", began, func(e *kagziv1.WatchEvent) bool { return e.WorkflowsChanged })
		began = time.Now()
		fine(one.workflows().TerminateWorkflow(b.Context(), &kagziv1.TerminateWorkflowRequest{RunId: run}))(b)
		took = append(took, watcher.tells(b, "an end", began, func(e *kagziv1.WatchEvent) bool {
			return slices.ContainsFunc(e.Workflows, func(r *kagziv1.Workflow) bool { return r.RunId == run })
		}))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
