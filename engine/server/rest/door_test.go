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
	for name, c := range map[string]struct{ body, want string }{
		"JSON that is too deep": {strings.Repeat("[", 101) + strings.Repeat("]", 101), "nested deeper than 100"},
		"deep and endless":      {strings.Repeat("[", 1<<20), "is not JSON"},
		"a name twice":          {`{"method":"a","method":"b"}`, "occurs twice"},
		"no JSON":               {"{", "is not JSON"},
		"invalid UTF-8":         {"\"\xff\"", "UTF-8"},
		"two messages":          {"{}{}", "is not JSON"},
	} {
		if w := send("POST", strings.NewReader(c.body)); w.Code != 400 || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %.200s, want 400 with %q", name, w.Code, w.Body, c.want)
		}
	}
	const number = `{"n":3544790567247868102,"big":1e400}`
	if w := send("POST", strings.NewReader(number)); w.Code != 200 || w.Body.String() != number {
		t.Errorf("huge numbers reach it as %s", w.Body)
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

func TestAMessageThatDoesNotArriveIsRefusedAtADoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := serveBehindGate(t, &fakeServer{}, func(api *API) http.Handler {
			return api.Door(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("half a message got in") }))
		})
		c := l.dial()
		began := time.Now()
		c.say("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10000\r\n\r\n{")
		if r := c.answer(t); r.StatusCode != http.StatusRequestTimeout || time.Since(began) != bodyTime {
			t.Errorf("%d after %s, want 408 after %s", r.StatusCode, time.Since(began), bodyTime)
		}
		c.Close()
	})
}
