package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestWhoFailsTooOftenIsAnsweredLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &strangers{}
		took := func(host string) time.Duration {
			began := time.Now()
			s.hold(t.Context(), host)
			return time.Since(began)
		}
		for i := range strangersFree {
			if d := took("a"); d != 0 {
				t.Errorf("failure %d took %s", i+1, d)
			}
		}
		if d := took("a"); d != strangersDelay {
			t.Errorf("one too many took %s, want %s", d, strangersDelay)
		}
		if d := took("b"); d != 0 {
			t.Errorf("another address waited %s", d)
		}
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		began := time.Now()
		if s.hold(gone, "a"); time.Since(began) != 0 {
			t.Errorf("who hung up was waited for %s", time.Since(began))
		}
		if s.waiting != 0 {
			t.Errorf("%d are waiting when all have been answered: soon nobody would be late any more", s.waiting)
		}
		time.Sleep(time.Second)
		if d := took("a"); d != 0 {
			t.Errorf("a second later it took %s", d)
		}
		for i := range 3 * strangersMost {
			s.enter(fmt.Sprint(i), time.Now())
		}
		if len(s.failed) > strangersMost+1 || s.waiting > strangersHeld {
			t.Errorf("%d addresses are told apart and %d wait, which has no bound", len(s.failed), s.waiting)
		}
	})
}

// TestAnAddressIsTheSameByEachOfItsConnections, or whoever tries secrets would need no more than a new one for each.
func TestAnAddressIsTheSameByEachOfItsConnections(t *testing.T) {
	for name, c := range map[string]struct {
		from net.Addr
		want string
	}{
		"IPv4":     {&net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 40_000}, "192.0.2.7"},
		"IPv6":     {&net.TCPAddr{IP: net.ParseIP("2001:db8::7"), Port: 40_000}, "2001:db8::7"},
		"a socket": {&net.UnixAddr{Name: "@", Net: "unix"}, "@"},
		"none":     {nil, ""},
	} {
		if got := hostOf(peer.NewContext(t.Context(), &peer.Peer{Addr: c.from})); got != c.want {
			t.Errorf("%s: the address is %q, want %q", name, got, c.want)
		}
	}
}

func TestAValidKeyIsNotHeldUpByTheFailuresOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, conn, _, secrets := guarded(t)
		admin := kagziv1.NewAdminServiceClient(conn)
		for range 2 * strangersFree {
			s.strangers.enter("bufconn", time.Now())
		}
		began := time.Now()
		if _, err := admin.WhoAmI(with(soon(t), secrets[engine.RoleClient]), &kagziv1.WhoAmIRequest{}); err != nil {
			t.Error(err)
		}
		valid := time.Since(began)
		if _, err := admin.WhoAmI(soon(t), &kagziv1.WhoAmIRequest{}); status.Code(err) != codes.Unauthenticated {
			t.Errorf("without a key: %v", err)
		}
		if all := time.Since(began); valid != 0 || all != strangersDelay {
			t.Errorf("a valid key took %s and a missing one %s, want the second alone late by %s", valid, all-valid, strangersDelay)
		}
	})
}

func TestRefusalsAreRecordedAFewASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, log := &locksmith{}, &bytes.Buffer{}
		s := New(l, nil, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
		for range 1000 {
			s.noteRefusal(t.Context(), engine.AuditEvent{Method: "PauseWorkflow"})
		}
		if n := len(l.recorded()); n != refusalsNoted {
			t.Errorf("%d of a thousand refusals are recorded, want %d", n, refusalsNoted)
		}
		time.Sleep(time.Second)
		s.noteRefusal(t.Context(), engine.AuditEvent{Method: "PauseWorkflow"})
		if n := len(l.recorded()); n != refusalsNoted+1 || s.refused.left() != 0 || !strings.Contains(log.String(), "count=990") {
			t.Errorf("a second later %d are recorded, %d not told, and the log says %s", n, s.refused.left(), log.String())
		}
	})
}

func TestARefusalSaysWhoWantedWhat(t *testing.T) {
	s, conn, l, secrets := guarded(t)
	runs := kagziv1.NewWorkflowServiceClient(conn)
	ctx := with(soon(t), secrets[engine.RoleViewer])
	_, _ = runs.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{Namespace: "vault", RunId: servertest.AnID}) // changes nothing: no record
	_, _ = runs.PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{Namespace: "team", RunId: servertest.AnID})
	_, _ = runs.TerminateWorkflow(with(soon(t), secrets[engine.RoleOperator]), &kagziv1.TerminateWorkflowRequest{Namespace: "vault", RunId: "no id"})
	_, _ = runs.TerminateWorkflow(with(soon(t), secrets[engine.RoleOperator]), &kagziv1.TerminateWorkflowRequest{Namespace: "No Name", RunId: servertest.AnID})
	expired := l.make(engine.APIKey{Name: "expired", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(-time.Second)})
	s.Ring(engine.Ring{Kind: engine.RingKeys})
	for range 3 { // a worker that knocks again and again leaves one record
		_, _ = runs.GetWorkflow(with(soon(t), expired), &kagziv1.GetWorkflowRequest{RunId: servertest.AnID})
	}
	l.revoke("the-client") // which this server has seen valid
	s.Ring(engine.Ring{Kind: engine.RingKeys})
	_, err := runs.GetWorkflow(with(soon(t), secrets[engine.RoleClient]), &kagziv1.GetWorkflowRequest{RunId: servertest.AnID})
	if !strings.Contains(status.Convert(err).Message(), `"the-client" has expired or was revoked`) {
		t.Errorf("who has a key that was revoked is told %v", err)
	}
	stream := func(role engine.KeyRole, method string, first proto.Message) {
		t.Helper()
		call, err := conn.NewStream(with(soon(t), secrets[role]), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/kagzi.v1."+method)
		if err != nil {
			t.Fatal(err)
		}
		_ = call.SendMsg(first)
		_ = call.CloseSend()
		if err := call.RecvMsg(&emptypb.Empty{}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v, want PERMISSION_DENIED", method, err)
		}
	}
	stream(engine.RoleViewer, "WorkflowService/ImportWorkflow", &kagziv1.Capsule{Namespace: "team"}) // refused before it says what it is about
	stream(engine.RoleOperator, "WorkflowService/BulkWorkflows", &kagziv1.BulkWorkflowsRequest{Filter: &kagziv1.ListWorkflowsRequest{Namespace: "vault"}})
	stream(engine.RoleWorker, "WorkerService/Session", &kagziv1.SessionRequest{Operation: &kagziv1.SessionRequest_Hello{
		Hello: &kagziv1.RegisterRequest{Namespace: "vault", WorkerId: "w", WorkflowTypes: []string{"t"}},
	}})
	var got []string
	for _, e := range l.recorded() {
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
		"expired|GetWorkflow||key|" + l.keys[len(l.keys)-1].ID.String() + "|UNAUTHENTICATED",
		"the-client|GetWorkflow||key|" + l.named("the-client").ID.String() + "|UNAUTHENTICATED",
		"the-viewer|ImportWorkflow||||PERMISSION_DENIED",
		"the-operator|BulkWorkflows|vault|namespace|vault|PERMISSION_DENIED",
		"the-worker|Session|vault|worker|w|PERMISSION_DENIED",
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
