package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// TestBadMessagesToAgentsAreRefused sends to /mcp what the HTTP API refuses too. After all of it the server
// answers as before.
func TestBadMessagesToAgentsAreRefused(t *testing.T) {
	a := startAgents(t, "--mcp-allow-writes")
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"start_run","arguments":%s}}`
	start := fmt.Sprintf(call, `{"workflow_type":"t","request_id":"r","input":3544790567247868102}`)
	for name, c := range map[string]struct {
		// of the request from its method on: ~ is the version and the Host, JSON the Content-Type, and BODY
		// the length with the body
		text string
		body string
		want string // of the status line
		says string // in the answer
	}{
		"a foreign host":         {"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nJSONBODY", start, "421", "--http-host"},
		"a foreign origin":       {"POST /mcp~Origin: https://evil.example\r\nJSONBODY", start, "403", "another site"},
		"the origin null":        {"POST /mcp~Origin: null\r\nJSONBODY", start, "403", "another site"},
		"a proxy":                {"POST /mcp~X-Forwarded-For: 192.0.2.1\r\nJSONBODY", start, "403", "proxy"},
		"text":                   {"POST /mcp~Content-Type: text/plain\r\nBODY", start, "415", "application/json"},
		"no type":                {"POST /mcp~BODY", start, "415", "application/json"},
		"a stream":               {"GET /mcp~Accept: text/event-stream\r\n\r\n", "", "405", "POST"},
		"the end of a session":   {"DELETE /mcp~Mcp-Session-Id: x\r\nJSONBODY", "", "405", "POST"},
		"a path below":           {"POST /mcp/~JSONBODY", start, "415|404", ""},
		"a path traversal":       {"POST /v1/../mcp~JSONBODY", start, "404", ""},
		"an encoded slash":       {"POST /%2fmcp~JSONBODY", start, "404|415", ""},
		"two lengths":            {"POST /mcp~JSONContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "", "400", ""},
		"a length beside chunks": {"POST /mcp~JSONContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", "400", ""},
		"a header with a line":   {"POST /mcp~X: a\r\n b: c\r\nA b: c\r\n\r\n", "", "400", ""},
		"JSON too deep":          {"", fmt.Sprintf(call, strings.Repeat("[", 200)+strings.Repeat("]", 200)), "400", "nested deeper than 100"},
		"a million brackets":     {"", strings.Repeat("[", 1<<20), "400", "is not JSON"},
		"a name twice":           {"", fmt.Sprintf(call, `{"workflow_type":"a","workflow_type":"b"}`), "400", "occurs twice"},
		"invalid UTF-8":          {"", fmt.Sprintf(call, "{\"workflow_type\":\"\xff\"}"), "400", "UTF-8"},
		"a batch":                {"", "[" + start + "]", "400", "batch"},
		"an unknown tool":        {"", strings.Replace(start, "start_run", `\u001b[31m`, 1), "200|400|404", "error"},
		"an unknown method":      {"", `{"jsonrpc":"2.0","id":1,"method":"../../etc/passwd"}`, "400", "unsupported"},
		"a wrong argument":       {"", fmt.Sprintf(call, `{"workflow_type":{"a":1}}`), "200", "workflow_type"},
		"a number as an id":      {"", strings.Replace(start, `"id":1`, `"id":1e400`, 1), "400", "malformed"},
	} {
		text := c.text
		if text == "" {
			text = "POST /mcp~JSONAccept: application/json, text/event-stream\r\nBODY"
		}
		text = strings.NewReplacer("~", " HTTP/1.1\r\nHost: "+a.http+"\r\n", "JSON", "Content-Type: application/json\r\n",
			"BODY", fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(c.body), c.body)).Replace(text)
		code, answer := rawRequest(t, a.http, text)
		if !strings.Contains("|"+c.want+"|", fmt.Sprintf("|%d|", code)) || !strings.Contains(answer, c.says) ||
			strings.ContainsRune(answer, '\x1b') {
			t.Errorf("%s: %d %.300q, want %s with %q", name, code, answer, c.want, c.says)
		}
	}
	if s, err := a.agent(kagziv1.KeyRole_KEY_ROLE_UNSPECIFIED); err != nil {
		t.Error(err)
	} else if text, failed := a.call(s, "start_run", map[string]any{"workflow_type": "t", "request_id": "r"}); failed {
		t.Errorf("after them a run cannot be started: %s", text)
	}
	code, answer := rawRequest(t, a.http, "GET /v1/workflows HTTP/1.1\r\nHost: "+a.http+"\r\n\r\n")
	if code != http.StatusOK || strings.Count(answer, `"runId"`) != 1 {
		t.Errorf("the runs are %s, want the last one alone", answer)
	}
}

// rawRequest sends a request as it is written, and returns the status and the body of the answer.
func rawRequest(t *testing.T, address, text string) (int, string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%.60q: %v", text, err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}
