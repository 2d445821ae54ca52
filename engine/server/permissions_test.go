package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/secret"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	"github.com/kagzi/kagzi/engine/server/rest"
	"github.com/kagzi/kagzi/engine/server/rest/resttest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/routes"
)

// may says what each role may call. It repeats the table, so that a change of the table needs two
// edits.
var may = map[engine.KeyRole]string{
	engine.RoleOperator: readingOf + startingOf + readOnlyOf + sessionsOf + `
		TerminateWorkflow PauseWorkflow ResumeWorkflow RetryWorkflow OverrideStep PinWorkflow
		BulkWorkflows ImportWorkflow ExportWorkflow
		DrainWorker ForceOfflineWorker
		CreateWorkflowSchedule UpdateWorkflowSchedule DeleteWorkflowSchedule TriggerWorkflowSchedule
		BackfillWorkflowSchedule PauseWorkflowSchedule ResumeWorkflowSchedule
		CreateHook RotateHook DeleteHook`,
	engine.RoleClient: readingOf + startingOf + sessionsOf,
	engine.RoleViewer: readingOf + readOnlyOf + sessionsOf,
	engine.RoleWorker: `GetServerInfo WhoAmI ServerReflectionInfo
		Register Session Heartbeat Deregister PollTask GetHistory BeginStep CompleteStep FailStep Sleep
		AwaitSignal StartChild AwaitChildren
		CompleteWorkflow FailWorkflow ReleaseTask SetRunNote`,
}

const (
	readingOf = ` GetWorkflow GetWorkflowByExternalId ListWorkflows WaitWorkflow AwaitWorkflows WatchWorkflow ExplainWorkflow ListSignals GetStep ListSteps
		GetServerInfo GetStats WatchStats GetQueueDepth ListWorkflowTypes Watch WhoAmI GetNamespace ListNamespaces
		GetWorkflowSchedule ListWorkflowSchedules ListScheduleRuns PreviewSchedule ServerReflectionInfo `
	startingOf = ` StartWorkflow StartWorkflows CancelWorkflow SignalWorkflow `
	readOnlyOf = ` ListWorkers GetWorker MatchWorkers ListAuditEvents GetHook ListHooks `
	sessionsOf = ` CreateSession EndSession `
	opened     = ` HealthCheck Check List `

	// adminsReading and workingOf hold methods without audit records that are in none of the lists
	// of readers.
	adminsReading = ` ExportWorkflow Backup ListKeys GetActivity WatchEvents `
	workingOf     = ` Heartbeat Deregister PollTask GetHistory BeginStep CompleteStep FailStep Sleep AwaitSignal StartChild AwaitChildren
		CompleteWorkflow FailWorkflow ReleaseTask SetRunNote `
)

// registered calls f with every method that a server has.
func registered(s *Server, f func(name string, method protoreflect.MethodDescriptor)) {
	for service, info := range s.grpc.GetServiceInfo() {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
		if err != nil {
			panic(err)
		}
		for _, m := range info.Methods {
			method := found.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(m.Name))
			f("/"+service+"/"+m.Name, method)
		}
	}
}

func TestTheTableOfPermissionsHasEveryMethodAndNoOther(t *testing.T) {
	s := New(servertest.StubStore{}, nil, Options{})
	stale := maps.Clone(auth.Permissions)
	registered(s, func(name string, method protoreflect.MethodDescriptor) {
		r, known := auth.Permissions[name]
		delete(stale, name)
		switch {
		case !known:
			t.Errorf("%s is not in the table: decide who may call it", name)
		case !r.NoKey && (r.Scope == nil || !r.Roles.Has(engine.RoleAdmin)):
			t.Errorf("%s has no scope, or is closed to admins", name)
		case r.NoKey && (r.Roles != 0 || r.Scope != nil):
			t.Errorf("%s is open, and has roles", name)
		case r.LongPoll && (method.IsStreamingClient() || method.IsStreamingServer()):
			t.Errorf("%s is a stream, which ends with its key in any case", name)
		case !r.LongPoll && !method.IsStreamingServer() && method.Input().Fields().ByName("wait") != nil:
			t.Errorf("%s may wait for long, and would not end with its key", name)
		}
		unrecorded := slices.Contains(strings.Fields(readingOf+readOnlyOf+opened+adminsReading+workingOf),
			string(method.Name()))
		if !r.NoKey && r.Changes == unrecorded {
			t.Errorf("%s: that a refusal goes to the audit log is %v, want %v", name, r.Changes, !unrecorded)
		}
		if holds := r.Roles.Has(engine.RoleViewer) && holdsPayload(method.Output(), nil); holds != r.Redact {
			t.Errorf("%s: redact is %v, but that a viewer can be sent payloads is %v", name, r.Redact, holds)
		}
	})
	for name := range stale {
		t.Errorf("%s is in the table, and no method", name)
	}
}

// holdsPayload says whether a message can hold a payload.
func holdsPayload(m protoreflect.MessageDescriptor, seen []protoreflect.FullName) bool {
	if m.FullName() == "kagzi.v1.Payload" {
		return true
	}
	if slices.Contains(seen, m.FullName()) {
		return false
	}
	for i := range m.Fields().Len() {
		if inner := m.Fields().Get(i).Message(); inner != nil && holdsPayload(inner, append(seen, m.FullName())) {
			return true
		}
	}
	return false
}

// ask makes one call over gRPC and over HTTP, and returns its result: "in" if the call was accepted.
func ask(t *testing.T, s *Server, conn *grpc.ClientConn, header []string, method protoreflect.MethodDescriptor,
	request proto.Message) string {
	t.Helper()
	got := askOver(t, conn, header, method, request)
	path := "/" + string(method.Parent().FullName()) + "/" + string(method.Name())
	if slices.ContainsFunc(routes.All, func(r routes.Route) bool { return r.Method == path }) {
		over := resttest.Conn{Handler: httpOf(t, s), URL: "http://localhost", Empty: "x"}
		if other := askOver(t, over, header, method, request); other != got {
			t.Errorf("%s: %s over HTTP, %s over gRPC", method.Name(), other, got)
		}
	}
	return got
}

func askOver(t *testing.T, conn grpc.ClientConnInterface, header []string, method protoreflect.MethodDescriptor,
	request proto.Message) string {
	t.Helper()
	ctx := soon(t)
	for _, h := range header {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", h)
	}
	err := call(ctx, conn, method, request)
	if _, ok := status.FromError(err); !ok && !errors.Is(err, io.EOF) {
		t.Errorf("%s: %v is no answer of the server", method.Name(), err)
	}
	switch code := status.Code(err); code {
	case codes.Unauthenticated:
		return "no key"
	case codes.PermissionDenied:
		return "denied"
	case codes.DeadlineExceeded:
		t.Fatalf("%s: %v", method.Name(), err)
	}
	return "in"
}

// httpOf returns the API of a server over HTTP.
func httpOf(t *testing.T, s *Server) http.Handler {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	gate, err := rest.NewGate(rest.GateOptions{Loopback: true, Keyless: s.Direct().Keyless, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	api, err := rest.New(s.Direct(), gate, log)
	if err != nil {
		t.Fatal(err)
	}
	return gate.Handler(api, rest.Types...)
}

// inNamespace is an empty request but for the namespace, which stands wherever the message has a
// place for it.
func inNamespace(method protoreflect.MethodDescriptor, namespace string) proto.Message {
	request := emptyRequest(method)
	switch r := request.(type) {
	case *kagziv1.StartWorkflowsRequest:
		r.Requests = []*kagziv1.StartWorkflowRequest{{Namespace: "team"}, {Namespace: namespace}}
	case *kagziv1.BulkWorkflowsRequest:
		r.Filter = &kagziv1.ListWorkflowsRequest{Namespace: namespace}
	case *kagziv1.StartChildRequest:
		r.Child = &kagziv1.StartWorkflowRequest{Namespace: namespace}
	case *kagziv1.SessionRequest:
		r.Operation = &kagziv1.SessionRequest_Hello{
			Hello: &kagziv1.RegisterRequest{Namespace: namespace, WorkflowTypes: []string{"t"}}}
	case *kagziv1.RegisterRequest:
		r.Namespace, r.WorkflowTypes = namespace, []string{"t"}
	default:
		if field := request.ProtoReflect().Descriptor().Fields().ByName("namespace"); field != nil {
			request.ProtoReflect().Set(field, protoreflect.ValueOfString(namespace))
		}
	}
	return request
}

// nameless are the methods whose requests name no namespace, and why that is well.
var nameless = map[string]string{
	"Heartbeat": "the worker's", "Deregister": "the worker's", "GetWorker": "the worker's",
	"DrainWorker":        "the worker's",
	"ForceOfflineWorker": "the worker's", "SetRunNote": "the key's are tried", "GetServerInfo": "of the server",
	"WhoAmI":        "of the caller",
	"CreateSession": "of the caller", "EndSession": "of the caller",
	"ListNamespaces": "the key's own", "PreviewSchedule": "of an expression", "ServerReflectionInfo": "of the contract",
}

func TestEveryMethodAcceptsTheRolesOfTheTable(t *testing.T) {
	synctest.Test(t, everyMethodAcceptsTheRolesOfTheTable) // in which answers that are late take no time
}

func everyMethodAcceptsTheRolesOfTheTable(t *testing.T) {
	s, conn, l, secrets := guarded(t)
	expired := l.Make(engine.APIKey{Name: "expired", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(-time.Second)})
	revoked := l.Make(engine.APIKey{Name: "revoked", Role: engine.RoleAdmin})
	l.Revoke("revoked")
	unknown, _ := secret.New(engine.RoleAdmin, engine.NewID(l.Now()))
	other, _ := secret.New(engine.RoleAdmin, l.Keys[0].ID)
	admin := secrets[engine.RoleAdmin]
	bad := map[string][]string{
		"none": nil, "an empty one": {""}, "no scheme": {admin}, "another scheme": {"Basic " + admin},
		"half":          {"Bearer " + admin[:40]},
		"a wrong digit": {"Bearer " + strings.Replace(admin, "_", "_0", 1)}, "unknown": {"Bearer " + unknown},
		"the secret of another": {"Bearer " + other},
		"two":                   {"Bearer " + admin, "Bearer " + admin}, "expired": {"Bearer " + expired},
		"revoked": {"Bearer " + revoked}, "long": {"Bearer " + strings.Repeat("kz_", 2000)},
	}
	registered(s, func(name string, method protoreflect.MethodDescriptor) {
		short := string(method.Name())
		if strings.HasPrefix(name, "/grpc.health") && short == "Watch" {
			return // it is open, and never ends
		}
		open := strings.HasPrefix(name, "/grpc.health") || slices.Contains(strings.Fields(opened), short)
		for what, header := range bad {
			want := "no key"
			if open {
				want = "in"
			}
			if got := ask(t, s, conn, header, method, inNamespace(method, "team")); got != want {
				t.Errorf("%s with the secret %s: %s, want %s", name, what, got, want)
			}
		}
		for role, secret := range secrets {
			header := []string{"Bearer " + secret}
			want, elsewhere := "denied", "denied"
			if open || role == engine.RoleAdmin || slices.Contains(strings.Fields(may[role]), short) {
				want = "in"
			}
			if want == "in" && (open || nameless[short] != "" || role == engine.RoleAdmin) {
				elsewhere = "in"
			}
			if got := ask(t, s, conn, header, method, inNamespace(method, "team")); got != want {
				t.Errorf("%s by the role %s: %s, want %s", name, role, got, want)
			}
			if got := ask(t, s, conn, header, method, inNamespace(method, "vault")); got != elsewhere {
				t.Errorf("%s by the role %s in a namespace of others: %s, want %s", name, role, got, elsewhere)
			}
		}
	})
}

func TestAnAdminOfSomeNamespacesIsNotOneOfAll(t *testing.T) {
	s, conn, l, _ := guarded(t)
	header := []string{"Bearer " + l.Make(engine.APIKey{
		Name: "team-admin", Role: engine.RoleAdmin, Namespaces: []string{"team"}})}
	everywhere := []string{"Backup", "CreateKey", "ListKeys", "RevokeKey", "GetActivity", "WatchEvents"}
	registered(s, func(name string, method protoreflect.MethodDescriptor) {
		short := string(method.Name())
		if strings.HasPrefix(name, "/grpc.health") {
			return
		}
		want, elsewhere := "in", "denied"
		if slices.Contains(everywhere, short) {
			want = "denied"
		} else if nameless[short] != "" || short == "HealthCheck" {
			elsewhere = "in"
		}
		if got := ask(t, s, conn, header, method, inNamespace(method, "team")); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if got := ask(t, s, conn, header, method, inNamespace(method, "vault")); got != elsewhere {
			t.Errorf("%s in a namespace of others: %s, want %s", name, got, elsewhere)
		}
		// An empty namespace is "default", which is not this key's either, or means all of them.
		if field := method.Input().Fields().ByName("namespace"); field != nil {
			if got := ask(t, s, conn, header, method, inNamespace(method, "")); got != "denied" {
				t.Errorf("%s without a namespace: %s, want denied", name, got)
			}
		}
	})
}

func TestARefusalIsTheSameWhetherTheNamespaceExistsOrNot(t *testing.T) {
	_, conn, _, secrets := guarded(t)
	ctx := with(soon(t), secrets[engine.RoleClient])
	_, err := kagziv1.NewWorkflowServiceClient(conn).GetWorkflow(
		ctx, &kagziv1.GetWorkflowRequest{Namespace: "vault", RunId: servertest.AnID})
	want := `the API key "the-client" is not for the namespace "vault"`
	if status.Code(err) != codes.PermissionDenied || status.Convert(err).Message() != want {
		t.Errorf("%v, want PERMISSION_DENIED: %s", err, want)
	}
	if detail := servertest.DetailOf(t, err); detail.Code != kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED ||
		!detail.NonRetryable {
		t.Errorf("its detail is %v", detail)
	}
	_, err = kagziv1.NewWorkflowServiceClient(conn).PauseWorkflow(
		ctx, &kagziv1.PauseWorkflowRequest{RunId: servertest.AnID})
	want =
		`the API key "the-client" has the role client, which may not call WorkflowService/PauseWorkflow; it takes admin, operator`
	if status.Convert(err).Message() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestWithoutKeysAndInProcessNoCallNeedsAKey(t *testing.T) {
	for _, l := range []*servertest.KeyStore{{}, {Notifications: "trusted"}} {
		options := Options{DrainTimeout: time.Second}
		if l.Notifications == "trusted" {
			l.Make(engine.APIKey{Name: "root", Role: engine.RoleAdmin})
			options.Trusted = true
		}
		s, conn := serveWith(t, l, options)
		registered(s, func(name string, method protoreflect.MethodDescriptor) {
			if strings.HasPrefix(name, "/grpc.health") ||
				slices.Contains([]string{"Watch", "WatchEvents"}, string(method.Name())) {
				return
			}
			if got := ask(t, s, conn, nil, method, emptyRequest(method)); got != "in" {
				t.Errorf("%s: %s, want it let in (%s)", name, got, fmt.Sprint(l.Notifications))
			}
		})
	}
}

// TestAReachableServerNeedsAKeyEvenIfNoneExists: revoking the last key must not open the server.
func TestAReachableServerNeedsAKeyEvenIfNoneExists(t *testing.T) {
	synctest.Test(t, serverThatOthersReachNeedsAKey) // in which answers that are late take no time
}

func serverThatOthersReachNeedsAKey(t *testing.T) {
	s, conn := serveWith(t, &servertest.KeyStore{Notifications: "in-process"},
		Options{DrainTimeout: time.Second, NeedKey: true})
	registered(s, func(name string, method protoreflect.MethodDescriptor) {
		want := "no key"
		if auth.Permissions[name].NoKey {
			want = "in"
		}
		if strings.HasPrefix(name, "/grpc.health") && string(method.Name()) == "Watch" {
			return // it is open, and never ends
		}
		if got := ask(t, s, conn, nil, method, emptyRequest(method)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	})
}

func TestAWorkersKeyReadsHistoryOnlyOfRunsItCouldClaim(t *testing.T) {
	id := engine.NewID(time.Now())
	l := &servertest.KeyStore{Notifications: "in-process",
		Runs: map[engine.ID]engine.Run{id: {ID: id, Namespace: "team", Queue: "mail", Type: "send"}}}
	l.Make(engine.APIKey{Name: "root", Role: engine.RoleAdmin})
	s, conn := serve(t, l)
	worker := kagziv1.NewWorkerServiceClient(conn)
	for name, c := range map[string]struct {
		key  engine.APIKey
		want codes.Code // INTERNAL: it was let in
	}{
		"for all of its namespace": {engine.APIKey{}, codes.Internal},
		"for the queue":            {engine.APIKey{Queues: []string{"mail"}}, codes.Internal},
		"for another queue":        {engine.APIKey{Queues: []string{"print"}}, codes.NotFound},
		"for the type":             {engine.APIKey{Types: []string{"send"}}, codes.Internal},
		"for another type":         {engine.APIKey{Types: []string{"print"}}, codes.NotFound},
		"for the queue and another type": {engine.APIKey{Queues: []string{"mail"}, Types: []string{"print"}},
			codes.NotFound},
		"for the type and another queue": {engine.APIKey{Queues: []string{"print"}, Types: []string{"send"}},
			codes.NotFound},
		"for the queue, of other namespaces": {engine.APIKey{
			Queues: []string{"mail"}, Namespaces: []string{"elsewhere"}}, codes.PermissionDenied},
	} {
		if c.key.Name, c.key.Role = name, engine.RoleWorker; c.key.Namespaces == nil {
			c.key.Namespaces = []string{"team"}
		}
		secret := l.Make(c.key)
		s.Notify(engine.Notification{Kind: engine.NotifyKeys})
		_, err := worker.GetHistory(with(soon(t), secret),
			&kagziv1.GetHistoryRequest{Namespace: "team", RunId: id.String()})
		if status.Code(err) != c.want {
			t.Errorf("a key %s: %v, want %s", name, err, c.want)
		}
	}
}
