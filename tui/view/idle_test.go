package view

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gdamore/tcell/v2"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/scenario"
	"github.com/kagzi/kagzi/tui/view/internal/tables"
	"github.com/kagzi/kagzi/tui/widget"
)

// resting is a shop in which nothing happens although its clock runs.
type resting struct {
	tui.API
	offset func() time.Duration
}

func (a resting) at(t *timestamppb.Timestamp) *timestamppb.Timestamp {
	return timestamppb.New(t.AsTime().Add(a.offset()))
}

func (a resting) HealthCheck(ctx context.Context, request *kagziv1.HealthCheckRequest,
	options ...grpc.CallOption) (*kagziv1.HealthCheckResponse, error) {
	answer, err := a.API.HealthCheck(ctx, request, options...)
	if err == nil {
		answer.Timestamp = a.at(answer.Timestamp)
	}
	return answer, err
}

func (a resting) Watch(ctx context.Context, request *kagziv1.WatchRequest,
	options ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.WatchEvent], error) {
	stream, err := a.API.Watch(ctx, request, options...)
	return restingStream{stream, a}, err
}

type restingStream struct {
	grpc.ServerStreamingClient[kagziv1.WatchEvent]
	of resting
}

func (s restingStream) Recv() (*kagziv1.WatchEvent, error) {
	event, err := s.ServerStreamingClient.Recv()
	if err == nil {
		event.At = s.of.at(event.At)
	}
	return event, err
}

// quiet limits the bytes per second of a screen on which nothing happens.
const quiet = 200

func TestAScreenOnWhichNothingHappensCostsLittle(t *testing.T) {
	useXterm(t)
	var commands []string
	synctest.Test(t, func(t *testing.T) {
		w := newShop()
		commands = append(everyView(w), "run "+w.ID(scenario.Failed))
	})
	for _, command := range commands {
		name, _, _ := strings.Cut(command, " ")
		t.Run(name, func(t *testing.T) {
			var start time.Time
			api := func(w *shop) tui.API {
				start = time.Now()
				return resting{w, func() time.Duration { return time.Since(start) }}
			}
			onTerminal(t, newShop, api, command, 120, 32, func(r *fixture, w *shop, tty *memoryTty) {
				r.app.options.Now = func() time.Time { return begin.Add(time.Since(start)) }
				r.pass(10 * time.Second)
				tty.take()
				r.pass(time.Minute)
				got := len(tty.take()) / 60
				t.Logf("%s: %d B/s", command, got)
				if got >= quiet {
					t.Errorf("%d bytes a second, want less than %d", got, quiet)
				}
			})
		})
	}
}

func TestTheProgramAsItRunsCostsLittle(t *testing.T) {
	useXterm(t)
	synctest.Test(t, func(t *testing.T) {
		tty := newMemoryTty(120, 32)
		screen := newXterm(t, tty)
		start, w := time.Now(), newShop()
		elapsed := func() time.Duration { return time.Since(start) }
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error)
		go func() {
			over <- Run(ctx, Options{API: resting{w, elapsed}, Open: "runs", Screen: screen, Now: func() time.Time {
				return begin.Add(elapsed())
			}, Lookup: func(string) (string, bool) { return "", false }})
		}()
		time.Sleep(10 * time.Second) // in the bubble
		if drawn := len(tty.take()); drawn < 1000 {
			t.Errorf("the first screen was %d bytes", drawn)
		}
		time.Sleep(time.Minute)
		if got := len(tty.take()) / 60; got >= quiet {
			t.Errorf("%d bytes a second, want less than %d", got, quiet)
		}
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// simulated is a screen in memory that counts how often it was closed.
type simulated struct {
	tcell.SimulationScreen
	finished int
}

func newSimulated(t *testing.T) *simulated {
	t.Helper()
	screen := tcell.NewSimulationScreen("UTF-8")
	if err := screen.Init(); err != nil {
		t.Fatal(err)
	}
	screen.SetSize(100, 30)
	return &simulated{SimulationScreen: screen}
}

func (s *simulated) Fini() {
	s.finished++
	s.SimulationScreen.Fini()
}

func (s *simulated) press(keys string) {
	for _, key := range keys {
		s.InjectKey(tcell.KeyRune, key, tcell.ModNone)
	}
}

func TestNothingIsLeftRunningAfterQuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails when a goroutine is left
		screen, w := newSimulated(t), newShop()
		go func() {
			for _, key := range "246790?qq" {
				time.Sleep(time.Second) // in the bubble
				w.Advance(time.Second)
				screen.press(string(key))
			}
		}()
		if err := Run(t.Context(), Options{API: w, Now: w.Now, Screen: screen, Lookup: func(string) (string, bool) {
			return "", false
		}}); err != nil {
			t.Fatal(err)
		}
		if screen.finished == 0 {
			t.Error("the terminal was not given back")
		}
	})
}

// faulty is a page that panics when it is drawn, or at a key press.
type faulty struct {
	list
	draws, keys bool
}

func (p *faulty) Title() string { return "faulty" }
func (p *faulty) Show()         {}
func (p *faulty) Hide()         {}

func (p *faulty) Actions() []*Action { return nil }

func (p *faulty) Draw(widget.Canvas) {
	if p.draws {
		panic("while drawing")
	}
}

func (p *faulty) Key(*tcell.EventKey) bool {
	if p.keys {
		panic(errors.New("at a key"))
	}
	return false
}

func TestAPanicGivesTheTerminalBackAndIsReported(t *testing.T) {
	for _, c := range []struct {
		name string
		page faulty
		keys string
		want string
	}{
		{"while a page is drawn", faulty{draws: true}, "", "while drawing"},
		{"at a key", faulty{keys: true}, "z", "at a key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := views
			defer func() { views = before }()
			views = append(views[:len(views):len(views)],
				&entry{name: "faulty", help: "a page with a mistake", open: func(a *App, _ []string) (page, error) {
					p := c.page
					p.list = newList(a, "faulty", tables.RunColumns)
					return &p, nil
				}})
			log := filepath.Join(t.TempDir(), "panic.log")
			screen, w := newSimulated(t), newShop()
			screen.press(c.keys)
			err := Run(t.Context(), Options{API: w, Now: w.Now, Screen: screen, Open: "faulty", Log: log,
				Lookup: func(string) (string, bool) { return "", false }})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), log) {
				t.Fatalf("the error is %v, want %q and where the stack is", err, c.want)
			}
			if screen.finished == 0 {
				t.Error("the terminal was not given back")
			}
			stack, err := os.ReadFile(log)
			if err != nil || !strings.Contains(string(stack), "faulty") {
				t.Fatalf("the log is %q, %v; want the stack", stack, err)
			}
		})
	}
}

// counted is an API that counts the changed runs that it reports.
type changesCounted struct {
	tui.API
	count *int
}

func (a changesCounted) Watch(ctx context.Context, request *kagziv1.WatchRequest,
	options ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.WatchEvent], error) {
	stream, err := a.API.Watch(ctx, request, options...)
	return countingStream{stream, a.count}, err
}

type countingStream struct {
	grpc.ServerStreamingClient[kagziv1.WatchEvent]
	count *int
}

func (s countingStream) Recv() (*kagziv1.WatchEvent, error) {
	event, err := s.ServerStreamingClient.Recv()
	*s.count += len(event.GetWorkflows())
	return event, err
}

// BenchmarkBusy measures what the list of runs costs while several hundred runs change per second.
func BenchmarkBusy(b *testing.B) {
	for _, open := range []string{"runs", "overview"} {
		b.Run(open, func(b *testing.B) {
			useXterm(b)
			tty := newMemoryTty(120, 40)
			screen := newXterm(b, tty)
			w, changes := newShop(), 0
			ctx, cancel := context.WithCancel(b.Context())
			over := make(chan error, 2)
			go func() { w.Run(ctx, 400); over <- nil }()
			go func() {
				over <- Run(ctx, Options{API: changesCounted{w, &changes}, Open: open, Screen: screen, Now: w.Now,
					Lookup: func(string) (string, bool) { return "", false }})
			}()
			<-time.After(time.Second)
			tty.take()
			start, from := time.Now(), changes
			for b.Loop() {
				<-time.After(time.Second)
			}
			seconds := time.Since(start).Seconds()
			b.ReportMetric(float64(len(tty.take()))/seconds, "B/s")
			b.ReportMetric(float64(changes-from)/seconds, "changes/s")
			cancel()
			for range 2 {
				if err := <-over; err != nil {
					b.Error(err)
				}
			}
		})
	}
}

// BenchmarkDrawManyRuns measures a frame of a list of 20,000 runs.
func BenchmarkDrawManyRuns(b *testing.B) {
	for _, size := range []struct{ width, height int }{{80, 24}, {200, 60}} {
		b.Run(fmt.Sprintf("%dx%d", size.width, size.height), func(b *testing.B) {
			screen := tcell.NewSimulationScreen("UTF-8")
			if err := screen.Init(); err != nil {
				b.Fatal(err)
			}
			defer screen.Fini()
			screen.SetSize(size.width, size.height)
			w := theDay.withMore(20_000).open()
			ctx, cancel := context.WithCancel(b.Context())
			a := newApp(ctx, Options{API: w, Open: "runs", Screen: screen, Now: w.Now,
				Lookup: func(string) (string, bool) { return "", false }})
			a.begin()
			defer a.end()
			defer cancel()
			f := newFrame(a)
			f.SetRect(0, 0, size.width, size.height)
			for p := a.trails.top().(*runsPage); p.runs.Len() < 100; {
				<-a.posts.Kick
				a.posts.Run()
				f.Draw(screen)
			}
			for b.Loop() {
				f.Draw(screen)
				screen.Show()
			}
		})
	}
}
