package cli

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestSchedule_create(t *testing.T) {
	t.Run("create sends the flags", func(t *testing.T) {
		s := &session{server: &fake{}}
		s.want(t, ExitOK, "schedule", "create", "report", "--cron", "0 9 * * 1-5", "--zone", "Europe/Berlin", "--queue",
			"q", "--name", "daily", "--input", `{"full":true}`, "--max-catchup", "0",
			"--overlap", "buffer-one", "--disabled", "--retry-attempts", "5", "--run-retry-attempts", "2", "--execution-timeout", "1h", "--tag",
			"team=a", "--on-failure", "alert", "--on-failure-queue", "alerts", "--workflow-version", "v2",
			"-n", "stage")
		want := &kagziv1.CreateWorkflowScheduleRequest{
			Namespace: "stage", TaskQueue: "q", WorkflowType: "report", CronExpr: "0 9 * * 1-5",
			TimeZone: "Europe/Berlin", Name: "daily", Enabled: new(false), MaxCatchup: new(int32(0)),
			Version: new("v2"),
			Input: &kagziv1.Payload{Data: []byte(`{"full":true}`),
				Metadata: map[string]string{"content-type": "application/json"}},
			OverlapPolicy:     kagziv1.OverlapPolicy_OVERLAP_POLICY_BUFFER_ONE,
			RetryPolicy:       &kagziv1.RetryPolicy{MaximumAttempts: 5},
			RunRetryPolicy:    &kagziv1.RetryPolicy{MaximumAttempts: 2},
			Timeouts:          &kagziv1.TimeoutConfig{ExecutionTimeoutMs: 3600000},
			OnFailureWorkflow: "alert", OnFailureTaskQueue: "alerts", Tags: map[string]string{"team": "a"},
			RequestId: "new-id",
		}
		if diff := cmp.Diff(want, first[*kagziv1.CreateWorkflowScheduleRequest](t, s.server),
			protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("create uses server defaults and prints the next five times", func(t *testing.T) {
		s := &session{server: &fake{}}
		out, _ := s.want(t, ExitOK, "schedule", "create", "report", "--cron", "@hourly")
		want := &kagziv1.CreateWorkflowScheduleRequest{
			Namespace: "default", WorkflowType: "report", CronExpr: "@hourly", RequestId: "new-id"}
		if diff := cmp.Diff(want, first[*kagziv1.CreateWorkflowScheduleRequest](t, s.server),
			protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
		if strings.Count(out, ":00:00Z  ") != 5 {
			t.Errorf("stdout %s", out)
		}
	})
	t.Run("create --disabled prints no next times", func(t *testing.T) {
		s := &session{server: &fake{}}
		if out, _ := s.want(t, ExitOK, "schedule", "create", "report", "--cron", "@hourly",
			"--disabled"); !strings.Contains(out, "PAUSED") || strings.Contains(out, "FIRES") {
			t.Errorf("stdout %s", out)
		}
	})
	t.Run("create succeeds even if the next times are unavailable", func(t *testing.T) {
		s := &session{server: &fake{fail: map[string]error{"PreviewSchedule": unavailable}}}
		if out, msg := s.want(t, ExitOK, "schedule", "create", "report", "--cron", "@hourly"); !strings.Contains(
			out, scheduleID) || !strings.Contains(msg, "cannot get the next times") {
			t.Errorf("stdout %s, stderr %q", out, msg)
		}
	})
	t.Run("create reports the server's errors", func(t *testing.T) {
		s := &session{server: &fake{fail: map[string]error{
			"CreateWorkflowSchedule": status.Error(codes.AlreadyExists, "name daily is taken")}}}
		s.want(t, ExitConflict, "schedule", "create", "report", "--cron", "@hourly")
		s.server.fail["CreateWorkflowSchedule"] = status.Error(codes.InvalidArgument, "cron_expr: never fires")
		s.want(t, ExitUsage, "schedule", "create", "report", "--cron", "0 0 30 2 *")
	})
}

func TestSchedule_update_changes_only_what_is_named(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		change func(*kagziv1.WorkflowSchedule)
	}{
		"a text": {[]string{"--cron", "@daily"}, func(s *kagziv1.WorkflowSchedule) {
			s.CronExpr = "@daily"
		}},
		"a text to nothing": {[]string{"--zone", "", "--on-failure", ""}, func(s *kagziv1.WorkflowSchedule) {
			s.TimeZone, s.OnFailureWorkflow = "", ""
		}},
		"a number to zero": {[]string{"--max-catchup", "0"}, func(s *kagziv1.WorkflowSchedule) { s.MaxCatchup = 0 }},
		"the overlap": {[]string{"--overlap", "allow"}, func(s *kagziv1.WorkflowSchedule) {
			s.OverlapPolicy = kagziv1.OverlapPolicy_OVERLAP_POLICY_ALLOW
		}},
		"one of the policies": {[]string{"--retry-initial", "5s"}, func(s *kagziv1.WorkflowSchedule) {
			s.RetryPolicy.InitialIntervalMs = 5000
		}},
		"the policy of the run, from that for both": {[]string{"--run-retry-attempts", "1"},
			func(s *kagziv1.WorkflowSchedule) {
				s.RunRetryPolicy = proto.CloneOf(s.RetryPolicy)
				s.RunRetryPolicy.MaximumAttempts = 1
			}},
		"one of the timeouts": {[]string{"--step-timeout", "1m"}, func(s *kagziv1.WorkflowSchedule) {
			s.Timeouts.StartToCloseTimeoutMs = 60000
		}},
		"some tags": {[]string{"--tag", "stage=prod", "--untag", "old,none"},
			func(s *kagziv1.WorkflowSchedule) { s.Tags = map[string]string{"team": "a", "stage": "prod"} }},
		"whether it fires": {[]string{"--enabled=false"}, func(s *kagziv1.WorkflowSchedule) { s.Enabled = false }},
		"the next moment": {[]string{"--next-fire-at", "+2h"}, func(s *kagziv1.WorkflowSchedule) {
			s.NextFireAt = at(2 * time.Hour)
		}},
		"the input": {[]string{"--input", "1"}, func(s *kagziv1.WorkflowSchedule) {
			s.Input = &kagziv1.Payload{Data: []byte("1"),
				Metadata: map[string]string{"content-type": "application/json"}}
		}},
		"what it starts": {[]string{"--type", "x", "--queue", "q", "--name", "n", "--workflow-version", "v"},
			func(s *kagziv1.WorkflowSchedule) {
				s.WorkflowType, s.TaskQueue, s.Name, s.Version = "x", "q", "n", "v"
			}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{server: sampleServer()}
			want := proto.CloneOf(s.server.schedules[0])
			c.change(want)
			s.want(t, ExitOK, append([]string{"schedule", "update", "daily", "--reason", "why"}, c.args...)...)
			if diff := cmp.Diff(want, s.server.schedules[0], protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
			if r := first[*kagziv1.UpdateWorkflowScheduleRequest](t, s.server); r.Reason != "why" ||
				r.ScheduleId != scheduleID {
				t.Errorf("request %v", r)
			}
		})
	}
}

func TestSchedule_update_of_the_steps_policy_keeps_that_of_the_run(t *testing.T) {
	s := &session{server: sampleServer()}
	own := &kagziv1.RetryPolicy{MaximumAttempts: 1}
	s.server.schedules[0].RunRetryPolicy = own
	s.want(t, ExitOK, "schedule", "update", "daily", "--retry-attempts", "8")
	r := first[*kagziv1.UpdateWorkflowScheduleRequest](t, s.server)
	if r.RetryPolicy.GetMaximumAttempts() != 8 || !proto.Equal(r.RunRetryPolicy, own) {
		t.Errorf("request %v", r)
	}
}

func TestSchedule_has_no_tick_before_the_one_that_it_fires_next(t *testing.T) {
	s := &session{server: sampleServer()}
	s.server.schedules[0].NextFireAt = at(time.Hour)
	out, _ := s.want(t, ExitOK, "schedule", "show", "daily", "-o", "json")
	for i, asked := range requestsOf[*kagziv1.PreviewScheduleRequest](s.server) {
		if i > 0 || asked.After != nil {
			t.Errorf("of one that was not put off it is asked with %v", asked)
		}
	}
	if !strings.Contains(out, `"next_fires": [
    "2026-11-20T13:00:00Z",`) {
		t.Errorf("of one that was not put off it says %s", out)
	}
	out, _ = s.want(t, ExitOK, "schedule", "update", "daily", "--next-fire-at", "+72h", "-o", "json")
	asked := requestsOf[*kagziv1.PreviewScheduleRequest](s.server)
	if last := asked[len(asked)-1]; !last.GetAfter().AsTime().Equal(noon.Add(72*time.Hour - time.Microsecond)) {
		t.Errorf("asked for ticks with %v, want those from the moment on that it was put off to", last)
	}
	if strings.Contains(out, "2026-11-20T13:00:00Z") {
		t.Errorf("of one that fires nothing for three days it says %s", out)
	}
}

func TestSchedule_update_flags_that_change_something_are_all_known(t *testing.T) {
	cmd := newScheduleUpdate((&session{server: &fake{}}).env(), &scheduleUpdateOptions{})
	for _, name := range scheduleChanges {
		if cmd.Flags().Lookup(name) == nil {
			t.Errorf("there is no flag --%s", name)
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "reason" && !anyOf(func(name string) bool { return name == f.Name }, scheduleChanges) {
			t.Errorf("--%s alone would change nothing", f.Name)
		}
	})
}

func TestSchedule_actions(t *testing.T) {
	t.Run("ids are used as they are and names are looked up", func(t *testing.T) {
		s := &session{server: sampleServer()}
		s.want(t, ExitOK, "schedule", "pause", scheduleID)
		if len(s.server.requests) != 1 {
			t.Errorf("%d calls, want 1", len(s.server.requests))
		}
		out, _ := s.want(t, ExitNotFound, "schedule", "pause", "daily", "none", "--reason", "why")
		if out != "daily  PAUSED  why\nnone  error: not found (schedule none)\n" {
			t.Errorf("stdout %q", out)
		}
		if r := requestsOf[*kagziv1.PauseWorkflowScheduleRequest](s.server)[1]; r.ScheduleId != scheduleID ||
			r.Reason != "why" {
			t.Errorf("request %v", r)
		}
	})
	t.Run("the reason of a pause is shown", func(t *testing.T) {
		s := &session{server: sampleServer()}
		s.want(t, ExitOK, "schedule", "pause", "daily", "--reason", "why \x1b[31mso")
		for _, args := range [][]string{{"schedule", "list"}, {"schedule", "show", "daily"}} {
			if out, _ := s.want(t, ExitOK, args...); !strings.Contains(out, "why ") || strings.Contains(out, "\x1b[31m") {
				t.Errorf("%v: stdout %q", args, out)
			}
		}
	})
	t.Run("create updates and delays if told to", func(t *testing.T) {
		s := &session{server: sampleServer()}
		_, msg := s.want(t, ExitOK, "schedule", "create", "report", "--cron", "@every 90s", "--name", "daily",
			"--jitter", "90s", "--or-update")
		if r := first[*kagziv1.CreateWorkflowScheduleRequest](t, s.server); r.JitterMs != 90_000 || !r.OrUpdate ||
			r.Enabled != nil || !strings.Contains(msg, "the schedule existed") {
			t.Errorf("request %v, stderr %q", r, msg)
		}
		if _, msg := s.want(t, ExitUsage, "schedule", "create", "report", "--cron", "@daily", "--or-update"); !strings.Contains(
			msg, "--or-update needs --name") {
			t.Errorf("stderr %q", msg)
		}
		s = &session{server: sampleServer()}
		s.want(t, ExitOK, "schedule", "update", "daily", "--jitter", "0")
		if r := first[*kagziv1.UpdateWorkflowScheduleRequest](t, s.server); r.JitterMs == nil || *r.JitterMs != 0 {
			t.Errorf("request %v", r)
		}
		s.server.schedules[0].JitterMs, s.server.schedules[0].NextRunAt = 90_000, at(time.Hour+12*time.Second)
		s.server.schedules[0].NextFireAt = at(time.Hour)
		if out, _ := s.want(t, ExitOK, "schedule", "show", s.server.schedules[0].ScheduleId); !strings.Contains(
			out, "up to 1m30s; 12s after the next tick") {
			t.Errorf("stdout %s", out)
		}
	})
	t.Run("only the help of create names a default catch-up", func(t *testing.T) {
		for command, want := range map[string]bool{"create": true, "update": false} {
			out, _ := (&session{}).want(t, ExitOK, "schedule", command, "--help")
			if strings.Contains(out, "0 for none (default 100)") != want {
				t.Errorf("%s --help:\n%s", command, out)
			}
		}
	})
	t.Run("backfill asks and tells the runs", func(t *testing.T) {
		s := &session{server: sampleServer()}
		out, _ := s.want(t, ExitOK, "schedule", "backfill", "daily", "--from", "-6h", "--to", "2026-11-20", "--reason",
			"why", "-y")
		r := first[*kagziv1.BackfillWorkflowScheduleRequest](t, s.server)
		if r.ScheduleId != scheduleID || r.Reason != "why" || r.To.AsTime().Day() != 20 || !r.From.AsTime().Equal(
			at(-6*time.Hour).AsTime()) || !strings.HasSuffix(out, "1 run started, 1 tick had fired before\n") {
			t.Errorf("request %v, stdout %s", r, out)
		}
		if _, msg := s.want(t, ExitUsage, "schedule", "backfill", "daily", "-y"); !strings.Contains(
			msg, "--from is required") {
			t.Errorf("stderr %q", msg)
		}
		if _, msg := s.want(t, ExitUsage, "schedule", "backfill", "daily", "--from", "-6h"); !strings.Contains(
			msg, "-y skips the confirmation") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("runs accepts an id or a name", func(t *testing.T) {
		for _, args := range [][]string{
			{"wf", "list", "--schedule"}, {"wf", "count", "--schedule"}, {"wf", "list", "-q", "schedule = "},
			{"wf", "cancel", "-y", "-q", "schedule = "},
		} {
			for _, named := range []string{"daily", scheduleID} {
				s := &session{server: sampleServer()}
				if last := len(args) - 1; args[last] == "--schedule" {
					s.want(t, ExitOK, append(slices.Clone(args), named)...)
				} else {
					s.want(t, ExitOK, append(slices.Clone(args[:last]), args[last]+strconv.Quote(named))...)
				}
				if got := first[*kagziv1.ListWorkflowsRequest](t, s.server).GetScheduleId(); got != named {
					// the server accepts either
					t.Errorf("%q %s: runs of schedule %q, want %q", args, named, got, named)
				}
			}
		}
		s := &session{server: sampleServer()}
		if _, msg := s.want(t, ExitNotFound, "wf", "list", "--schedule", "none"); !strings.Contains(
			msg, "schedule none") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("delete and resume send a reason", func(t *testing.T) {
		s := &session{server: sampleServer()}
		s.want(t, ExitOK, "schedule", "resume", "daily", "--reason", "why")
		s.want(t, ExitOK, "schedule", "delete", "daily", "--reason", "why")
		if first[*kagziv1.ResumeWorkflowScheduleRequest](t, s.server).Reason != "why" ||
			first[*kagziv1.DeleteWorkflowScheduleRequest](t, s.server).Reason != "why" {
			t.Errorf("requests %v", s.server.requests)
		}
	})
	t.Run("resume prints the next tick, or a missed one", func(t *testing.T) {
		for ahead, want := range map[time.Duration]string{
			time.Hour: "daily  ENABLED  next in 1h\n", 0: "daily  ENABLED  was due now\n",
			-time.Minute: "daily  ENABLED  was due 1m ago\n"} {
			s := &session{server: sampleServer()}
			s.server.resumed = ahead
			if out, _ := s.want(t, ExitOK, "schedule", "resume", "daily"); out != want {
				t.Errorf("stdout %q, want %q", out, want)
			}
		}
	})
	t.Run("trigger uses a request id and tells how to repeat it", func(t *testing.T) {
		s := &session{server: sampleServer()}
		s.want(t, ExitOK, "schedule", "trigger", "daily")
		if r := first[*kagziv1.TriggerWorkflowScheduleRequest](t, s.server); r.RequestId != "new-id" ||
			r.ScheduleId != scheduleID {
			t.Errorf("request %v", r)
		}
		s.server.fail = map[string]error{"TriggerWorkflowSchedule": status.Error(codes.DeadlineExceeded, "late")}
		if _, msg := s.want(t, ExitUnavailable, "schedule", "trigger", "daily"); !strings.Contains(
			msg, "--request-id new-id") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("preview sends --count and --after", func(t *testing.T) {
		s := &session{server: &fake{}}
		out, _ := s.want(t, ExitOK, "schedule", "preview", "0 0 * * *", "--after", "2026-12-01", "--count", "2",
			"-o", "json")
		if r := first[*kagziv1.PreviewScheduleRequest](t, s.server); r.Count != 2 || r.After.AsTime().Day() != 1 ||
			!strings.Contains(out, "2026-12-01T02:00:00Z") {
			t.Errorf("request %v, stdout %s", r, out)
		}
	})
	t.Run("list and runs are paged", func(t *testing.T) {
		s := &session{server: sampleServer()}
		for _, args := range [][]string{{"schedule", "list"}, {"schedule", "runs", "daily"}} {
			out, msg := s.want(t, ExitOK, append(args, "--limit", "1", "--page-token", "1")...)
			if strings.Count(out, "\n") != 2 || !strings.Contains(msg, "--page-token 2") ||
				!strings.Contains(msg, ": --page-token <1") {
				t.Errorf("%v: stdout %q, stderr %q", args, out, msg)
			}
			if out, msg := s.want(t, ExitOK, append(args, "--all", "-o", "jsonl")...); strings.Count(out, "\n") != 3 ||
				msg != "" {
				t.Errorf("%v: stdout %q, stderr %q", args, out, msg)
			}
		}
		if out, _ := s.want(t, ExitOK, "schedule", "list", "--queue", "reports"); strings.Count(out, "\n") != 2 {
			t.Errorf("stdout %q", out)
		}
		if _, msg := (&session{}).want(t, ExitOK, "schedule", "list"); !strings.Contains(
			msg, "no schedules in namespace default") {
			t.Errorf("stderr %q", msg)
		}
		s.want(t, ExitNotFound, "schedule", "show", "none")
	})
}
