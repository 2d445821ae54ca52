package kagzi

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// diary is what workflow code did.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) write(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) read() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.lines, ", ")
}

// step records a step's name in the diary when its code runs.
func (d *diary) step(ctx Context, name string) error {
	return Do(ctx, name, func(context.Context) error { d.write(name); return nil })
}

// withCache runs body with a server that resumes runs, and a worker whose workflow "w" waits for a
// signal between two steps. The diary also has when the code begins and ends.
func withCache(t *testing.T, body func(t *testing.T, f *fake, w *Worker, d *diary)) {
	t.Helper()
	withFake(t, func(t *testing.T, f *fake) {
		f.resumes = true
		d := &diary{}
		w := testWorker(f)
		Handle(w, "w", func(ctx Context, _ int) (int, error) {
			d.write("begin")
			defer d.write("end")
			if err := d.step(ctx, "a"); err != nil {
				return 0, err
			}
			n, err := WaitSignal[int](ctx, "go", 0)
			if err != nil {
				return 0, err
			}
			return n, d.step(ctx, "b")
		})
		body(t, f, w, d)
	})
}

// untilParked waits until a run is parked.
func (f *fake) untilParked(t *testing.T, run string) {
	t.Helper()
	f.until(t, func() bool { return f.runs[run].Status == kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING })
	time.Sleep(time.Millisecond) // the worker has the answer
}

// give sends a signal to a parked run.
func (f *fake) give(run string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.runs[run]
	r.signals = append(r.signals, &kagziv1.Signal{Name: "go", Payload: &kagziv1.Payload{Data: []byte("7")}})
	f.wake(r)
	f.pump()
}

func (f *fake) wholeHistories() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.whole
}

func TestAParkedRunGoesOnFromWhatHappenedMeanwhile(t *testing.T) {
	withCache(t, func(t *testing.T, f *fake, w *Worker, d *diary) {
		running(t, w)
		f.start("r", "w", "0")
		f.untilParked(t, "r")
		equal(t, w.Active(), 0)
		f.give("r")
		equal(t, string(f.await(t, "r").Output.GetData()), "7")
		time.Sleep(time.Second)
		equal(t, d.read(), "begin, a, b, end")
		equal(t, f.wholeHistories(), 0)
	})
}

// Race 2: the worker has what it parked under another lease, or nothing any more.
func TestADeltaOfAnotherLeaseIsNotForTheCodeInMemory(t *testing.T) {
	for name, spoil := range map[string]func(*kagziv1.Task){
		"another lease":        func(t *kagziv1.Task) { t.Base = strings.Replace(t.Base, "lease", "other", 1) },
		"another watermark":    func(t *kagziv1.Task) { t.OwedFrom += 100 },
		"more than the record": func(t *kagziv1.Task) { t.NextHistoryToken = "1" },
	} {
		t.Run(name, func(t *testing.T) {
			withCache(t, func(t *testing.T, f *fake, w *Worker, d *diary) {
				f.spoil = func(t *kagziv1.Task) {
					if t.Base != "" {
						spoil(t)
					}
				}
				running(t, w)
				f.start("r", "w", "0")
				f.untilParked(t, "r")
				f.give("r")
				equal(t, string(f.await(t, "r").Output.GetData()), "7")
				time.Sleep(time.Second)
				lines := strings.Split(d.read(), ", ")
				slices.Sort(lines)
				equal(t, strings.Join(lines, ", "), "a, b, begin, begin, end, end")
				equal(t, f.wholeHistories(), 1)
			})
		})
	}
}

// Race 3: the run is due again at once, and its task overtakes the answer that parks it.
func TestATaskThatOvertakesTheAnswerOfTheParkIsHandedOver(t *testing.T) {
	withCache(t, func(t *testing.T, f *fake, w *Worker, d *diary) {
		f.parked = func(r *fakeRun) {
			f.parked = nil
			r.signals = append(r.signals, &kagziv1.Signal{Name: "go", Payload: &kagziv1.Payload{Data: []byte("7")}})
			f.wake(r)
			f.pump()
		}
		running(t, w)
		f.start("r", "w", "0")
		equal(t, string(f.await(t, "r").Output.GetData()), "7")
		time.Sleep(time.Second)
		equal(t, d.read(), "begin, a, b, end")
		equal(t, f.wholeHistories(), 0)
		f.mu.Lock()
		defer f.mu.Unlock()
		equal(t, f.sessions[0].credit, 100)
	})
}

// A heartbeat between the answer to a park and the next stay names that one's lease: the server gives
// away what a worker does not name.
func TestATaskThatOvertakesTheAnswerOfTheParkIsNamedUntilItBegins(t *testing.T) {
	withCache(t, func(t *testing.T, f *fake, w *Worker, d *diary) {
		early := ""
		f.spoil = func(t *kagziv1.Task) {
			if t.Base != "" { // so that the code does not fit, which is logged before the next stay begins
				t.OwedFrom += 100
				early = t.LeaseToken
			}
		}
		named := ""
		w.log = slog.New(onLog(func(r slog.Record) {
			if strings.HasPrefix(r.Message, "the code in memory does not fit") {
				w.mu.Lock()
				for _, l := range w.leases() {
					named += l.LeaseToken
				}
				w.mu.Unlock()
			}
		}))
		f.parked = func(r *fakeRun) {
			f.parked = nil
			r.signals = append(r.signals, &kagziv1.Signal{Name: "go", Payload: &kagziv1.Payload{Data: []byte("7")}})
			f.wake(r)
			f.pump()
		}
		running(t, w)
		f.start("r", "w", "0")
		equal(t, string(f.await(t, "r").Output.GetData()), "7")
		time.Sleep(time.Second)
		equal(t, named, early)
		f.mu.Lock()
		defer f.mu.Unlock()
		equal(t, f.sessions[0].credit, 100)
	})
}

// onLog is a handler of log records.
type onLog func(slog.Record)

func (onLog) Enabled(context.Context, slog.Level) bool        { return true }
func (h onLog) Handle(_ context.Context, r slog.Record) error { h(r); return nil }
func (h onLog) WithAttrs([]slog.Attr) slog.Handler            { return h }
func (h onLog) WithGroup(string) slog.Handler                 { return h }

// Race 4: code that is not parked in a call waits for the lease.
func TestNoCallOfAParkedRunTakesEffectWithoutALease(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake) {
		f.resumes = true
		d := &diary{}
		w := testWorker(f)
		Handle(w, "w", func(ctx Context, _ int) (int, error) {
			late := make(chan error, 1)
			go func() {
				time.Sleep(time.Minute) // the run is parked by then
				late <- d.step(ctx, "late")
			}()
			if _, err := WaitSignal[int](ctx, "go", 0); err != nil {
				return 0, err
			}
			return 1, <-late
		})
		running(t, w)
		f.start("r", "w", "0")
		f.untilParked(t, "r")
		time.Sleep(5 * time.Minute)
		equal(t, d.read(), "")
		f.give("r")
		equal(t, string(f.await(t, "r").Output.GetData()), "1")
		equal(t, d.read(), "late")
		equal(t, f.wholeHistories(), 0)
	})
}

// Race 5: the order of results is that of a replay.
func TestBranchesThatWakeTogetherGetTheirResultsInTheRecordedOrder(t *testing.T) {
	for _, cache := range []int{10, -1} {
		withFake(t, func(t *testing.T, f *fake) {
			f.resumes = true
			d := &diary{}
			w := testWorker(f)
			w.options.Cache = cache
			Handle(w, "w", func(ctx Context, _ int) (int, error) {
				if _, err := Map(ctx, []int{3, 1, 2}, func(ctx Context, n int) (int, error) {
					Sleep(ctx, fmt.Sprint("nap-", n), time.Minute+time.Duration(n)*time.Second)
					d.write(fmt.Sprint(n))
					return n, nil
				}); err != nil {
					return 0, err
				}
				return First(ctx, GoSleep(ctx, "x", 2*time.Minute), GoSleep(ctx, "y", time.Minute)), nil
			})
			running(t, w)
			f.start("r", "w", "0")
			f.untilParked(t, "r")
			for range 2 {
				f.mu.Lock()
				f.runs["r"].available = time.Time{} // nobody claims it until all are over
				f.mu.Unlock()
				time.Sleep(5 * time.Minute)
				f.mu.Lock()
				f.runs["r"].available = f.now()
				f.pump()
				f.mu.Unlock()
				time.Sleep(time.Second)
			}
			r := f.await(t, "r")
			slices.SortFunc(r.steps, func(a, b *kagziv1.Step) int { return cmp.Compare(a.Settled, b.Settled) })
			var recorded []string
			for _, step := range r.steps[:3] {
				recorded = append(recorded, strings.TrimPrefix(step.Name, "nap-"))
			}
			first := map[string]string{"x": "0", "y": "1"}[r.steps[3].Name]
			equal(t, string(r.Output.GetData()), first)
			if got, want := d.read(), strings.Join(recorded, ", "); !strings.HasSuffix(got, want) {
				t.Errorf("with a cache of %d the branches went on in the order %s, want %s", cache, got, want)
			}
			equal(t, f.wholeHistories() == 0, cache > 0)
		})
	}
}

func TestAStepThatNoCallWaitsForIsNoDivergence(t *testing.T) {
	withCache(t, func(t *testing.T, f *fake, w *Worker, d *diary) {
		f.spoil = func(t *kagziv1.Task) {
			if t.Base != "" {
				t.History = append(t.History, &kagziv1.Step{Name: "a", Kind: kagziv1.StepKind_STEP_KIND_FUNCTION,
					Status: kagziv1.StepStatus_STEP_STATUS_COMPLETED, Settled: 9})
			}
		}
		running(t, w)
		f.start("r", "w", "0")
		f.untilParked(t, "r")
		f.give("r")
		equal(t, string(f.await(t, "r").Output.GetData()), "7")
		equal(t, f.wholeHistories(), 1)
		f.mu.Lock()
		defer f.mu.Unlock()
		equal(t, len(f.reports), 0)
	})
}

// Race 6: a run that ended elsewhere never comes back.
func TestRunsInMemoryEndWhenTheirTimeIsOverOrTheWorkerDrains(t *testing.T) {
	for name, end := range map[string]func(w *Worker){
		"time":  func(*Worker) { time.Sleep(cacheTime) },
		"drain": func(w *Worker) { w.askDrain(); time.Sleep(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			withCache(t, func(t *testing.T, f *fake, w *Worker, d *diary) {
				running(t, w)
				f.start("r", "w", "0")
				f.untilParked(t, "r")
				equal(t, d.read(), "begin, a")
				equal(t, len(w.all()), 0) // so no heartbeat names it
				end(w)
				equal(t, d.read(), "begin, a, end")
			})
		})
	}
}

func TestAHintDuringAQuestionIsAskedAbout(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake) {
		w := testWorker(f)
		Handle(w, "w", func(ctx Context, _ int) (int, error) {
			work := Go(ctx, func(ctx Context) (int, error) {
				return Step(ctx, "work", func(ctx context.Context) (int, error) { time.Sleep(5 * time.Second); return 1, nil })
			})
			began := time.Now()
			if _, err := WaitSignal[int](ctx, "go", 0); err != nil {
				return 0, err
			}
			took := time.Since(began)
			_, err := work.Wait(ctx)
			return int(took / time.Millisecond), err
		})
		asked := 0
		f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
			if r.GetAwaitSignal() == nil {
				return nil
			}
			run := f.runs["r"]
			switch asked++; asked {
			case 1: // the hint overtakes the answer
				run.session.send(&kagziv1.SessionResponse{Event: &kagziv1.SessionResponse_WaitOver{
					WaitOver: &kagziv1.WaitOver{RunId: "r", LeaseToken: run.token, StepName: "go"}}})
			case 2:
				run.signals = append(run.signals, &kagziv1.Signal{Name: "go",
					Payload: &kagziv1.Payload{Data: []byte("7")}})
			}
			return nil
		}
		running(t, w)
		f.start("r", "w", "0")
		if took := string(f.await(t, "r").Output.GetData()); len(took) > 1 {
			t.Errorf("the signal was received after %s ms, want less than 10", took)
		}
	})
}

// Race 7: what the runs hold is bounded.
func TestTheCacheIsBoundedByNumberAndBytes(t *testing.T) {
	for name, limit := range map[string]func(o *WorkerOptions){
		"number": func(o *WorkerOptions) { o.Cache = 2 },
		"bytes":  func(o *WorkerOptions) { o.CacheBytes = 2*(1<<20+cacheOverhead) + 100 },
	} {
		t.Run(name, func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				f.resumes = true
				d := &diary{}
				w := testWorker(f)
				limit(&w.options)
				Handle(w, "w", func(ctx Context, in string) (int, error) {
					defer d.write(in[:1])
					return WaitSignal[int](ctx, "go", 0)
				})
				running(t, w)
				for _, run := range []string{"1", "2", "3", "4"} {
					f.start("r"+run, "w", `"`+run+strings.Repeat("x", 1<<20)+`"`)
					f.untilParked(t, "r"+run)
				}
				equal(t, d.read(), "1, 2")
			})
		})
	}
}
