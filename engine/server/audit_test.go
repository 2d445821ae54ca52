package server

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	"github.com/kagzi/kagzi/engine/server/rest/resttest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestARefusalSaysWhoWantedWhat(t *testing.T) {
	for _, door := range []string{"gRPC", "HTTP"} {
		t.Run(door, func(t *testing.T) {
			s, conn, l, secrets := guarded(t)
			if door == "gRPC" {
				refusalsSayWhoWantedWhat(t, s, conn, l, secrets)
				return
			}
			over := resttest.Conn{Handler: httpOf(t, s), URL: "http://localhost"}
			refusalsSayWhoWantedWhat(t, s, over, l, secrets)
		})
	}
}

func refusalsSayWhoWantedWhat(t *testing.T, s *Server, conn grpc.ClientConnInterface, l *servertest.KeyStore,
	secrets map[engine.KeyRole]string) {
	t.Helper()
	runs := kagziv1.NewWorkflowServiceClient(conn)
	ctx := with(soon(t), secrets[engine.RoleViewer])
	// changes nothing: no record
	_, _ = runs.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{Namespace: "vault", RunId: servertest.AnID})
	_, _ = runs.PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{Namespace: "team", RunId: servertest.AnID})
	_, _ = runs.TerminateWorkflow(with(soon(t), secrets[engine.RoleOperator]),
		&kagziv1.TerminateWorkflowRequest{Namespace: "vault", RunId: "no id"})
	_, _ = runs.TerminateWorkflow(with(soon(t), secrets[engine.RoleOperator]),
		&kagziv1.TerminateWorkflowRequest{Namespace: "No Name", RunId: servertest.AnID})
	expired := l.Make(engine.APIKey{Name: "expired", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(-time.Second)})
	s.Notify(engine.Notification{Kind: engine.NotifyKeys})
	for range 3 { // a worker that knocks again and again leaves one record
		_, _ = runs.GetWorkflow(with(soon(t), expired), &kagziv1.GetWorkflowRequest{RunId: servertest.AnID})
	}
	l.Revoke("the-client") // which this server has seen valid
	s.Notify(engine.Notification{Kind: engine.NotifyKeys})
	_, err := runs.GetWorkflow(with(soon(t), secrets[engine.RoleClient]),
		&kagziv1.GetWorkflowRequest{RunId: servertest.AnID})
	if !strings.Contains(status.Convert(err).Message(), `"the-client" has expired or was revoked`) {
		t.Errorf("who has a key that was revoked is told %v", err)
	}
	stream := func(role engine.KeyRole, method string, first proto.Message) {
		t.Helper()
		call, err := conn.NewStream(with(soon(t), secrets[role]),
			&grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/kagzi.v1."+method)
		if err != nil {
			t.Fatal(err)
		}
		_ = call.SendMsg(first)
		_ = call.CloseSend()
		if err := call.RecvMsg(&emptypb.Empty{}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v, want PERMISSION_DENIED", method, err)
		}
	}
	// refused before it says what it is about
	stream(engine.RoleViewer, "WorkflowService/ImportWorkflow", &kagziv1.Capsule{Namespace: "team"})
	stream(engine.RoleOperator, "WorkflowService/BulkWorkflows",
		&kagziv1.BulkWorkflowsRequest{Filter: &kagziv1.ListWorkflowsRequest{Namespace: "vault"}})
	_, overHTTP := conn.(resttest.Conn) // which has no sessions
	if !overHTTP {
		stream(engine.RoleWorker, "WorkerService/Session", &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Hello{
			Hello: &kagziv1.RegisterRequest{Namespace: "vault", WorkerId: "w", WorkflowTypes: []string{"t"}},
		}})
	}
	var got []string
	for _, e := range l.Recorded() {
		if e.ID.IsZero() || e.At.IsZero() || e.Actor.Peer == "" || e.Detail == "" {
			t.Errorf("the event %+v lacks something", e)
		}
		name, _, _ := strings.Cut(e.Actor.Name, " (")
		got = append(got, strings.Join([]string{name, e.Method, e.Namespace, e.Subject, e.SubjectID, e.Outcome}, "|"))
	}
	want := []string{
		"the-viewer|PauseWorkflow|team|run|" + servertest.AnID + "|PERMISSION_DENIED",
		"the-operator|TerminateWorkflow|vault|run||PERMISSION_DENIED",
		"the-operator|TerminateWorkflow||run|" + servertest.AnID + "|PERMISSION_DENIED",
		"expired|GetWorkflow||key|" + l.Keys[len(l.Keys)-1].ID.String() + "|UNAUTHENTICATED",
		"the-client|GetWorkflow||key|" + l.Named("the-client").ID.String() + "|UNAUTHENTICATED",
		"the-viewer|ImportWorkflow||||PERMISSION_DENIED",
		"the-operator|BulkWorkflows|vault|namespace|vault|PERMISSION_DENIED",
		"the-worker|Session|vault|worker|w|PERMISSION_DENIED",
	}
	if overHTTP {
		want = want[:len(want)-1]
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
