package rest

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// fakeDeliverer has one hook, "known", and takes deliveries with the header X-Good.
type fakeDeliverer struct {
	started  []*kagziv1.Payload
	verified func(ctx context.Context, header http.Header, body []byte)
	wait     chan struct{} // until then a delivery is being started; nil: not
	mu       sync.Mutex
}

func (f *fakeDeliverer) VerifyDelivery(ctx context.Context, hook string, header http.Header,
	body []byte) (string, error) {
	if f.verified != nil {
		f.verified(ctx, header, body)
	}
	if hook != "known" || header.Get("X-Good") == "" {
		return "", &engine.Error{Kind: engine.KindNoKey, Message: "no"}
	}
	return hook, nil
}

func (f *fakeDeliverer) Start(_ context.Context, _ string, input *kagziv1.Payload) (*kagziv1.StartWorkflowResponse,
	error) {
	if f.wait != nil {
		<-f.wait
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = append(f.started, input)
	return &kagziv1.StartWorkflowResponse{RunId: "r"}, nil
}

// hooksOf returns the handler of a fake behind the gate of a server without keys on loopback.
func hooksOf(t *testing.T, f *fakeDeliverer) http.Handler {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	gate, err := NewGate(GateOptions{Loopback: true, Keyless: func(context.Context) bool { return true }, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return gate.Signed(Hooks(f, log))
}

// deliver sends a delivery with headers such as "Name: value".
func deliver(h http.Handler, verb, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(verb, "http://kagzi.example"+path, strings.NewReader(body))
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestAHooksBodyIsTheInputOfItsRun(t *testing.T) {
	const number = `{"n":3544790567247868102,"a":[1.0, 2e5]}`
	for name, c := range map[string]struct {
		kind, body string
		want       string // of the input; empty: none
	}{
		"JSON":           {"application/json", number, number},
		"JSON in UTF-8":  {"application/json; charset=utf-8", " " + number + "\n", " " + number + "\n"},
		"a kind of JSON": {"application/vnd.github+json", `[]`, `[]`},
		"a form": {"application/x-www-form-urlencoded", "a=b",
			`{"base64":"YT1i","content_type":"application/x-www-form-urlencoded"}`},
		"bytes":                {"", "\x00\xff", `{"base64":"AP8="}`},
		"JSON of another type": {"text/plain", "{}", `{"base64":"e30=","content_type":"text/plain"}`},
		"a type that is none":  {"\x1b[31m", "x", `{"base64":"eA=="}`},
		"no body":              {"application/json", "", ""},
	} {
		f := &fakeDeliverer{}
		w := deliver(hooksOf(t, f), "POST", "/hooks/known", c.body, "X-Good: 1", "Content-Type: "+c.kind)
		if w.Code != http.StatusOK || w.Body.String() != "{\"runId\":\"r\"}\n" || len(f.started) != 1 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
			continue
		}
		input := f.started[0]
		if string(input.GetData()) != c.want {
			t.Errorf("%s: the input is %s, want %s", name, input.GetData(), c.want)
		}
		if c.want != "" && (!json.Valid(input.Data) || input.Metadata["content-type"] != "application/json") {
			t.Errorf("%s: the input %s is not JSON by its type %v", name, input.Data, input.Metadata)
		}
	}
}

func TestABodyIsRefusedOnlyAfterItsSignature(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"no JSON":       {"{", "is not JSON"},
		"two values":    {"{}{}", "is not JSON"},
		"too deep":      {strings.Repeat("[", 101) + strings.Repeat("]", 101), "nested deeper than 100"},
		"a name twice":  {`{"a":1,"a":2}`, `"a\" occurs twice`},
		"invalid UTF-8": {"\"\xff\"", "UTF-8"},
		"space alone":   {"  ", "is empty"},
	} {
		f := &fakeDeliverer{}
		w := deliver(hooksOf(t, f), "POST", "/hooks/known", c.body, "X-Good: 1", "Content-Type: application/json")
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), c.want) || len(f.started) > 0 ||
			w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s, want 400 with %q", name, w.Code, w.Body, c.want)
		}
		if w := deliver(hooksOf(t, f), "POST", "/hooks/known", c.body, "Content-Type: application/json"); w.Code != 401 {
			t.Errorf("%s without a signature: %d, want 401", name, w.Code)
		}
	}
}

func TestAnUnknownHookAndAWrongSignatureAnswerAlike(t *testing.T) {
	f := &fakeDeliverer{}
	long := strings.Repeat("x", maxHookBody+1)
	for _, c := range []struct{ verb, body string }{{"POST", "{}"}, {"POST", ""}, {"POST", long}, {"GET", ""}, {"PUT", "x"},
		{"HEAD", ""}, {"OPTIONS", ""}} {
		bad := deliver(hooksOf(t, f), c.verb, "/hooks/known", c.body, "Content-Type: application/json")
		for _, path := range []string{"/hooks/other", "/hooks/%00", "/hooks/..%2f", "/hooks/%F0%9F", "/hooks/known%20",
			"/hooks/" + strings.Repeat("x", 4000)} {
			unknown := deliver(hooksOf(t, f), c.verb, path, c.body, "Content-Type: application/json", "X-Good: 1")
			if unknown.Code != bad.Code || unknown.Body.String() != bad.Body.String() ||
				len(unknown.Header()) != len(bad.Header()) || unknown.Code < 400 {
				t.Errorf("%s %.40s: %d %s, and with a wrong signature %d %s", c.verb, path, unknown.Code, unknown.Body, bad.Code,
					bad.Body)
			}
		}
	}
	for _, path := range []string{"/hooks/", "/hooks/known/", "/hooks/known/more", "/hooks//known"} {
		if w := deliver(hooksOf(t, f), "POST", path, "{}", "X-Good: 1"); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", path, w.Code)
		}
	}
	w := deliver(hooksOf(t, f), "GET", "/hooks/known", "", "X-Good: 1")
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: %d %v, want 405", w.Code, w.Header())
	}
	if len(f.started) > 0 {
		t.Errorf("%d runs were started", len(f.started))
	}
}

func TestASignedDeliveryComesFromAnyHostAndByAnyProxy(t *testing.T) {
	f := &fakeDeliverer{verified: func(ctx context.Context, header http.Header, _ []byte) {
		if md, _ := metadata.FromIncomingContext(ctx); len(md.Get("traceparent")) != 1 {
			t.Errorf("the trace of the sender is lost: %v", md)
		}
	}}
	w := deliver(hooksOf(t, f), "POST", "/hooks/known", "x", "X-Good: 1", "X-Forwarded-For: 192.0.2.1",
		"Forwarded: for=192.0.2.1", "Origin: null", "Sec-Fetch-Site: cross-site", "Content-Type: text/plain",
		"Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if w.Code != http.StatusOK || w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestAConnectionEndsAfterADeliveryInChunks(t *testing.T) {
	for chunked, want := range map[bool]string{true: "close", false: ""} {
		r := httptest.NewRequest("POST", "http://x/hooks/known", strings.NewReader("{}"))
		r.Header.Set("X-Good", "1")
		if chunked {
			r.TransferEncoding, r.ContentLength = []string{"chunked"}, -1
		}
		w := httptest.NewRecorder()
		hooksOf(t, &fakeDeliverer{}).ServeHTTP(w, r)
		if got := w.Header().Get("Connection"); w.Code != http.StatusOK || got != want {
			t.Errorf("in chunks: %v: %d, Connection %q, want %q", chunked, w.Code, got, want)
		}
	}
}

func TestDeliveriesAtOnceAreLimitedInAllAndByAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeDeliverer{wait: make(chan struct{})}
		busy := Hooks(f, slog.New(slog.DiscardHandler))
		send := func(from string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", "http://x/hooks/known", nil)
			r.RemoteAddr = from + ":1"
			r.Header.Set("X-Good", "1")
			w := httptest.NewRecorder()
			busy.ServeHTTP(w, r)
			return w
		}
		answers := make(chan int, maxDeliveries)
		for _, from := range []string{"192.0.2.1", "192.0.2.2"} {
			for range maxCallerDeliveries {
				go func() { answers <- send(from).Code }()
			}
			synctest.Wait()
			if w := send(from); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
				t.Errorf("one more from %s: %d %v, want 503", from, w.Code, w.Header())
			}
		}
		if w := send("192.0.2.3"); w.Code != http.StatusServiceUnavailable {
			t.Errorf("one more in all: %d, want 503", w.Code)
		}
		close(f.wait)
		for range maxDeliveries {
			if code := <-answers; code != http.StatusOK {
				t.Errorf("a delivery within the limits: %d", code)
			}
		}
		if w := send("192.0.2.1"); w.Code != http.StatusOK {
			t.Errorf("after them: %d", w.Code)
		}
	})
}

func TestABodyOfADeliveryHasToArriveInTime(t *testing.T) {
	for name, c := range map[string]struct {
		head string
		most time.Duration
	}{
		"a short one": {"Content-Length: 10\r\n\r\n{", bodyTime},
		"a long one":  {"Content-Length: 1048576\r\n\r\n{", bodyTime + 16*time.Second},
		"in chunks":   {"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", bodyTime + 16*time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := NewHTTPServer(hooksOf(t, &fakeDeliverer{}), slog.New(slog.DiscardHandler))
			l := &pipes{conns: make(chan net.Conn), over: make(chan struct{})}
			done := make(chan error, 1)
			go func() { done <- s.Serve(l) }()
			slow := l.dial()
			began := time.Now()
			slow.say("POST /hooks/known HTTP/1.1\r\nHost: x\r\nX-Good: 1\r\nContent-Type: application/json\r\n" + c.head)
			r := slow.answer(t)
			if took := time.Since(began); r.StatusCode != http.StatusRequestTimeout || took != c.most {
				t.Errorf("%s: %d after %s, want 408 after %s", name, r.StatusCode, took, c.most)
			}
			_, _ = io.Copy(io.Discard, r.Body)
			slow.Close()
			s.Close()
			<-done
			time.Sleep(time.Second) // of the bubble: package http keeps a connection that it resets for half of that
		})
	}
}
