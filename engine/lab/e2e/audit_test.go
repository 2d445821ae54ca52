package e2e

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// steered makes each call of operators once, with its entry in the audit log.
func steered(t testing.TB, a *tenant, ctx context.Context) {
	t.Helper()
	op := a.keys[operator]
	fine(op.workflows().PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{Namespace: "a", RunId: a.run,
		Now: true}))(t)
	fine(op.workflows().OverrideStep(ctx, &kagziv1.OverrideStepRequest{
		Namespace: "a", RunId: a.run, StepName: "first", Reason: "r",
		Result: &kagziv1.OverrideStepRequest_Output{Output: text("x")}}))(t)
	fine(op.workflows().ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{Namespace: "a", RunId: a.run}))(t)
	fine(op.workflows().PinWorkflow(ctx, &kagziv1.PinWorkflowRequest{Namespace: "a", RunId: a.run, Pinned: true}))(t)
	fine(op.workflows().TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{Namespace: "a", RunId: a.run}))(t)
	retried := fine(op.workflows().RetryWorkflow(ctx, &kagziv1.RetryWorkflowRequest{Namespace: "a", RunId: a.run}))(
		t).NewRunId
	fine(a.keys[client].workflows().CancelWorkflow(
		ctx, &kagziv1.CancelWorkflowRequest{Namespace: "a", RunId: retried}))(t)
	fine(op.schedules().UpdateWorkflowSchedule(
		ctx, &kagziv1.UpdateWorkflowScheduleRequest{Namespace: "a", ScheduleId: a.schedule, Name: ptr("n")}))(t)
	fine(op.schedules().PauseWorkflowSchedule(
		ctx, &kagziv1.PauseWorkflowScheduleRequest{Namespace: "a", ScheduleId: a.schedule}))(t)
	fine(op.schedules().ResumeWorkflowSchedule(
		ctx, &kagziv1.ResumeWorkflowScheduleRequest{Namespace: "a", ScheduleId: a.schedule}))(t)
	fine(op.schedules().TriggerWorkflowSchedule(
		ctx, &kagziv1.TriggerWorkflowScheduleRequest{Namespace: "a", ScheduleId: a.schedule}))(t)
	fine(op.schedules().DeleteWorkflowSchedule(
		ctx, &kagziv1.DeleteWorkflowScheduleRequest{Namespace: "a", ScheduleId: a.schedule}))(t)
	fine(op.admin().DrainWorker(ctx, &kagziv1.DrainWorkerRequest{WorkerId: a.worker}))(t)
	fine(op.admin().ForceOfflineWorker(ctx, &kagziv1.ForceOfflineWorkerRequest{WorkerId: a.worker}))(t)
	boss := a.keys[admin]
	fine(boss.namespaces().UpdateNamespace(ctx,
		&kagziv1.UpdateNamespaceRequest{Namespace: "a", Description: ptr("d")}))(t)
	fine(boss.namespaces().DisableNamespace(ctx, &kagziv1.DisableNamespaceRequest{Namespace: "a"}))(t)
	fine(boss.namespaces().EnableNamespace(ctx, &kagziv1.EnableNamespaceRequest{Namespace: "a"}))(t)
}

func TestEveryChangeByAKeyLeavesOneRecord(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		root := s.lock(t)
		a := settle(t, root, "a")
		ctx := within(t, time.Minute)
		steered(t, a, ctx)
		_, err := a.keys[viewer].workflows().PauseWorkflow(
			ctx, &kagziv1.PauseWorkflowRequest{Namespace: "a", RunId: a.run})
		wantRefused(t, "a viewer's pause", err, codes.PermissionDenied, kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED,
			"role viewer")
		count := map[string]int{}
		page := &kagziv1.PageRequest{PageSize: 1000}
		for _, e := range fine(a.keys[viewer].admin().ListAuditEvents(
			ctx, &kagziv1.ListAuditEventsRequest{Namespace: "a", Page: page}))(t).Events {
			name, id, _ := strings.Cut(e.Actor, " (")
			count[strings.TrimPrefix(name, "a-key_role_")+" "+e.Method+" "+e.Outcome]++
			if e.Peer == "" || len(id) != 37 {
				t.Errorf("the record %v does not say who did it", e)
			}
		}
		want := map[string]int{"viewer PauseWorkflow PERMISSION_DENIED": 1, "client CancelWorkflow ok": 1}
		for _, method := range []string{"PauseWorkflow", "OverrideStep", "ResumeWorkflow", "PinWorkflow",
			"TerminateWorkflow", "RetryWorkflow", "CreateWorkflowSchedule",
			"UpdateWorkflowSchedule", "PauseWorkflowSchedule", "ResumeWorkflowSchedule", "TriggerWorkflowSchedule",
			"DeleteWorkflowSchedule", "DrainWorker", "ForceOfflineWorker"} {
			want["operator "+method+" ok"] = 1
		}
		for _, method := range []string{"UpdateNamespace", "DisableNamespace", "EnableNamespace"} {
			want["admin "+method+" ok"] = 1
		}
		if !maps.Equal(count, want) {
			t.Errorf("recorded %v, want %v", count, want)
		}
		keys := fine(root.admin().ListAuditEvents(ctx, &kagziv1.ListAuditEventsRequest{Page: page}))(t).Events
		if n := len(keys); n != 6 || keys[n-1].Method != "CreateKey" || keys[n-1].Actor != "local" ||
			!strings.HasPrefix(keys[0].Actor, "root (") {
			t.Errorf("the records of keys are %v, want the creation of six", keys)
		}
	})
}

// syncBuffer is a log for concurrent writers.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestNoLogNorAnswerTellsASecret(t *testing.T) {
	eachBackend(t, func(t *testing.T, url string) {
		log := &syncBuffer{}
		o := patient
		o.Server.Log = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Coordinator.Log = o.Server.Log
		s := New(t, openStore(t, url), o)
		ctx := within(t, time.Minute)
		made, secret := s.key(t, &kagziv1.Key{Name: "root", Role: admin})
		root := s.as(t, secret)
		a := settle(t, root, "a")
		steered(t, a, ctx)
		var told []string
		for _, bad := range []string{"Bearer " + secret[:60], "Basic " + secret, secret, "Bearer  " + secret} {
			_, err := s.admin().WhoAmI(metadata.AppendToOutgoingContext(ctx, "authorization", bad),
				&kagziv1.WhoAmIRequest{})
			if status.Code(err) != codes.Unauthenticated {
				t.Errorf("%.10s… is answered with %v", bad, err)
			}
			told = append(told, fmt.Sprint(err))
		}
		_, err := a.keys[worker].workers().CompleteWorkflow(
			ctx, &kagziv1.CompleteWorkflowRequest{Namespace: "a", RunId: a.run, LeaseToken: a.token})
		told = append(told, fmt.Sprint(err))
		for _, answer := range []proto.Message{
			fine(root.admin().ListKeys(ctx, &kagziv1.ListKeysRequest{}))(t),
			fine(root.admin().WhoAmI(ctx, &kagziv1.WhoAmIRequest{}))(t),
			fine(root.admin().GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{}))(t),
			fine(root.admin().ListAuditEvents(ctx, &kagziv1.ListAuditEventsRequest{}))(t),
			fine(root.admin().ListAuditEvents(ctx, &kagziv1.ListAuditEventsRequest{Namespace: "a"}))(t),
			fine(root.workflows().GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{Namespace: "a", RunId: a.run}))(t),
			fine(root.admin().ListSteps(ctx, &kagziv1.ListStepsRequest{Namespace: "a", RunId: a.run}))(t),
			fine(root.admin().GetWorker(ctx, &kagziv1.GetWorkerRequest{WorkerId: a.worker}))(t),
		} {
			told = append(told, fmt.Sprint(answer))
		}
		s.Stop()
		for _, canary := range []string{secret, strings.Split(secret, "_")[3],
			strings.Split(secret, "_")[3][:20], a.token} {
			if strings.Contains(log.text(), canary) {
				t.Errorf("the log holds %.8s…", canary)
			}
			for _, text := range told {
				if strings.Contains(text, canary) {
					t.Errorf("an answer holds %.8s…: %s", canary, text)
				}
			}
		}
		if !strings.Contains(log.text(), `"call refused"`) || strings.Contains(log.text(), made.KeyId+"_") {
			t.Error("the log tells nothing of refused calls: it was not kept")
		}
	})
}

func TestTheUseOfAKeyIsSeen(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		root := s.lock(t)
		for deadline := time.Now().Add(20 * time.Second); ; <-time.After(50 * time.Millisecond) {
			keys := fine(root.admin().ListKeys(within(t, 20*time.Second), &kagziv1.ListKeysRequest{}))(t).Keys
			if len(keys) == 1 && keys[0].LastUsedAt != nil {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("after 20 s of use the keys are %v", keys)
			}
		}
	})
}
