package watch

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// shelf is a store that has every run that it is asked for, in the namespaces that its tests say,
// and counts how often it is asked.
type shelf struct {
	servertest.StubStore
	mu        sync.Mutex
	elsewhere map[engine.ID]string // runs that are not in "default"
	note      string
	slow      time.Duration
	broken    error
	reads     []read
	stop      func() // the server
}

// read is one question for runs.
type read struct {
	at        time.Time
	namespace string
	ids       int
}

func (s *shelf) GetRuns(ctx context.Context, namespace string, ids []engine.ID) ([]engine.Run, error) {
	s.mu.Lock()
	s.reads = append(s.reads, read{time.Now(), namespace, len(ids)})
	slow := s.slow
	s.mu.Unlock()
	time.Sleep(slow) // in a bubble
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil, s.broken
	}
	var runs []engine.Run
	for _, id := range ids {
		if home := s.elsewhere[id]; home == namespace || home == "" && namespace == "default" {
			runs = append(runs, engine.Run{ID: id, Namespace: namespace, Status: engine.RunRunning, Note: s.note})
		}
	}
	return runs, nil
}

func (s *shelf) asked() []read {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]read(nil), s.reads...)
}

func (s *shelf) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// screen is one who watches: the receiving end of a stream, and what came over it when.
type screen struct {
	grpc.ServerStream
	ctx     context.Context
	stop    context.CancelFunc
	done    chan error
	blocked chan struct{} // while it is not nil, sending waits for it

	mu     sync.Mutex
	events []delivery
}

type delivery struct {
	at    time.Time
	event *kagziv1.WatchEvent
}

func (s *screen) Context() context.Context { return s.ctx }

func (s *screen) Send(e *kagziv1.WatchEvent) error {
	s.mu.Lock()
	blocked := s.blocked
	s.events = append(s.events, delivery{time.Now(), e})
	s.mu.Unlock()
	if blocked != nil {
		<-blocked
	}
	return s.ctx.Err()
}

// taken returns what arrived since the last call.
func (s *screen) taken() []delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.events
	s.events = nil
	return taken
}

// watching begins to watch, and takes the first event.
func watching(t *testing.T, s *Service, request *kagziv1.WatchRequest) *screen {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	sc := &screen{ctx: ctx, stop: stop, done: make(chan error, 1)}
	go func() {
		defer close(sc.done)
		sc.done <- s.Watch(request, sc)
	}()
	t.Cleanup(func() {
		stop()
		for range sc.done {
		}
	})
	synctest.Wait()
	first := sc.taken()
	if len(first) != 1 || !changesNothing(first[0].event) {
		t.Fatalf("the first events are %v, want one that only tells the time", first)
	}
	return sc
}

func changesNothing(e *kagziv1.WatchEvent) bool {
	return e.At.IsValid() && proto.Equal(e, &kagziv1.WatchEvent{At: e.At})
}

// inBubble is a server over a shelf, in a bubble.
func inBubble(t *testing.T, tell func(t *testing.T, s *Service, store *shelf)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := &shelf{elsewhere: map[engine.ID]string{}}
		var s *Service
		s, store.stop = newTestWatch(store)
		tell(t, s, store)
	})
}

// pass lets time go by and everything come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func notifyRun(s *Service, n int) {
	s.Notify(engine.Notification{Kind: engine.NotifyRun, ID: servertest.NthID(n)})
}
