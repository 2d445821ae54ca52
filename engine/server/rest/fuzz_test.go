package rest

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/proto/routes"
)

// FuzzRequest sends any request through the gate to calls that succeed. It looks for one that breaks
// the server, or whose answer is neither JSON, a stream, nor a problem.
func FuzzRequest(f *testing.F) {
	for _, r := range routes.All {
		path := strings.NewReplacer("{", "", "}", "").Replace(r.Path)
		f.Add(r.Verb, path, "namespace=a&page_size=5&tags[k]=v&wait=1s&statuses=1", "{}", "key", "1.5")
	}
	f.Add("POST", "/v1/workflows/a%2Fb%ff:cancel", "%zz", `{"runId":"x"}`, strings.Repeat("k", 65), "x")
	f.Add("GET", "/v1/workflows/..:watch", "page.page_size=1&page_size=1&a[b=c", "", "", "")
	f.Fuzz(func(t *testing.T, verb, path, query, text, key, last string) {
		server := &fakeServer{
			invoke: func(_ context.Context, _ string, request, _ proto.Message) error {
				if n := proto.Size(request); n > engine.MaxMessage {
					t.Errorf("a message of %d bytes", n)
				}
				return nil
			},
			next: func(context.Context, proto.Message) error { return io.EOF },
		}
		log := slog.New(slog.DiscardHandler)
		gate, err := NewGate(GateOptions{Keyless: func(context.Context) bool { return false }, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		api, err := New(server, gate, log)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest(verb, "http://localhost"+path, strings.NewReader(text))
		if err != nil {
			return // package http would not pass it on
		}
		r.URL.RawQuery = query
		r.Header = http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {key}, "Last-Event-Id": {last}}
		w := httptest.NewRecorder()
		gate.Handler(api, Types...).ServeHTTP(w, r)
		switch kind := w.Header().Get("Content-Type"); kind {
		case "application/json", "application/problem+json":
			if !json.Valid(w.Body.Bytes()) || (w.Code >= 400) != (kind == "application/problem+json") {
				t.Errorf("%d as %s: %s", w.Code, kind, w.Body)
			}
			if w.Code == http.StatusInternalServerError {
				t.Errorf("a defect: %s", w.Body)
			}
		case "text/event-stream", "application/zip", "application/vnd.sqlite3":
		default:
			t.Errorf("%d as %q: %s", w.Code, kind, w.Body)
		}
	})
}

// FuzzDelivery sends any delivery to a hook, and the same request to a door. It looks for one that breaks
// the server, for an unsigned one that starts a run, for an input that is not JSON, and for a request
// behind the door that is not.
func FuzzDelivery(f *testing.F) {
	f.Add("POST", "/hooks/known", "application/json", `{"a":1}`, true)
	f.Add("POST", "/hooks/known", "text/plain", "\x00\xff", true)
	f.Add("POST", "/hooks/known", "application/vnd.x+json", `{"a":1,"\u0061":2}`, true)
	f.Add("PUT", "/hooks/..%2f%ff", "\x1b", "[[[[", false)
	f.Fuzz(func(t *testing.T, verb, path, kind, text string, signed bool) {
		r, err := http.NewRequest(verb, "http://localhost"+path, strings.NewReader(text))
		if err != nil {
			return // package http would not pass it on
		}
		r.Header.Set("Content-Type", kind)
		if signed {
			r.Header.Set("X-Good", "1")
		}
		log := slog.New(slog.DiscardHandler)
		to, w := &fakeDeliverer{}, httptest.NewRecorder()
		Hooks(to, log).ServeHTTP(w, r)
		if !json.Valid(w.Body.Bytes()) || w.Code == http.StatusInternalServerError {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
		if (w.Code == http.StatusOK) != (len(to.started) == 1) || len(to.started) == 1 && !signed {
			t.Errorf("%d, and %d runs of a delivery with signature: %v", w.Code, len(to.started), signed)
		}
		for _, input := range to.started {
			if len(input.GetData()) != 0 && !json.Valid(input.GetData()) || len(input.GetData()) == 0 && text != "" {
				t.Errorf("%q of type %q gives the input %q", text, kind, input.GetData())
			}
		}

		gate, err := NewGate(GateOptions{Keyless: func(context.Context) bool { return false }, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		api, err := New(&fakeServer{}, gate, log)
		if err != nil {
			t.Fatal(err)
		}
		door := api.Door(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got, err := io.ReadAll(r.Body); err != nil || len(got) > 0 && !json.Valid(got) {
				t.Errorf("behind the door: %q, %v", got, err)
			}
		}))
		r.Body = io.NopCloser(strings.NewReader(text))
		w = httptest.NewRecorder()
		gate.Handler(door, jsonType).ServeHTTP(w, r)
		if w.Code >= 400 && (!json.Valid(w.Body.Bytes()) || w.Code == http.StatusInternalServerError) {
			t.Errorf("the door answers %d: %s", w.Code, w.Body)
		}
	})
}
