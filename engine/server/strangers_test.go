package server

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
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
	_, _ = runs.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{Namespace: "vault", RunId: anID}) // changes nothing: no record
	_, _ = runs.PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{Namespace: "team", RunId: anID})
	_, _ = runs.TerminateWorkflow(with(soon(t), secrets[engine.RoleOperator]), &kagziv1.TerminateWorkflowRequest{Namespace: "vault", RunId: "no id"})
	expired := l.make(engine.APIKey{Name: "expired", Role: engine.RoleAdmin, ExpiresAt: l.Now().Add(-time.Second)})
	s.Ring(engine.Ring{Kind: engine.RingKeys})
	for range 3 { // a worker that knocks again and again leaves one record
		_, _ = runs.GetWorkflow(with(soon(t), expired), &kagziv1.GetWorkflowRequest{RunId: anID})
	}
	var got []string
	for _, e := range l.recorded() {
		if e.ID.IsZero() || e.At.IsZero() || e.Actor.Peer == "" || e.Detail == "" {
			t.Errorf("the event %+v lacks something", e)
		}
		name, _, _ := strings.Cut(e.Actor.Name, " (")
		got = append(got, strings.Join([]string{name, e.Method, e.Namespace, e.Subject, e.SubjectID, e.Outcome}, "|"))
	}
	want := []string{
		"the-viewer|PauseWorkflow|team|run|" + anID + "|PERMISSION_DENIED",
		"the-operator|TerminateWorkflow|vault|run||PERMISSION_DENIED",
		"expired|GetWorkflow||key|" + l.keys[len(l.keys)-1].ID.String() + "|UNAUTHENTICATED",
	}
	if !slices.Equal(got, want) {
		t.Errorf("recorded\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
