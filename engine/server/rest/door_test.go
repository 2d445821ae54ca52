package rest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func TestADoorHasTheChecksOfTheAPI(t *testing.T) {
	f := &fakeServer{}
	log := slog.New(slog.DiscardHandler)
	gate, err := NewGate(GateOptions{Loopback: true, Hosts: []string{"kagzi.example"}, Keyless: func(context.Context) bool { return false }, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	api, err := New(f, gate, log)
	if err != nil {
		t.Fatal(err)
	}
	h := gate.Handler(api.Door(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		_, _ = w.Write(text)
	})), jsonType)
	send := func(method string, body io.Reader, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://localhost/mcp", body)
		r.Header.Set("Content-Type", jsonType)
		for _, header := range headers {
			name, value, _ := strings.Cut(header, ": ")
			if name == "Host" {
				r.Host = value
			}
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	if w := send("POST", strings.NewReader("{}")); w.Code != 200 || w.Body.String() != "{}" {
		t.Errorf("a message is answered with %d %s", w.Code, w.Body)
	}
	if w := send("POST", strings.NewReader("{}"), "Host: kagzi.example"); w.Code != 200 {
		t.Errorf("a host that a proxy may set is answered with %d", w.Code)
	}
	for name, c := range map[string]struct {
		method, header string
		want           int
	}{
		"a foreign host": {"POST", "Host: evil.example", 421}, "a foreign origin": {"POST", "Origin: https://evil.example", 403},
		"no origin": {"POST", "Origin: null", 403}, "a form": {"POST", "Content-Type: text/plain", 415},
		"a stream": {"GET", "Accept: text/event-stream", 405}, "an end": {"DELETE", "Mcp-Session-Id: x", 405},
	} {
		w := send(c.method, strings.NewReader("{}"), c.header)
		if w.Code != c.want || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d as %s, want %d as a problem", name, w.Code, w.Header().Get("Content-Type"), c.want)
		}
	}
	if w := send("POST", strings.NewReader(strings.Repeat(" ", maxBody+1))); w.Code != 413 {
		t.Errorf("a body that is too long: %d", w.Code)
	}
	f.refuse = &engine.Error{Kind: engine.KindNoKey, Message: "an API key is needed"}
	if w := send("POST", unread{t}); w.Code != 401 || w.Header().Get("WWW-Authenticate") == "" {
		t.Errorf("without a key: %d %v", w.Code, w.Header())
	}
}

func TestACallBehindADoorMayTakeLongerThanAWrite(t *testing.T) {
	for _, text := range []string{"late", ""} {
		synctest.Test(t, func(t *testing.T) {
			l := serveBehindGate(t, &fakeServer{}, func(api *API) http.Handler {
				return api.Door(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					time.Sleep(2 * writeTime)
					w.WriteHeader(http.StatusAccepted)
					_, _ = io.WriteString(w, text) // the client reads it
				}))
			})
			c := l.dial()
			c.say("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
			if r := c.answer(t); r.StatusCode != http.StatusAccepted || body(t, r) != text {
				t.Errorf("it is answered with %d", r.StatusCode)
			}
			c.Close()
		})
	}
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read before the key")
	return 0, io.EOF
}
