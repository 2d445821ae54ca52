package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
)

// announcer is an API whose namespaces tell what the test says.
type announcer struct {
	tui.API
	spaces map[string]chan *kagziv1.WatchEvent // others do not exist
}

func announcing(names ...string) announcer {
	a := announcer{spaces: map[string]chan *kagziv1.WatchEvent{}}
	for _, name := range names {
		a.spaces[name] = make(chan *kagziv1.WatchEvent, 1)
		a.spaces[name] <- &kagziv1.WatchEvent{}
	}
	return a
}

func (announcer) WhoAmI(context.Context, *kagziv1.WhoAmIRequest, ...grpc.CallOption) (*kagziv1.WhoAmIResponse, error) {
	return &kagziv1.WhoAmIResponse{}, nil
}

func (a announcer) Watch(ctx context.Context, r *kagziv1.WatchRequest,
	_ ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.WatchEvent], error) {
	events, known := a.spaces[r.GetNamespace()]
	if !known {
		return nil, status.Error(codes.NotFound, "there is no such namespace")
	}
	return &announced{ctx: ctx, events: events}, nil
}

type announced struct {
	grpc.ClientStream
	ctx    context.Context
	events chan *kagziv1.WatchEvent
}

func (s *announced) Recv() (*kagziv1.WatchEvent, error) {
	select {
	case e, open := <-s.events:
		if !open {
			return nil, status.Error(codes.Unavailable, "the server stops")
		}
		return e, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

// ear is a browser that notes what it is sent.
type ear struct {
	*httptest.ResponseRecorder
	mu   sync.Mutex
	sent []string
}

func (e *ear) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent = append(e.sent, string(p))
	return len(p), nil
}

// taken returns what was sent since the last call.
func (e *ear) taken() []string {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	sent := e.sent
	e.sent = nil
	return sent
}

// hearing opens a stream for namespaces. The result of stop is true if it had ended by itself.
func hearing(t *testing.T, api tui.API, names ...string) (heard *ear, stop func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, "GET", "/live?"+url.Values{"ns": names}.Encode(), nil)
	heard = &ear{ResponseRecorder: httptest.NewRecorder()}
	page := Handler(Options{API: api, Now: func() time.Time { return begin }})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		page.ServeHTTP(heard, r)
	}()
	return heard, func() bool {
		synctest.Wait()
		select {
		case <-ended:
			cancel()
			return true
		default:
		}
		cancel()
		<-ended
		return false
	}
}

// TestNewsAreSentWithoutDelay has a clock that moves only when everybody waits for it, so what is sent
// before it moves was held up by no timer.
func TestNewsAreSentWithoutDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := announcing("default", "shop")
		heard, stop := hearing(t, api, "shop", "default", "shop")
		began := time.Now()
		if first := strings.Join(heard.taken(), ""); !strings.Contains(first, `"live":["default","shop"]`) {
			t.Fatalf("the stream begins with %q", first)
		}
		for i := range 20 {
			id, name := fmt.Sprint("run-", i), []string{"default", "shop"}[i%2]
			api.spaces[name] <- &kagziv1.WatchEvent{Workflows: []*kagziv1.Workflow{{RunId: id}}}
			want := []string{`data: {"ns":"` + name + `","runs":["` + id + `"]}` + "\n\n"}
			if sent := heard.taken(); !slices.Equal(sent, want) {
				t.Errorf("after the change %d %q was sent, want %q", i, sent, want)
			}
		}
		api.spaces["shop"] <- &kagziv1.WatchEvent{}
		if sent := heard.taken(); !slices.Equal(sent, []string{":\n\n"}) {
			t.Errorf("for a sign of life %q was sent", sent)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %s of a clock that moves only when all wait for it", took)
		}
		if stop() {
			t.Error("the stream ended by itself")
		}
	})
}

func TestOneStreamCarriesTheNamespacesThatExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := announcing("default")
		heard, stop := hearing(t, api, "default", "deleted")
		if first := strings.Join(heard.taken(), ""); !strings.Contains(first, `"live":["default"]`) {
			t.Errorf("the stream begins with %q", first)
		}
		close(api.spaces["default"])
		if sent := strings.Join(heard.taken(), ""); !strings.Contains(sent, "event: over\n") {
			t.Errorf("when the server stops, %q was sent", sent)
		}
		if !stop() {
			t.Error("the stream goes on without a namespace")
		}
		for names, want := range map[string]int{"deleted": http.StatusNotFound, "": http.StatusBadRequest,
			strings.Repeat("a,", mostNamespaces+1): http.StatusBadRequest} {
			list := strings.Split(names, ",")
			for i := range list {
				list[i] += strings.Repeat("x", i)
			}
			if names == "" {
				list = nil
			}
			heard, stop := hearing(t, api, list...)
			if stop(); heard.Code != want {
				t.Errorf("a stream of %q = %d, want %d", list, heard.Code, want)
			}
		}
	})
}
