package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// FuzzMessage sends any message to /mcp, as it comes through the door of the HTTP port. It looks for one
// that breaks the handler, whose answer is not JSON, or whose answer holds a control character.
func FuzzMessage(f *testing.F) {
	f.Add(fmt.Sprintf(hello, "2025-06-18"), "", "")
	for _, name := range []string{"list_runs", "get_run", "start_run", "\x1b[31m", "../x"} {
		f.Add(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"run_id":"r"}}}`,
			name), "2025-11-25", "")
	}
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"kagzi://runs/%2e%2e"}}`, "x", "x")
	f.Add(`{"jsonrpc":"2.0","id":3544790567247868102,"method":"prompts/get","params":{"name":"x"}}`, "", "tools/call")
	h := Handler(Options{API: &fake{runs: []*kagziv1.Workflow{{RunId: "r", WorkflowType: "\x1b[31m"}}}, Writes: true})
	f.Fuzz(func(t *testing.T, text, version, method string) {
		if !json.Valid([]byte(text)) {
			return // the door refuses it
		}
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(text))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Mcp-Protocol-Version", version)
		r.Header.Set("Mcp-Method", method)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusOK && w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) ||
			w.Code == http.StatusInternalServerError {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
		if strings.ContainsAny(w.Body.String(), "\x00\x07\x08\x1b\x7f") {
			t.Errorf("the answer holds a control character: %q", w.Body)
		}
	})
}
