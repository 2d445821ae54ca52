package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// unique returns the shortest beginning of the first id, of 8 characters or more, that no other has.
func unique(id string, others ...string) string {
	n := 8
	for _, other := range others {
		for n < len(id) && strings.HasPrefix(other, id[:n]) {
			n++
		}
	}
	return id[:n]
}

func TestIDsMayBeShortened(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		runs := make([]string, 8)
		for i := range runs {
			runs[i] = s.start(t)
		}
		run := runs[3]
		short := unique(run, append(slices.Clone(runs[:3]), runs[4:]...)...)
		if len(short) >= len(run) {
			t.Fatalf("no beginning of %s is unique among %v", run, runs)
		}

		t.Run("in reads, actions and filters", func(t *testing.T) {
			for _, text := range []string{short, strings.ToUpper(short), run[:35]} {
				got := fine(s.workflows().GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{RunId: text}))(t)
				if got.Workflow.RunId != run {
					t.Errorf("%s is %s, want %s", text, got.Workflow.RunId, run)
				}
			}
			paused := fine(s.workflows().PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{RunId: short, Reason: "x"}))(t)
			if paused.Workflow.RunId != run || !paused.Workflow.Paused {
				t.Errorf("paused %v", paused)
			}
			parent := fine(s.workflows().ListWorkflows(ctx, &kagziv1.ListWorkflowsRequest{ParentRunId: &short}))(t)
			if len(parent.Workflows) > 0 {
				t.Errorf("children %v", parent.Workflows)
			}
			audit := fine(s.admin().ListAuditEvents(ctx,
				&kagziv1.ListAuditEventsRequest{Namespace: "default", SubjectId: &run}))(t)
			if len(audit.Events) != 1 || audit.Events[0].Method != "PauseWorkflow" {
				t.Errorf("the audit log has %v of the run", audit.Events)
			}
		})

		t.Run("in streams", func(t *testing.T) {
			watch := fine(s.workflows().WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{RunId: short}))(t)
			if got := fine(watch.Recv())(t); got.GetWorkflow().GetRunId() != run {
				t.Errorf("watched %v", got)
			}
			filter := &kagziv1.ListWorkflowsRequest{ParentRunId: &short}
			bulk := fine(s.workflows().BulkWorkflows(ctx, &kagziv1.BulkWorkflowsRequest{Reason: "x",
				Action: kagziv1.BulkAction_BULK_ACTION_CANCEL, Filter: filter}))(t)
			if got := fine(bulk.Recv())(t); got.Matched != 0 {
				t.Errorf("matched %v", got)
			}
			fine(s.workflows().TerminateWorkflow(ctx, &kagziv1.TerminateWorkflowRequest{RunId: run, Reason: "x"}))(t)
			ended, err := s.client(t).Run(short).Wait(ctx)
			if err != nil || ended.RunID != run || ended.Status != kagzi.StatusTerminated {
				t.Errorf("waited for %v, %v", ended, err)
			}
		})

		t.Run("but not to a beginning of several, which are listed", func(t *testing.T) {
			// Eight characters are those of 65 s, and the runs may lie on both sides of a boundary.
			sharing := func(prefix string) (ids []string) {
				for _, id := range slices.Backward(runs) {
					if strings.HasPrefix(id, prefix) {
						ids = append(ids, id)
					}
				}
				return ids
			}
			prefix := runs[0][:8]
			if len(sharing(prefix)) < len(runs)/2 {
				prefix = runs[7][:8]
			}
			ids := sharing(prefix)
			list, more := strings.Join(ids[:min(len(ids), 5)], ", "), ""
			if len(ids) > 5 {
				more = ", and more"
			}
			_, err := s.workflows().CancelWorkflow(ctx, &kagziv1.CancelWorkflowRequest{RunId: prefix})
			if status.Code(err) != codes.InvalidArgument || !strings.HasSuffix(err.Error(), fmt.Sprintf(
				"run_id: %s begins the ids of several runs; give more characters: %s%s", prefix, list, more)) {
				t.Errorf("eight characters: %v", err)
			}
		})

		t.Run("but not too far, and not to what nothing begins with", func(t *testing.T) {
			for text, code := range map[string]codes.Code{
				run[:7]: codes.InvalidArgument, "ffffffff": codes.NotFound, "0000000g": codes.InvalidArgument,
				run + "0": codes.InvalidArgument, short[:8] + strings.Repeat("-", 9): codes.InvalidArgument,
			} {
				_, err := s.workflows().GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{RunId: text})
				if status.Code(err) != code {
					t.Errorf("%s: %v, want %s", text, err, code)
				}
			}
			_, err := s.workflows().GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{RunId: short, Namespace: "other"})
			if status.Code(err) != codes.NotFound {
				t.Errorf("in another namespace: %v", err)
			}
		})

		t.Run("of schedules, whose names go first", func(t *testing.T) {
			create := func(name string) string {
				return fine(s.schedules().CreateWorkflowSchedule(ctx, &kagziv1.CreateWorkflowScheduleRequest{
					CronExpr: "0 3 * * *", TaskQueue: "q", WorkflowType: "t", Name: name}))(t).Schedule.ScheduleId
			}
			first, second := create(""), create("")
			get := func(ref string) string {
				req := &kagziv1.GetWorkflowScheduleRequest{ScheduleId: ref}
				return fine(s.schedules().GetWorkflowSchedule(ctx, req))(t).Schedule.ScheduleId
			}
			short := unique(first, second)
			if got := get(short); got != first {
				t.Errorf("%s is %s, want %s", short, got, first)
			}
			named := create(short)
			if got := get(short); got != named {
				t.Errorf("the name %s is %s, want %s", short, got, named)
			}
			_, err := s.schedules().GetWorkflowSchedule(context.Background(),
				&kagziv1.GetWorkflowScheduleRequest{ScheduleId: "deadbeef"})
			if status.Code(err) != codes.NotFound {
				t.Errorf("a name that looks like an id: %v", err)
			}
		})
	})
}
