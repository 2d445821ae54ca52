package rest

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// silent is a stream without messages.
func silent(ctx context.Context, _ proto.Message) error {
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

func TestAQuietStreamLivesByComments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := servePipes(t, &fakeServer{next: silent})
		c := l.dial()
		began := time.Now()
		c.get("/v1/watch")
		r := c.answer(t)
		for name, want := range map[string]string{"Content-Type": "text/event-stream", "X-Accel-Buffering": "no",
			"Cache-Control": "no-store"} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		text := make([]byte, len(": open\n\n")+5*len(":\n\n")) // longer than the write timeout of a server
		if _, err := io.ReadFull(r.Body, text); err != nil || string(text) != ": open\n\n"+strings.Repeat(":\n\n", 5) {
			t.Fatalf("%q, %v", text, err)
		}
		if took := time.Since(began); took != firstWait+5*commentEvery && took != 5*commentEvery {
			t.Errorf("5 comments took %s, want one each %s", took, commentEvery)
		}
		c.Close()
	})
}

func TestASlowReaderIsLeftAndHoldsNoStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		l := servePipes(t, &fakeServer{next: func(ctx context.Context, _ proto.Message) error {
			context.AfterFunc(ctx, func() {
				select {
				case <-ended:
				default:
					close(ended)
				}
			})
			return nil // an event without end
		}})
		c := l.dial()
		began := time.Now()
		c.get("/v1/watch")
		c.answer(t) // and read no more
		<-ended
		if took := time.Since(began); took < writeTime || took > writeTime+time.Second {
			t.Errorf("the stream ended after %s, want %s", took, writeTime)
		}
	})
}

func TestAnErrorWithinAStreamIsAnEventOfItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want []string
		not  string
	}{
		"the end": {io.EOF, []string{"data: {\"schedulesChanged\":true}\n\nevent: end\ndata: {}\n\n"}, "problem"},
		"a stop": {(&wire.Errors{}).Status(wire.ErrStopping), []string{"true}\n\nretry: ", "\nevent: problem\ndata: {",
			`"status":503`, `"grpcStatus":"UNAVAILABLE"`, "}\n\n"}, "event: end"},
		"a key that ended": {status.Error(codes.Unauthenticated, "gone"), []string{"true}\n\nevent: problem\ndata: {",
			`"status":401`, "}\n\n"}, "retry:"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := true
				l := servePipes(t, &fakeServer{next: func(_ context.Context, m proto.Message) error {
					if !first {
						return c.err
					}
					first, m.(*kagziv1.WatchEvent).SchedulesChanged = false, true
					return nil
				}})
				conn := l.dial()
				conn.get("/v1/watch")
				text := body(t, conn.answer(t))
				for _, want := range c.want {
					if !strings.Contains(text, want) {
						t.Errorf("%q, want %q in it", text, want)
					}
				}
				if strings.Contains(text, c.not) {
					t.Errorf("%q has %q", text, c.not)
				}
				conn.Close()
			})
		})
	}
}

func TestAStreamThatIsRefusedHasAStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := servePipes(t, &fakeServer{next: func(context.Context, proto.Message) error {
			return (&wire.Errors{}).Status(engine.RunNotFound(engine.ID{}))
		}})
		c := l.dial()
		c.get("/v1/workflows/x:watch")
		if r := c.answer(t); r.StatusCode != 404 || r.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%d %s", r.StatusCode, body(t, r))
		}
		c.Close()
	})
}

func TestEventsOfTheServerGoOnAfterTheLastOne(t *testing.T) {
	at := time.Unix(5, 7)
	if got := eventID(&kagziv1.ServerEvent{Sequence: 12, At: timestamppb.New(at)}); got != "id: 12.5000000007\n" {
		t.Errorf("id = %q", got)
	}
	var r kagziv1.WatchEventsRequest
	if err := resume(&r, "12.5000000007"); err != nil || r.After != 12 || !r.AfterAt.AsTime().Equal(at) {
		t.Errorf("%v, %v", &r, err)
	}
	for _, id := range []string{"x", "1", "-1.5", "1.-5", "99999999999999999999.1", "1.1.1"} {
		if err := resume(&r, id); engine.KindOf(err) != engine.KindInvalid {
			t.Errorf("%s: %v, want INVALID", id, err)
		}
	}
	if err := resume(&kagziv1.WatchRequest{}, "x"); err != nil {
		t.Errorf("a stream that begins again: %v", err)
	}
}

func TestALongPollLivesLongerThanTheServersTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := servePipes(t, &fakeServer{invoke: func(ctx context.Context, _ string, _, reply proto.Message) error {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				return ctx.Err()
			}
			reply.(*kagziv1.WaitWorkflowResponse).Finished = true
			return nil
		}})
		c := l.dial()
		began := time.Now()
		c.get("/v1/workflows/x/result?wait=60s")
		r := c.answer(t)
		if text := body(t, r); r.StatusCode != 200 || text != "{\"finished\":true}\n" || time.Since(began) != time.Minute {
			t.Errorf("%d after %s", r.StatusCode, time.Since(began))
		}
		c.Close()
	})
}

func TestACallEndsWhenItsClientHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		l := servePipes(t, &fakeServer{invoke: func(ctx context.Context, _ string, _, _ proto.Message) error {
			<-ctx.Done()
			close(ended)
			return ctx.Err()
		}})
		c := l.dial()
		c.get("/v1/workflows/x/result")
		synctest.Wait()
		c.Close()
		<-ended
	})
}

func TestABodyThatDoesNotArriveIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		header, piece string
		want          time.Duration
	}{
		"a small one":           {"Content-Length: 10000", "{", bodyTime},
		"a large one":           {"Content-Length: 6400000", "{", bodyTime + 97*time.Second},
		"one of unknown length": {"Transfer-Encoding: chunked", "1\r\n{\r\n", bodyTime + maxBody/slowest*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := servePipes(t, &fakeServer{})
				conn := l.dial()
				began, done := time.Now(), make(chan struct{})
				go func() {
					defer close(done)
					conn.say("POST /v1/workflows HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
						c.header + "\r\n\r\n")
					for { // a byte each second
						if _, err := io.WriteString(conn, c.piece); err != nil {
							return
						}
						time.Sleep(time.Second)
					}
				}()
				r := conn.answer(t)
				if took := time.Since(began); r.StatusCode != http.StatusRequestTimeout || took != c.want {
					t.Errorf("%d after %s, want 408 after %s: %s", r.StatusCode, took, c.want, body(t, r))
				}
				conn.Close()
				<-done
			})
		})
	}
}

func TestAKeyIsCheckedBeforeTheBodyIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := servePipes(t, &fakeServer{refuse: (&wire.Errors{}).Status(&engine.Error{Kind: engine.KindNoKey, Message: "no"})})
		c := l.dial()
		began := time.Now()
		c.say("POST /v1/workflows HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
			"Content-Length: 5000000\r\nExpect: 100-continue\r\n\r\n")
		r := c.answer(t)
		if r.StatusCode != 401 || r.Header.Get("WWW-Authenticate") == "" || time.Since(began) > 0 {
			t.Errorf("%d after %s", r.StatusCode, time.Since(began))
		}
		c.Close()
	})
}

// TestIdleReadersCostLittle opens 10,000 streams that nobody reads: 100 of the address are served,
// the others refused. The test states the memory of one.
func TestIdleReadersCostLittle(t *testing.T) {
	const n, most = 10_000, 64 << 10
	synctest.Test(t, func(t *testing.T) {
		l := servePipes(t, &fakeServer{next: silent})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		codes := map[int]int{}
		conns := make([]*client, n)
		for i := range conns {
			conns[i] = l.dial()
			conns[i].get("/v1/watch")
			codes[conns[i].answer(t).StatusCode]++
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if codes[200] != maxCallerStreams || codes[503] != n-maxCallerStreams {
			t.Errorf("statuses %v, want %d streams and 503 beyond", codes, maxCallerStreams)
		}
		each := (int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse)) / n
		t.Log("bytes of a connection with both of its ends: " + strconv.FormatInt(each, 10))
		if each > most {
			t.Errorf("a connection takes %d bytes with both of its ends, want at most %d", each, most)
		}
		for _, c := range conns {
			c.Close()
		}
	})
}
