package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/rest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// web is the API over HTTP as curl sees it.
type web struct {
	t      testing.TB
	url    string
	secret string
}

// answered is an answer with its JSON.
type answered struct {
	status int
	header http.Header
	text   string
}

// at returns the value at a dotted path of the answer's JSON, as it is written.
func (a answered) at(path string) string {
	raw := json.RawMessage(a.text)
	for part := range strings.SplitSeq(path, ".") {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return ""
		}
		raw = fields[part]
	}
	return strings.Trim(string(raw), `"`)
}

func (w web) ask(verb, path, body string, headers ...string) answered {
	w.t.Helper()
	r, err := http.NewRequestWithContext(within(w.t, 30*time.Second), verb, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if w.secret != "" {
		r.Header.Set("Authorization", "Bearer "+w.secret)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	a := answered{got.StatusCode, got.Header, string(text)}
	if kind := got.Header.Get("Content-Type"); a.status >= 400 && (kind != "application/problem+json" ||
		a.at("status") != fmt.Sprint(a.status) || a.at("detail") == "" || a.at("error.code") == "") {
		w.t.Errorf("%s %s: %d is no problem: %s %s", verb, path, a.status, kind, text)
	}
	return a
}

// fine makes a request that must succeed.
func (w web) fine(verb, path, body string, headers ...string) answered {
	w.t.Helper()
	a := w.ask(verb, path, body, headers...)
	if a.status != 200 {
		w.t.Fatalf("%s %s: %d %s", verb, path, a.status, a.text)
	}
	return a
}

func TestARunLivesOverHTTP(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		w := web{t: t, url: s.serveHTTP(t, rest.GateOptions{Loopback: true})}
		start := `{"workflowType":"t","taskQueue":"q","externalId":"a/b:c","input":{"json":3544790567247868102}}`
		first := w.fine("POST", "/v1/workflows", start, "Idempotency-Key: one")
		run := first.at("runId")
		if again := w.fine("POST", "/v1/workflows", start, "Idempotency-Key: one"); again.at("runId") != run {
			t.Errorf("the same key again: %s", again.text)
		}
		if a := w.ask("POST", "/v1/workflows", start, "Idempotency-Key: "+strings.Repeat("k", 65)); a.status != 400 ||
			a.at("error.metadata.field") != "Idempotency-Key" || !strings.Contains(a.text, "64") {
			t.Errorf("a key of 65 bytes: %d %s", a.status, a.text)
		}
		two := `{"workflowType":"t","requestId":"x"}`
		if a := w.ask("POST", "/v1/workflows", two, "Idempotency-Key: y"); a.status != 400 {
			t.Errorf("two request ids: %d %s", a.status, a.text)
		}
		changed := strings.Replace(start, "102", "103", 1)
		if a := w.ask("POST", "/v1/workflows", changed, "Idempotency-Key: one"); a.status != 409 ||
			a.at("error.code") != "ERROR_CODE_CONFLICT" || a.at("grpcStatus") != "FAILED_PRECONDITION" {
			t.Errorf("the key with another input: %d %s", a.status, a.text)
		}
		if a := w.fine("GET", "/v1/workflows:byExternalId?external_id=a/b:c", ""); a.at("workflow.runId") != run ||
			a.at("workflow.input") != `{"json":3544790567247868102}` {
			t.Errorf("by its external id: %s", a.text)
		}
		began := time.Now()
		if a := w.fine("GET", "/v1/workflows/"+run+"/result?wait=0.05s", ""); a.at("finished") != "" ||
			time.Since(began) < 50*time.Millisecond {
			t.Errorf("an open run after %s: %s", time.Since(began), a.text)
		}

		worker := w.fine("POST", "/v1/workers", `{"taskQueue":"q","workflowTypes":["t"]}`).at("workerId")
		task := w.fine("POST", "/v1/workers/"+worker+":poll", `{"taskQueue":"q","workflowTypes":["t"],"wait":"20s"}`)
		lease := task.at("task.leaseToken")
		if task.at("runId") != run || task.at("input") != `{"json":3544790567247868102}` {
			t.Fatalf("task %s", task.text)
		}
		w.fine("POST", "/v1/workflows/"+run+"/signals", `{"name":"go","payload":{"json":{"a":1.50}}}`, "Idempotency-Key: s")
		if a := w.fine("POST", "/v1/workflows/"+run+"/signals", `{"name":"go","payload":{"json":{"a":1.50}}}`,
			"Idempotency-Key: s"); a.at("alreadyDelivered") != "true" {
			t.Errorf("the same signal again: %s", a.text)
		}
		if a := w.fine("POST", "/v1/workflows/"+run+":awaitSignal",
			`{"stepName":"w","signalName":"go","leaseToken":"`+lease+`"}`); a.at("payload.json") != `{"a":1.50}` {
			t.Errorf("the signal: %s", a.text)
		}
		waits := make(chan answered, 1)
		go func() { waits <- w.ask("GET", "/v1/workflows/"+run+"/result?wait=30s", "") }()
		w.fine("POST", "/v1/workflows/"+run+":complete", `{"output":{"json":{"n":1e400}},"leaseToken":"`+lease+`"}`)
		if a := <-waits; a.at("finished") != "true" || a.at("workflow.output.json") != `{"n":1e400}` {
			t.Errorf("the result: %s", a.text)
		}
		late := `{"leaseToken":"00000000000000000000000000000000","error":{"message":"m"}}`
		if a := w.ask("POST", "/v1/workflows/"+run+":fail", late); a.status != 409 ||
			a.at("error.code") != "ERROR_CODE_LEASE_LOST" || a.at("error.metadata.status") != "COMPLETED" {
			t.Errorf("a write after the end: %d %s", a.status, a.text)
		}
	})
}

func TestListsOverHTTPGoOnByTheirLink(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		w := web{t: t, url: s.serveHTTP(t, rest.GateOptions{Loopback: true})}
		for i := range 5 {
			w.fine("POST", "/v1/workflows", fmt.Sprintf(`{"workflowType":"t","tags":{"a.b":"%d"}}`, i%2))
		}
		seen, query := 0, "?page_size=2&workflow_types=t&workflow_types=u&statuses=WORKFLOW_STATUS_PENDING"
		for query != "" {
			a := w.fine("GET", "/v1/workflows"+query, "")
			seen += strings.Count(a.text, `"runId"`)
			query, _, _ = strings.Cut(strings.TrimPrefix(a.header.Get("Link"), "<"), ">")
		}
		if seen != 5 {
			t.Errorf("%d runs on all pages, want 5", seen)
		}
		a := w.fine("GET", "/v1/workflows?tags[a.b]=1&created_after=2020-01-01T00:00:00Z&page.page_size=9", "")
		if strings.Count(a.text, `"runId"`) != 2 || a.header.Get("Link") != "" {
			t.Errorf("by a tag: %s", a.text)
		}
		for query, field := range map[string]string{
			"page_size=x": "page_size", "page_size=1&page_size=2": "page_size", "page_size=1&page.pageSize=1": "page_size",
			"nonsense=1": "nonsense", "tags=1": "tags", "namespace[a]=1": "namespace[a]", "statuses=RUNNING": "statuses",
			"created_after=yesterday": "created_after", "last=1": "last", "page_token=!": "page_token",
			"page=1": "page", "namespace=%ff": "namespace", "%zz": "query", "page_size=1001": "page_size",
			"page_size=99999999999": "page_size",
		} {
			if a := w.ask("GET", "/v1/workflows?"+query, ""); a.status != 400 ||
				!strings.HasSuffix(a.at("error.metadata.field"), field) {
				t.Errorf("?%s: %d %s, want 400 that names %s", query, a.status, a.text, field)
			}
		}
	})
}

func TestFilesAndStreamsGoOverHTTP(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		w := web{t: t, url: s.serveHTTP(t, rest.GateOptions{Loopback: true})}
		run := w.fine("POST", "/v1/workflows", `{"workflowType":"t"}`).at("runId")
		w.fine("POST", "/v1/workflows/"+run+":cancel", `{}`)
		capsule := w.fine("GET", "/v1/workflows/"+run+":export", "")
		if !strings.HasPrefix(capsule.text, "PK") || capsule.header.Get("Content-Type") != "application/zip" {
			t.Fatalf("exported %q as %s", capsule.text[:min(20, len(capsule.text))], capsule.header)
		}
		imported := w.fine("POST", "/v1/workflows:import?namespace=default", capsule.text, "Content-Type: application/zip",
			"Idempotency-Key: i")
		again := w.fine("POST", "/v1/workflows:import", capsule.text, "Content-Type: application/zip", "Idempotency-Key: i")
		if imported.at("runId") == "" || again.at("runId") != imported.at("runId") || again.at("alreadyImported") != "true" {
			t.Errorf("imported %s, then %s", imported.text, again.text)
		}
		for _, bad := range []string{"", "no zip", capsule.text[:len(capsule.text)/2]} {
			if a := w.ask("POST", "/v1/workflows:import", bad, "Content-Type: application/zip"); a.status != 400 {
				t.Errorf("a file of %d bytes: %d %s", len(bad), a.status, a.text)
			}
		}
		if a := w.ask("POST", "/v1/workflows:import", "{}"); a.status != 415 {
			t.Errorf("JSON as a file: %d", a.status)
		}
		if a := w.ask("POST", "/v1/workflows", "{}", "Content-Type: application/zip"); a.status != 415 {
			t.Errorf("a file as JSON: %d", a.status)
		}
		watched := w.fine("GET", "/v1/workflows/"+run+":watch", "")
		if !strings.Contains(watched.text, "WORKFLOW_STATUS_CANCELLED") ||
			!strings.HasSuffix(watched.text, "\n\nevent: end\ndata: {}\n\n") {
			t.Errorf("watched %q", watched.text)
		}
		awaited := w.fine("POST", "/v1/workflows:await", `{"waits":[{"seq":1,"runId":"`+run+`"}]}`)
		if !strings.Contains(awaited.text, `"seq":"1","status":"WORKFLOW_STATUS_CANCELLED"`) ||
			!strings.HasSuffix(awaited.text, "event: end\ndata: {}\n\n") {
			t.Errorf("awaited %q", awaited.text)
		}
		bulk := w.fine("POST", "/v1/workflows:bulk", `{"action":"BULK_ACTION_CANCEL","filter":{"workflowType":"t"}}`)
		if !strings.HasSuffix(bulk.text, "event: end\ndata: {}\n\n") {
			t.Errorf("bulk %q", bulk.text)
		}
		// On a slow machine the stream has begun before it is known that there is no run.
		a := w.ask("GET", "/v1/workflows/"+nobody+":watch", "")
		late := a.status == 200 && strings.Contains(a.text, "event: problem") && strings.Contains(a.text, `"grpcStatus":"NOT_FOUND"`)
		if !late && (a.status != 404 || a.at("grpcStatus") != "NOT_FOUND") {
			t.Errorf("a watch of nothing: %d %s", a.status, a.text)
		}
	})
}

func TestStreamsOverHTTPEndWithTheServer(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		url := s.serveHTTP(t, rest.GateOptions{Loopback: true})
		answer, err := http.Get(url + "/v1/watch")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		lines := bufio.NewReader(answer.Body)
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		go s.stop()
		text, err := io.ReadAll(lines)
		if err != nil || !bytes.Contains(text, []byte("\nretry: ")) || !bytes.Contains(text, []byte("event: problem\n")) {
			t.Errorf("the stream ends with %q, %v, want when to connect again", text, err)
		}
		w := web{t: t, url: url}
		if a := w.ask("GET", "/v1/workflows", ""); a.status != 503 || a.header.Get("Retry-After") == "" {
			t.Errorf("a call of a server that stops: %d %v", a.status, a.header)
		}
	})
}

func TestEveryErrorOfHTTPIsAProblem(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		root := s.lock(t)
		_, client := root.key(t, &kagziv1.Key{Name: "c", Role: client, Namespaces: []string{"default"}})
		w := web{t: t, url: s.serveHTTP(t, rest.GateOptions{}), secret: client}
		for _, c := range []struct {
			verb, path, body string
			headers          []string
			status           int
			code             string
		}{
			{"GET", "/v1/nonsense", "", nil, 404, "NOT_FOUND"},
			{"GET", "/v1/workflows/../keys", "", nil, 404, "NOT_FOUND"},
			{"GET", "/v1//workflows", "", nil, 404, "NOT_FOUND"},
			{"GET", "/v1/schedules/..", "", nil, 404, "NOT_FOUND"},
			{"GET", "/v1/schedules/%2e%2e%2fkeys", "", nil, 404, "NOT_FOUND"},
			{"GET", "/v1/schedules/a%2Fb:c", "", nil, 404, "NOT_FOUND"},
			{"GET", "/v1/workflows/" + nobody, "", nil, 404, "NOT_FOUND"},
			{"GET", "/v1/workflows/x%00", "", nil, 400, "INVALID_ARGUMENT"},
			{"GET", "/v1/workflows/%ff", "", nil, 400, "INVALID_ARGUMENT"},
			{"DELETE", "/v1/workflows", "", nil, 405, "UNIMPLEMENTED"},
			{"TRACE", "/v1/workflows", "", nil, 415, "INVALID_ARGUMENT"},
			{"OPTIONS", "/v1/workflows", "", nil, 405, "UNIMPLEMENTED"},
			{"GET", "/v1/workflows", "{}", nil, 400, "INVALID_ARGUMENT"},
			{"POST", "/v1/workflows", "{", nil, 400, "INVALID_ARGUMENT"},
			{"POST", "/v1/workflows", "[]", nil, 400, "INVALID_ARGUMENT"},
			{"POST", "/v1/workflows?namespace=x", "{}", nil, 400, "INVALID_ARGUMENT"},
			{"POST", "/v1/workflows", "{}", []string{"Content-Type: text/plain"}, 415, "INVALID_ARGUMENT"},
			{"POST", "/v1/workflows", `{"workflowType":"t"}`, []string{"Origin: null"}, 403, "PERMISSION_DENIED"},
			{"POST", "/v1/workflows", strings.Repeat(" ", engine.MaxMessage*3/2+1), nil, 413, "RESOURCE_EXHAUSTED"},
			{"POST", "/v1/workflows",
				`{"workflowType":"t","input":{"json":"` + strings.Repeat("x", engine.MaxPayload) + `"}}`, nil, 413,
				"RESOURCE_EXHAUSTED"},
			{"POST", "/v1/workflows/" + nobody + ":cancel", `{"runId":"x"}`, nil, 400, "INVALID_ARGUMENT"},
			{"POST", "/v1/keys", `{}`, nil, 403, "PERMISSION_DENIED"},
			{"GET", "/v1/workflows?namespace=other", "", nil, 403, "PERMISSION_DENIED"},
			{"GET", "/v1/workflows", "", []string{"Authorization: Bearer kz_nonsense"}, 401, "UNAUTHENTICATED"},
			{"GET", "/v1/workflows", "", []string{"Authorization: Basic eDp5"}, 401, "UNAUTHENTICATED"},
		} {
			a := w.ask(c.verb, c.path, c.body, c.headers...)
			if a.status != c.status || a.at("grpcStatus") != c.code {
				t.Errorf("%s %.60s %.40s: %d %s, want %d %s", c.verb, c.path, c.body, a.status, a.text, c.status, c.code)
			}
			if a.status == 405 && a.header.Get("Allow") == "" || a.status == 401 && a.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s: %d with %v", c.verb, c.path, a.status, a.header)
			}
		}
		if a := w.ask("HEAD", "/v1/workflows", ""); a.status != 200 {
			t.Errorf("HEAD: %d", a.status)
		}
	})
}

func TestRequestsThatTwoServersReadDifferentlyAreNoneOrOne(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		address := strings.TrimPrefix(s.serveHTTP(t, rest.GateOptions{Loopback: true}), "http://")
		head := "POST /v1/workflows HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
		inner := head + "Content-Length: 22\r\n\r\n" + `{"workflowType":"bad"}`
		for name, text := range map[string]string{
			"two lengths":           head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + inner,
			"a length with a sign":  head + "Content-Length: +5\r\n\r\n" + inner,
			"a length and chunks":   head + "Content-Length: 300\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
			"an odd encoding":       head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + inner,
			"two encodings":         head + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + inner,
			"a space before colon":  head + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + inner,
			"a header on two lines": head + "X: a\r\n Content-Length: 5\r\nContent-Length : 3\r\n\r\n" + inner,
			"a line end in a path":  "GET /v1/workflows\nX: y HTTP/1.1\r\nHost: localhost\r\n\r\n" + inner,
			"two hosts":             "GET /v1/workflows HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n" + inner,
			"another host's target": "GET http://evil/v1/workflows HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
			"NUL in a header":       head + "X: \x00\r\n\r\n" + inner,
			"endless headers":       head + strings.Repeat("X: "+strings.Repeat("x", 1000)+"\r\n", 40) + "\r\n" + inner,
			"a bad chunk":           head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n" + inner,
		} {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			go func() { _, _ = io.WriteString(conn, text) }()
			got, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || got.StatusCode < 400 {
				t.Errorf("%s: %v, %v, want an error", name, got, err)
			}
			conn.Close()
		}
		runs := fine(s.workflows().ListWorkflows(within(t, 20*time.Second), &kagziv1.ListWorkflowsRequest{}))(t)
		if len(runs.Workflows) != 0 {
			t.Errorf("%d runs were started, want none", len(runs.Workflows))
		}
	})
}
