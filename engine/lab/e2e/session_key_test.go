package e2e

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// login starts a session of the server's key, and returns the server as the session sees it.
func (s *Server) login(t testing.TB) (*Server, *kagziv1.CreateSessionResponse) {
	t.Helper()
	made := fine(s.admin().CreateSession(within(t, 20*time.Second), &kagziv1.CreateSessionRequest{}))(t)
	return s.as(t, made.Secret), made
}

func TestASessionIsKnownToEveryServerAndEndsOnAll(t *testing.T) {
	eachPair(t, patient, func(t *testing.T, one, other *Server) {
		ctx := within(t, time.Minute)
		root := one.lock(t)
		_, secret := root.key(t, &kagziv1.Key{Name: "team", Role: viewer, Namespaces: []string{"default"}})
		here, made := one.as(t, secret).login(t)
		there := other.as(t, made.Secret)
		began := time.Now()
		for { // the other server may not know of the keys yet
			me, err := there.admin().WhoAmI(ctx, &kagziv1.WhoAmIRequest{})
			if err == nil && me.Key.GetName() == "team" && me.SessionExpiresAt != nil {
				break
			}
			if time.Since(began) > 5*time.Second {
				t.Fatalf("%s after its start, a session at the other server: %v, %v", time.Since(began), me, err)
			}
		}
		run := root.start(t)
		watch := fine(there.workflows().WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{RunId: run}))(t)
		fine(watch.Recv())(t)
		fine(here.admin().EndSession(ctx, &kagziv1.EndSessionRequest{}))(t)
		ended := time.Now()
		_, err := here.admin().WhoAmI(ctx, &kagziv1.WhoAmIRequest{})
		wantRefused(t, "a session that was ended here", err, codes.Unauthenticated,
			kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED, "log in again")
		for {
			if _, err = watch.Recv(); err != nil {
				break
			}
		}
		if took := time.Since(ended); status.Code(err) != codes.Unauthenticated || took > 6*time.Second {
			t.Errorf("an open call in the session ended after %s with %v, want UNAUTHENTICATED within 5 s", took, err)
		}
		_, err = there.admin().WhoAmI(ctx, &kagziv1.WhoAmIRequest{})
		wantRefused(t, "a session that was ended there", err, codes.Unauthenticated,
			kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED, "log in again")
	})
}

func TestASessionOutlivesARestartAndNotItsKey(t *testing.T) {
	eachBackend(t, func(t *testing.T, url string) {
		s := New(t, openStore(t, url), patient)
		ctx := within(t, time.Minute)
		root := s.lock(t)
		key, secret := root.key(t, &kagziv1.Key{Name: "team", Role: operator, Namespaces: []string{"default"}})
		_, made := s.as(t, secret).login(t)
		_, of := root.login(t)
		s.Stop()
		s = New(t, openStore(t, url), patient)
		in := s.as(t, made.Secret)
		if me := fine(in.admin().WhoAmI(ctx, &kagziv1.WhoAmIRequest{}))(t); me.Key.GetName() != "team" {
			t.Errorf("after a restart I am %v", me)
		}
		run := in.start(t)
		fine(in.workflows().CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: run}))(t)
		fine(s.as(t, of.Secret).admin().RevokeKey(ctx, &kagziv1.RevokeKeyRequest{KeyId: key.KeyId}))(t)
		_, err := in.admin().WhoAmI(ctx, &kagziv1.WhoAmIRequest{})
		wantRefused(t, "a session of a revoked key", err, codes.Unauthenticated,
			kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED, "session has ended")
		events := fine(s.as(t, of.Secret).admin().ListAuditEvents(ctx, &kagziv1.ListAuditEventsRequest{
			Namespace: "default", SubjectId: &run}))(t).Events
		if len(events) != 1 || events[0].Actor != "team ("+key.KeyId+") session "+made.SessionId {
			t.Errorf("the audit names %v, want the key and its session", events)
		}
	})
}

func TestNoLogNorAnswerTellsTheSecretOfASession(t *testing.T) {
	eachBackend(t, func(t *testing.T, url string) {
		log := &syncBuffer{}
		o := patient
		o.Server.Log = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		s := New(t, openStore(t, url), o)
		ctx := within(t, time.Minute)
		root := s.lock(t)
		in, made := root.login(t)
		told := fmt.Sprint(fine(in.admin().ListAuditEvents(ctx, &kagziv1.ListAuditEventsRequest{}))(t),
			fine(in.admin().ListKeys(ctx, &kagziv1.ListKeysRequest{}))(t),
			fine(in.admin().WhoAmI(ctx, &kagziv1.WhoAmIRequest{}))(t))
		fine(in.admin().EndSession(ctx, &kagziv1.EndSessionRequest{}))(t)
		for _, bad := range []string{made.Secret, made.Secret[:40], made.Secret + "0"} {
			_, err := s.as(t, bad).admin().WhoAmI(ctx, &kagziv1.WhoAmIRequest{})
			if status.Code(err) != codes.Unauthenticated {
				t.Errorf("%.10s… is answered with %v", bad, err)
			}
			told += fmt.Sprint(err)
		}
		s.Stop()
		random := strings.Split(made.Secret, "_")[2]
		for what, text := range map[string]string{"the log": log.text(), "an answer": told} {
			if strings.Contains(text, random) || strings.Contains(text, random[:20]) {
				t.Errorf("%s holds the secret of a session", what)
			}
		}
		if !strings.Contains(log.text(), `"call refused"`) {
			t.Error("the log tells nothing of refused calls: it was not kept")
		}
	})
}
