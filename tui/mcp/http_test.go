package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// post sends a message over HTTP.
func post(t *testing.T, h http.Handler, message string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(message))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"%s","capabilities":{},` +
	`"clientInfo":{"name":"x","version":"1"}}}`

func TestAThousandClientsThatNeverSayGoodbyeLeaveNothing(t *testing.T) {
	h := Handler(Options{API: &fake{runs: []*kagziv1.Workflow{{RunId: "r"}}}})
	visit := func() {
		for _, message := range []string{fmt.Sprintf(hello, "2025-06-18"),
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_run","arguments":{"run_id":"r"}}}`} {
			if w := post(t, h, message); w.Code >= 300 {
				t.Fatalf("%s: %d %s", message, w.Code, w.Body)
			}
		}
	}
	visit()
	before := settled()
	for range 1000 {
		visit()
	}
	if after := settled(); after.goroutines > before.goroutines+5 || after.bytes > before.bytes+1<<20 {
		t.Errorf("there were %+v, and after a thousand clients %+v", before, after)
	}
}

type use struct {
	goroutines int
	bytes      uint64
}

// settled returns what is in use when what was left has ended.
func settled() (u use) {
	for range 10 { // goroutines that end take a few turns
		runtime.Gosched()
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return use{runtime.NumGoroutine(), m.HeapAlloc}
}

func TestOverHTTPEachMessageStandsAlone(t *testing.T) {
	h := Handler(Options{API: &fake{}})
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		if w := post(t, h, fmt.Sprintf(hello, version)); !strings.Contains(w.Body.String(),
			`"protocolVersion":"`+version+`"`) || w.Header().Get("Content-Type") != "application/json" ||
			w.Header().Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %v %s", version, w.Header(), w.Body)
		}
	}
	if w := post(t, h, fmt.Sprintf(hello, "2024-11-05")); strings.Contains(w.Body.String(), "2024-11-05") {
		t.Errorf("an old version is spoken: %s", w.Body)
	}
	if w := post(t, h, ` [`+fmt.Sprintf(hello, "2025-06-18")+`]`); w.Code != http.StatusBadRequest {
		t.Errorf("a batch is answered with %d %s", w.Code, w.Body)
	}
	for _, message := range []string{"", "{", "7", strings.Repeat(`{"a":`, 100_000)} {
		if w := post(t, h, message); w.Code < 400 {
			t.Errorf("%.40q is answered with %d %s", message, w.Code, w.Body)
		}
	}
	listen := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x",` +
		`"version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(listen))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("MCP-Protocol-Version", "2026-07-28")
	r.Header.Set("Mcp-Method", "subscriptions/listen")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r) // a subscription would not return
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "method not found") {
		t.Errorf("a subscription is answered with %d %s", w.Code, w.Body)
	}
}

func TestStreamsHoldNothingButMessages(t *testing.T) {
	in, send := io.Pipe()
	receive, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- Serve(t.Context(), Options{API: &fake{}}, in, out)
		_ = out.Close() // a pipe's never fails
	}()
	go func() {
		for _, line := range []string{fmt.Sprintf(hello, "2025-06-18"),
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_run","arguments":{}}}`} {
			_, _ = io.WriteString(send, line+"\n")
		}
	}()
	lines := bufio.NewScanner(receive)
	for n := 0; lines.Scan(); {
		if !json.Valid(lines.Bytes()) {
			t.Errorf("%q is no JSON", lines.Bytes())
		}
		if n++; n == 2 {
			_ = send.Close()
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
