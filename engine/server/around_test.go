package server

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// serverOver is a server over a store, for calls that need no connection.
func serverOver(b *servertest.Books) *Server {
	return New(b, nil, Options{})
}

func TestACancelTellsWhetherTheRunEndedOrMustStop(t *testing.T) {
	until := servertest.Began.Add(time.Minute)
	b := &servertest.Books{End: engine.RunEnd{Status: engine.RunRunning, Changed: true, GraceUntil: until}}
	s := serverOver(b)
	answer, err := s.CancelWorkflow(t.Context(),
		&kagziv1.CancelWorkflowRequest{RunId: servertest.AnID, Grace: durationpb.New(time.Minute), Reason: "enough"})
	p := servertest.Last[engine.EndRunParams](b)
	if err != nil || answer.Cancelled || !answer.Requested || !answer.GraceUntil.AsTime().Equal(until) ||
		p.Grace != time.Minute || p.Reason != "enough" {
		t.Errorf("told: %v, %v, asked with %+v", answer, err, p)
	}
	if p.By.Name != "local" || p.AuditID.IsZero() {
		t.Errorf("asked by %+v, noted as %s", p.By, p.AuditID)
	}
	if s.recorder.Mark().Finished != 0 {
		t.Error("a run whose code was told counts as finished")
	}
	b.End = engine.RunEnd{Status: engine.RunCancelled, Changed: true}
	answer, err = s.CancelWorkflow(t.Context(), &kagziv1.CancelWorkflowRequest{RunId: servertest.AnID})
	if err != nil || !answer.Cancelled || answer.Requested || s.recorder.Mark().Finished != 1 {
		t.Errorf("ended: %v, %v", answer, err)
	}
}

func TestTheActorIsWhereTheCallCameFrom(t *testing.T) {
	b := &servertest.Books{}
	_, conn := serve(t, b)
	if _, err := kagziv1.NewWorkflowServiceClient(conn).PauseWorkflow(
		t.Context(), &kagziv1.PauseWorkflowRequest{RunId: servertest.AnID, Reason: "why", Now: true}); err != nil {
		t.Fatal(err)
	}
	p := servertest.Last[engine.PauseRunParams](b)
	if p.By != (engine.Actor{Name: "local", Peer: "bufconn"}) || p.Reason != "why" || p.Namespace != "default" ||
		!p.AtOnce || p.RunID.String() != servertest.AnID {
		t.Errorf("asked with %+v", p)
	}
}

func TestAnOverrideSaysWhoAndWhy(t *testing.T) {
	b := &servertest.Books{}
	answer, err := serverOver(b).OverrideStep(t.Context(), &kagziv1.OverrideStepRequest{
		RunId: servertest.AnID, StepName: "s", Reason: "why",
		Result: &kagziv1.OverrideStepRequest_Error{Error: &kagziv1.ErrorDetail{Message: "m"}},
	})
	p := servertest.Last[engine.OverrideStepParams](b)
	if err != nil || answer.Step.OverriddenBy != "local" || answer.Step.OverrideReason != "why" || p.Output != nil ||
		p.Failure.Message != "m" {
		t.Errorf("%v, %v, asked with %+v", answer, err, p)
	}
	if _, err = serverOver(b).OverrideStep(t.Context(), &kagziv1.OverrideStepRequest{
		RunId: servertest.AnID, StepName: "s", Reason: "why",
		Result: &kagziv1.OverrideStepRequest_Output{Output: &kagziv1.Payload{Data: []byte("o")}},
	}); err != nil {
		t.Fatal(err)
	}
	if p := servertest.Last[engine.OverrideStepParams](b); p.Failure != nil || string(p.Output.Data) != "o" {
		t.Errorf("asked with %+v", p)
	}
}

func TestARepeatedSignalIsToldApart(t *testing.T) {
	for id, want := range map[string]bool{"first": false, "again": true} {
		answer, err := serverOver(&servertest.Books{}).SignalWorkflow(
			t.Context(), &kagziv1.SignalWorkflowRequest{RunId: servertest.AnID, Name: "go", SignalId: id})
		if err != nil || answer.AlreadyDelivered != want {
			t.Errorf("%s: %v, %v", id, answer, err)
		}
	}
}

func TestKeepRoundTrips(t *testing.T) {
	keep := map[string]*durationpb.Duration{}
	for name := range wire.Outcomes {
		keep[name] = durationpb.New(time.Hour + time.Duration(len(name))*time.Minute)
	}
	b := &servertest.Books{}
	answer, err := serverOver(b).CreateNamespace(
		t.Context(), &kagziv1.CreateNamespaceRequest{
			Namespace: "team", Keep: keep, Retention: durationpb.New(time.Hour)})
	if err != nil || !answer.Namespace.Enabled || answer.Namespace.Retention.AsDuration() != time.Hour ||
		len(answer.Namespace.Keep) != 5 {
		t.Fatalf("%v, %v", answer, err)
	}
	for name, d := range keep {
		if !proto.Equal(answer.Namespace.Keep[name], d) {
			t.Errorf("%s is kept %s, want %s", name, answer.Namespace.Keep[name], d)
		}
	}
}

func TestAnUpdateOfANamespaceChangesOnlyWhatItNames(t *testing.T) {
	was := engine.Namespace{
		Name: "team", DisplayName: "Team", Description: "d", Enabled: true, Retention: time.Hour, FailureQueue: "q",
		Keep: map[engine.RunStatus]time.Duration{engine.RunFailed: time.Hour},
	}
	for _, c := range []struct {
		what   string
		call   func(*Server) error
		change func(*engine.Namespace)
		method string
	}{
		{"a name", func(s *Server) error {
			_, err := s.UpdateNamespace(context.Background(),
				&kagziv1.UpdateNamespaceRequest{Namespace: "team", DisplayName: proto.String("T")})
			return err
		}, func(n *engine.Namespace) { n.DisplayName = "T" }, "UpdateNamespace"},
		{"all that can be taken away", func(s *Server) error {
			_, err := s.UpdateNamespace(context.Background(), &kagziv1.UpdateNamespaceRequest{
				Namespace: "team", Description: proto.String(""), Retention: &durationpb.Duration{},
				Keep: &kagziv1.Keep{}, FailureTaskQueue: proto.String(""),
			})
			return err
		}, func(n *engine.Namespace) {
			n.Description, n.Retention, n.Keep, n.FailureQueue = "", 0, nil, ""
		}, "UpdateNamespace"},
		{"off", func(s *Server) error {
			_, err := s.DisableNamespace(context.Background(), &kagziv1.DisableNamespaceRequest{Namespace: "team"})
			return err
		}, func(n *engine.Namespace) { n.Enabled = false }, "DisableNamespace"},
		{"on", func(s *Server) error {
			_, err := s.EnableNamespace(context.Background(), &kagziv1.EnableNamespaceRequest{Namespace: "team"})
			return err
		}, func(*engine.Namespace) {}, "EnableNamespace"},
	} {
		b := &servertest.Books{Namespaces: map[string]engine.Namespace{"team": was}}
		if err := c.call(serverOver(b)); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		want := was
		c.change(&want)
		p := servertest.Last[engine.NamespaceParams](b)
		if diff := cmp.Diff(want, p.Namespace); diff != "" || p.Method != c.method {
			t.Errorf("%s by %s:\n%s", c.what, p.Method, diff)
		}
	}
}

func TestOnlyTheFieldsThatARequestMaySetAreReadOfAKey(t *testing.T) {
	globs := make([]string, engine.MaxKeyGlobs+1)
	for i := range globs {
		globs[i] = fmt.Sprint("q", i)
	}
	for what, c := range map[string]struct {
		key   *kagziv1.Key
		field string
	}{
		"with an id":         {&kagziv1.Key{KeyId: servertest.AnID}, "key.key_id"},
		"made before":        {&kagziv1.Key{CreatedAt: timestamppb.Now()}, "key.created_at"},
		"used before":        {&kagziv1.Key{LastUsedAt: timestamppb.Now()}, "key.last_used_at"},
		"revoked":            {&kagziv1.Key{RevokedAt: timestamppb.Now()}, "key.revoked_at"},
		"for many queues":    {&kagziv1.Key{TaskQueues: globs}, "key.task_queues"},
		"for many types":     {&kagziv1.Key{WorkflowTypes: globs}, "key.workflow_types"},
		"without a real end": {&kagziv1.Key{ExpiresAt: &timestamppb.Timestamp{Seconds: -1}}, "key.expires_at"},
	} {
		if _, err := keyOf(c.key); servertest.FieldOf(err) != c.field {
			t.Errorf("a key %s: %v, want it to name %s", what, err, c.field)
		}
	}
	got, err := keyOf(&kagziv1.Key{
		Name: "n", Role: kagziv1.KeyRole_KEY_ROLE_WORKER, Namespaces: []string{"b", "a", "b"}, TaskQueues: globs[1:],
		WorkflowTypes: []string{"t", "t"},
		ExpiresAt:     timestamppb.New(servertest.Began),
	})
	want := engine.APIKey{Name: "n", Role: engine.RoleWorker, Namespaces: []string{"a", "b"}, Queues: globs[1:],
		Types: []string{"t"}, ExpiresAt: servertest.Began}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("it is read otherwise, %v:\n%s", err, diff)
	}
}

func TestAPreviewShowsTheNextTicks(t *testing.T) {
	now := time.Now()
	soon, err := serverOver(&servertest.Books{}).PreviewSchedule(
		t.Context(), &kagziv1.PreviewScheduleRequest{CronExpr: "* * * * *"})
	if err != nil || len(soon.Ticks) != 5 || !soon.Ticks[0].AsTime().After(now) ||
		soon.Ticks[0].AsTime().Sub(now) > 2*time.Minute {
		t.Errorf("of every minute, from now on: %v, %v", soon, err)
	}
	after := timestamppb.New(servertest.Began)
	answer, err := serverOver(&servertest.Books{}).PreviewSchedule(
		t.Context(), &kagziv1.PreviewScheduleRequest{CronExpr: "0 9 * * *", TimeZone: "Europe/Berlin", After: after})
	if err != nil || len(answer.Ticks) != 5 ||
		!answer.Ticks[0].AsTime().Equal(time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)) {
		t.Errorf("%v, %v", answer, err)
	}
	answer, err = serverOver(&servertest.Books{}).PreviewSchedule(
		t.Context(), &kagziv1.PreviewScheduleRequest{CronExpr: "0 0 0 1 1 ? 2027", Count: 100, After: after})
	if err != nil || len(answer.Ticks) != 1 {
		t.Errorf("an expression with one tick left: %v, %v", answer, err)
	}
}
