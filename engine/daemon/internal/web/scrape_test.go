package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
	"github.com/kagzi/kagzi/engine/server"
)

// faked are figures set by the test.
type faked struct {
	mu      sync.Mutex
	asked   int
	reading server.Reading
	err     error
}

func (f *faked) Metrics() server.Metrics {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return server.Metrics{}
}

func (f *faked) Read(context.Context) (server.Reading, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return f.reading, f.err
}

func (f *faked) Healthy(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return f.err
}

// families returns the names of Kagzi's own metrics with their number of series.
func families(t *testing.T, f *faked, log *slog.Logger) func() map[string]int {
	r := newRegistry(newScraper(f, "v1", log))
	return func() map[string]int {
		t.Helper()
		gathered, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]int{}
		for _, family := range gathered {
			if strings.HasPrefix(family.GetName(), "kagzi_") {
				found[family.GetName()] = len(family.Metric)
			}
		}
		return found
	}
}

func TestNothingIsReadWithoutAScrape(t *testing.T) {
	f := &faked{}
	families(t, f, slog.New(slog.DiscardHandler))
	if f.asked != 0 {
		t.Errorf("asked %d times, want none", f.asked)
	}
}

func TestADatabaseThatCannotBeReadIsToldOnceAndItsMetricsAreMissing(t *testing.T) {
	lines := make(chan string, 10)
	f := &faked{err: errors.New("no answer")}
	collect := families(t, f, output.NewLog(toChannel(lines), slog.LevelInfo, "text"))
	missing := collect()
	for _, m := range allMetrics {
		name := regexp.MustCompile(`kagzi_\w+`).FindString(m.desc.String())
		if m.held == (missing[name] > 0) && !strings.HasPrefix(name, "kagzi_api_") &&
			name != "kagzi_notifications_total" {
			t.Errorf("%s has %d series while the database cannot be read", name, missing[name])
		}
	}
	collect()
	f.err = nil
	if found := collect(); found["kagzi_runs"] != 8 {
		t.Errorf("kagzi_runs has %d series when the database can be read again, want 8", found["kagzi_runs"])
	}
	if n := len(lines); n != 2 {
		t.Fatalf("%d lines are logged, want one when it begins and one when it is over", n)
	}
	if first, last := <-lines, <-lines; !strings.Contains(first, "no answer") || !strings.Contains(last, "again") {
		t.Errorf("log = %s%s", first, last)
	}
}

// hanging are figures of a hanging database, which the server reports as unhealthy and unreadable
// after its timeout.
type hanging struct{ faked }

func (*hanging) Healthy(context.Context) error {
	time.Sleep(4 * time.Second)
	return errors.New("no answer")
}

func (*hanging) Read(context.Context) (server.Reading, error) {
	time.Sleep(8 * time.Second)
	return server.Reading{}, errors.New("no answer")
}

func TestAScrapeOfAHangingDatabaseAnswersInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		collect := newRegistry(newScraper(&hanging{}, "v1", slog.New(slog.DiscardHandler)))
		began := time.Now()
		gathered, err := collect.Gather()
		if err != nil {
			t.Fatal(err)
		}
		const usual = 10 * time.Second // the usual timeout of collectors
		if took := time.Since(began); took >= usual {
			t.Errorf("the answer took %s, and collectors wait for %s", took, usual)
		}
		told := 0
		for _, family := range gathered {
			if name := family.GetName(); name == "kagzi_healthy" || name == "kagzi_database_read" {
				told++
				if value := family.Metric[0].GetGauge().GetValue(); value != 0 {
					t.Errorf("%s = %v, want 0", name, value)
				}
			}
		}
		if told != 2 {
			t.Errorf("%d of 2 metrics are told", told)
		}
	})
}

// queues returns n queues, numbered from first, each with as many pending runs as its number.
func queues(first, n int) []server.QueueReading {
	var list []server.QueueReading
	for i := first; i < first+n; i++ {
		list = append(list, server.QueueReading{Namespace: "n", QueueDepth: engine.QueueDepth{
			Queue: fmt.Sprintf("q%04d", i), Pending: int64(i), OnlineWorkers: 1, Unserved: map[string]int64{"t": 1},
			OldestDue: time.Unix(int64(i+1), 0),
		}})
	}
	return list
}

func TestTheNumberOfQueuesWithMetricsIsBounded(t *testing.T) {
	f := &faked{reading: server.Reading{At: time.Unix(10_000, 0), Queues: queues(0, 5000)}}
	found := families(t, f, slog.New(slog.DiscardHandler))()
	if found["kagzi_queue_runs"] != 3*(maxPlaces+1) || found["kagzi_queue_workers_online"] != maxPlaces+1 {
		t.Errorf("%d and %d series, want those of %d queues and the others", found["kagzi_queue_runs"],
			found["kagzi_queue_workers_online"], maxPlaces)
	}
}

func TestQueuesKeepTheirPlacesAndTheOthersAreOne(t *testing.T) {
	var p places
	placed := func(list []server.QueueReading) map[string]bool {
		names := map[string]bool{}
		for _, q := range list {
			names[q.Queue] = true
		}
		return names
	}
	first := p.assign(queues(0, maxPlaces+3))
	want := server.QueueReading{Namespace: "(others)", QueueDepth: engine.QueueDepth{
		Queue: "(others)", Pending: 0 + 1 + 2, OnlineWorkers: 3, OldestDue: time.Unix(1, 0),
		Unserved: map[string]int64{"(others)": 3},
	}}
	if diff := cmp.Diff(want, first[maxPlaces]); diff != "" {
		t.Errorf("the others (-want +got):\n%s", diff)
	}
	before := placed(first)
	grown := queues(0, maxPlaces+3)
	grown[0].Pending = 1_000_000 // it has no place
	if again := placed(p.assign(grown)); !maps.Equal(before, again) {
		t.Error("a queue that grew took another's place")
	}
	if after := placed(p.assign(append(grown[:1:1], grown[4:]...))); after["q0003"] || !after["q0000"] {
		t.Error("a place that became free was not given to the queue with the most runs")
	}
	if few := p.assign(queues(0, 3)); len(few) != 3 {
		t.Errorf("%d rows of 3 queues, want no others", len(few))
	}
}

type toChannel chan<- string

func (c toChannel) Write(line []byte) (int, error) {
	select {
	case c <- string(line):
	default: // the test needs no more
	}
	return len(line), nil
}
