package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// idleServer is a server with a hundred waiting workers whose next heartbeat is a minute away.
func idleServer(t testing.TB, url string) (*Server, *counting) {
	t.Helper()
	counted := &counting{}
	o := patient
	o.Wrap = func(store engine.Store) engine.Store {
		counted.store = store
		return counted
	}
	s := New(t, openStore(t, url), o)
	var beats sync.WaitGroup // the server batches them for a quarter of a second
	for range 100 {
		w := s.session(t)
		w.grant(10)
		beats.Go(func() { w.beat() })
	}
	beats.Wait()
	return s, counted
}

// settle waits until the store is idle: no call is in flight (each may cause another), none starts
// for a moment, and no file is written meanwhile.
func (c *counting) settle(t testing.TB, url string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		calls, files := c.calls.Load(), filesOf(t, url)
		<-time.After(300 * time.Millisecond)
		if c.over.Load() == calls && c.calls.Load() == calls && maps.Equal(filesOf(t, url), files) {
			return
		}
	}
	t.Fatalf("the store is never left alone: %d calls have begun, %d are over", c.calls.Load(), c.over.Load())
}

func TestAnIdleServerAsksAndWritesNothing(t *testing.T) {
	eachBackend(t, func(t *testing.T, url string) {
		s, counted := idleServer(t, url)
		counted.settle(t, url)
		calls, files := counted.calls.Load(), filesOf(t, url)
		<-time.After(2 * time.Second) // of nothing
		if n := counted.calls.Load() - calls; n != 0 {
			t.Errorf("%d calls of the store in two idle seconds with a hundred workers, want none", n)
		}
		for name, after := range filesOf(t, url) {
			if before := files[name]; after != before {
				t.Errorf("%s was %+v and is %+v", name, before, after)
			}
		}
		began := time.Now()
		s.start(t)
		if took := time.Since(began); took > promptly {
			t.Errorf("a start took %s after that", took)
		}
		counted.settle(t, url)
		// The start, and one claim that all hundred share; a repeated notification may cost one
		// more claim.
		if n := counted.calls.Load() - calls; n > 4 {
			t.Errorf("one start with a hundred waiting workers took %d calls of the store", n)
		}
	})
}

// fileState changes when a file is written.
type fileState struct {
	size     int64
	modified time.Time
}

// filesOf returns the state of an embedded database's files; none for other databases.
func filesOf(t testing.TB, url string) map[string]fileState {
	t.Helper()
	files := map[string]fileState{}
	if path, ok := cutSQLite(url); ok {
		found, err := filepath.Glob(path + "*")
		if err != nil || len(found) == 0 {
			t.Fatalf("no files of %s: %v", path, err)
		}
		for _, name := range found {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			files[filepath.Base(name)] = fileState{info.Size(), info.ModTime()}
		}
	}
	return files
}

// BenchmarkIdle measures what an idle server costs: store calls per second with a hundred waiting
// workers.
func BenchmarkIdle(b *testing.B) {
	for _, backend := range []string{"sqlite", "postgres"} {
		b.Run(backend, func(b *testing.B) {
			url := freshURL(b, backend)
			_, counted := idleServer(b, url)
			counted.settle(b, url)
			before := counted.calls.Load()
			for b.Loop() {
				<-time.After(time.Second)
			}
			b.ReportMetric(float64(counted.calls.Load()-before)/float64(b.N), "calls/s")
		})
	}
}
