package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/rest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// sender delivers to one hook as GitHub does.
type sender struct {
	t      testing.TB
	url    string
	secret string
}

// newSender makes a hook on a server and returns its sender over the HTTP port at a URL.
func newSender(t testing.TB, conn grpc.ClientConnInterface, url, name string) sender {
	t.Helper()
	answer, err := kagziv1.NewAdminServiceClient(conn).CreateHook(within(t, time.Minute), &kagziv1.CreateHookRequest{
		Name: name, TaskQueue: "ci", WorkflowType: "build", Signature: kagziv1.HookSignature_HOOK_SIGNATURE_GITHUB})
	if err != nil {
		t.Fatal(err)
	}
	return sender{t, url + answer.GetHook().GetPath(), answer.GetSecret()}
}

func signature(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// try sends a delivery; headers replace those of the sender.
func (s sender) try(id, body string, headers map[string]string) (status int, text string, err error) {
	r, err := http.NewRequestWithContext(within(s.t, time.Minute), "POST", s.url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "X-GitHub-Event": "push",
		"X-GitHub-Delivery": id, "X-Hub-Signature-256": signature(s.secret, body)} {
		r.Header.Set(name, value)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(raw), err
}

// send sends a delivery that has to be answered with a status, and returns the answer.
func (s sender) send(want int, id, body string, headers map[string]string) answered {
	s.t.Helper()
	code, text, err := s.try(id, body, headers)
	if err != nil || code != want {
		s.t.Errorf("delivery %s is answered with %d %s, %v, want %d", id, code, text, err, want)
	}
	return answered{text: text}
}

// startedRuns returns all runs that hooks started.
func startedRuns(t testing.TB, conn grpc.ClientConnInterface) []*kagziv1.Workflow {
	t.Helper()
	list, err := kagziv1.NewWorkflowServiceClient(conn).ListWorkflows(within(t, time.Minute),
		&kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageSize: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	return list.GetWorkflows()
}

// logged keeps the lines of a log.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestASignedDeliveryStartsOneRunHoweverOftenItComes(t *testing.T) {
	log := &logged{}
	o := Options{}
	o.Server.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	eachServer(t, o, func(t *testing.T, s *Server) {
		url := s.serveHTTP(t, rest.GateOptions{Loopback: true})
		gh := newSender(t, s.Conn, url, "gh")
		const body = `{"ref":"main","n":3544790567247868102}`
		run := gh.send(200, "d-1", body, nil).at("runId")
		for name, again := range map[string]answered{
			"the same again":                    gh.send(200, "d-1", body, nil),
			"the body under another id":         gh.send(200, "d-2", body, nil),
			"the body under another event":      gh.send(200, "d-1", body, map[string]string{"X-GitHub-Event": "star"}),
			"the id with another body":          gh.send(200, "d-1", `{"ref":"other"}`, nil),
			"the body without an id":            gh.send(200, "", body, nil),
			"the body as another type":          gh.send(200, "d-1", body, map[string]string{"Content-Type": "text/plain"}),
			"through a proxy, for another host": gh.send(200, "d-1", body, map[string]string{"X-Forwarded-For": "192.0.2.1"}),
		} {
			if again.at("runId") != run {
				t.Errorf("%s: run %s, want %s", name, again.text, run)
			}
		}
		gh.send(401, "d-3", body, map[string]string{"X-Hub-Signature-256": signature("another secret", body)})
		gh.send(400, "\x80", `{"hostile":1}`, nil)
		gh.send(400, "d-4", `{"a":1,"a":2}`, nil)
		nowhere := gh
		nowhere.url = url + engine.HookPath + engine.NewID(time.Now()).String()
		_, wrong, _ := gh.try("d-5", body, map[string]string{"X-Hub-Signature-256": ""})
		if _, unknown, _ := nowhere.try("d-5", body, nil); unknown != wrong {
			t.Errorf("an unknown hook says %s, a wrong signature %s", unknown, wrong)
		}

		started := startedRuns(t, s.Conn)
		if len(started) != 1 || started[0].GetTaskQueue() != "ci" || started[0].GetExternalId() != "gh:d-1" ||
			!maps.Equal(started[0].GetTags(), map[string]string{"hook": "gh", "event": "push", "delivery": "d-1"}) {
			t.Fatalf("the runs are %v, want one", started)
		}
		whole, err := kagziv1.NewWorkflowServiceClient(s.Conn).GetWorkflow(t.Context(),
			&kagziv1.GetWorkflowRequest{RunId: run})
		if err != nil || string(whole.GetWorkflow().GetInput().GetData()) != body {
			t.Errorf("the input is %s, %v, want the body as it is", whole.GetWorkflow().GetInput().GetData(), err)
		}
		admin := kagziv1.NewAdminServiceClient(s.Conn)
		refusals := func() (n int) {
			events, err := admin.ListAuditEvents(t.Context(), &kagziv1.ListAuditEventsRequest{Namespace: "default"})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events.GetEvents() {
				if strings.Contains(e.String(), gh.secret) {
					t.Errorf("the audit log has the secret: %v", e)
				}
				if e.GetMethod() == "Deliver" && e.GetOutcome() == "UNAUTHENTICATED" {
					n++
				}
			}
			return n
		}
		eventually(t, "a refused delivery is in the audit log", func() bool { return refusals() > 0 })
		if n := refusals(); n != 1 {
			t.Errorf("%d refused deliveries of a minute are in the audit log, want 1", n)
		}
		for _, secret := range []string{gh.secret, signature(gh.secret, body)[7:], signature("another secret", body)[7:]} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("the log holds %q", secret)
			}
		}
	})
}

func TestAHookIsRotatedAndDeletedWhileDeliveriesCome(t *testing.T) {
	eachServer(t, Options{}, func(t *testing.T, s *Server) {
		gh := newSender(t, s.Conn, s.serveHTTP(t, rest.GateOptions{}), "gh")
		admin := kagziv1.NewAdminServiceClient(s.Conn)
		newer := gh
		rotate := func(overlap time.Duration) error {
			answer, err := admin.RotateHook(t.Context(), &kagziv1.RotateHookRequest{Name: "gh",
				Overlap: durationpb.New(overlap)})
			if err == nil {
				newer.secret = answer.GetSecret()
			}
			return err
		}
		if err := rotate(time.Hour); err != nil {
			t.Fatal(err)
		}
		gh.send(200, "1", "1", nil)
		newer.send(200, "2", "2", nil)
		if err := rotate(time.Hour); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("a rotation during another one: %v", err)
		}
		replaced := newer
		if err := rotate(0); err != nil {
			t.Fatal(err)
		}
		gh.send(401, "3", "3", nil)
		replaced.send(401, "3", "3", nil)
		newer.send(200, "3", "3", nil)

		// Once calls need a key, deliveries still need only their signature.
		if _, err := admin.CreateKey(t.Context(), &kagziv1.CreateKeyRequest{Key: &kagziv1.Key{Name: "root",
			Role: kagziv1.KeyRole_KEY_ROLE_ADMIN}}); err != nil {
			t.Fatal(err)
		}
		newer.send(200, "4", "4", nil)
		newer.send(401, "5", "5", map[string]string{"X-Hub-Signature-256": "sha256=00"})
		if err := s.Store.DeleteHook(t.Context(), engine.DeleteHookParams{Namespace: "default", Name: "gh",
			AuditID: engine.NewID(time.Now()), Now: s.Store.Now()}); err != nil {
			t.Fatal(err)
		}
		newer.send(401, "6", "6", nil)
	})
}

func TestTwoServersStartOneRunForADelivery(t *testing.T) {
	t.Parallel()
	url := freshURL(t, "postgres")
	one, other := New(t, openStore(t, url), Options{}), New(t, openStore(t, url), Options{})
	gh := newSender(t, one.Conn, one.serveHTTP(t, rest.GateOptions{}), "gh")
	there := gh
	there.url = other.serveHTTP(t, rest.GateOptions{}) + gh.url[strings.Index(gh.url, engine.HookPath):]
	const deliveries = 15 // four times as many at once; a server takes 64 of an address
	var group sync.WaitGroup
	runs := make([]string, 4*deliveries)
	for i := range runs {
		to := []sender{gh, there}[i%2]
		group.Go(func() {
			// each body comes four times, to two servers and under two ids, at once
			runs[i] = to.send(200, fmt.Sprintf("%d-%d", i/4, i%4/2), fmt.Sprint(i/4), nil).at("runId")
		})
	}
	group.Wait()
	for i, run := range runs {
		if run == "" || run != runs[i/4*4] {
			t.Errorf("delivery %d has run %q, and the first of its body %q", i, run, runs[i/4*4])
		}
	}
	if n := len(startedRuns(t, one.Conn)); n != deliveries {
		t.Errorf("%d runs, want %d", n, deliveries)
	}
}

// hookCrashes returns where the server dies while it takes deliveries.
func hookCrashes(backend string) []string {
	return []string{"hook.verified:5", backend + ".before_commit:5", backend + ".after_commit:5", "hook.verified:5"}
}

func TestADeliveryIsCountedOnceWhereverTheServerDies(t *testing.T) {
	if raced && testing.Short() {
		t.Skip("the server is a process of its own, which the race detector does not see")
	}
	eachBackend(t, func(t *testing.T, url string) {
		backend, _, _ := strings.Cut(url, ":")
		points := hookCrashes(backend)
		p := runProcessWith(t, url, FreeAddress(t), points)
		conn, err := grpc.NewClient(p.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		gh := newSender(t, conn, "http://"+p.http, "gh")
		const deliveries = 40
		for i := range deliveries {
			var run string
			eventually(t, "the delivery is answered", func() bool { // the sender sends it again until it is
				code, text, err := gh.try(fmt.Sprint(i), fmt.Sprintf(`{"n":%d}`, i), nil)
				run = answered{text: text}.at("runId")
				return err == nil && code == http.StatusOK
			})
			if run == "" {
				t.Fatalf("delivery %d has no run", i)
			}
		}
		if n := len(startedRuns(t, conn)); n != deliveries {
			t.Errorf("%d runs, want %d", n, deliveries)
		}
		p.stop()
		if p.deaths != len(points) {
			t.Errorf("the server died %d times, want at each of %v", p.deaths, points)
		}
		checkDatabase(t, url)
	})
}
