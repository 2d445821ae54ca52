package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func sampleServer() *fake {
	return &fake{
		runs: sampleRuns(), resumed: time.Hour,
		stepList: []*kagziv1.Step{
			{StepId: "s1", RunId: "01936b2e-0000-7000-8000-000000000003", Name: "reserve",
				Kind: kagziv1.StepKind_STEP_KIND_FUNCTION, Status: kagziv1.StepStatus_STEP_STATUS_COMPLETED,
				AttemptNumber: 1, Sequence: 1, StartedAt: at(-5 * time.Minute),
				FinishedAt: at(-5*time.Minute + 350*time.Millisecond),
				Output:     &kagziv1.Payload{Data: []byte(`{"seat": 12}`)}},
			{StepId: "s2", RunId: "01936b2e-0000-7000-8000-000000000003", Name: "charge",
				Kind: kagziv1.StepKind_STEP_KIND_FUNCTION, Status: kagziv1.StepStatus_STEP_STATUS_PENDING,
				AttemptNumber: 1, Sequence: 2, StartedAt: at(-4 * time.Minute),
				FinishedAt: at(-4*time.Minute + time.Second), Error: &kagziv1.ErrorDetail{Message: "timeout"}},
			{StepId: "s3", RunId: "01936b2e-0000-7000-8000-000000000003", Name: "charge",
				Kind: kagziv1.StepKind_STEP_KIND_FUNCTION, Status: kagziv1.StepStatus_STEP_STATUS_FAILED,
				AttemptNumber: 2, Sequence: 2, IsLatest: true, StartedAt: at(-3 * time.Minute),
				FinishedAt: at(-3*time.Minute + 2*time.Second),
				Error: &kagziv1.ErrorDetail{Type: "CardDeclined", Message: "card declined",
					Stack: "main.charge()\n\tcharge.go:12"}},
		},
		workers: []*kagziv1.Worker{{
			WorkerId: "w1", Namespace: "default", BuildId: "9f2c41", Status: kagziv1.WorkerStatus_WORKER_STATUS_ONLINE,
			TaskQueues: []string{"orders", "default"}, WorkflowTypes: []string{"order", "report"}, Hostname: "box",
			Pid: 42, ActiveWorkflowCount: 3, MaxConcurrent: 100, RegisteredAt: at(-time.Hour),
			LastHeartbeatAt: at(-4 * time.Second), TotalCompleted: 1234, TotalFailed: 5, Version: "v2",
			Platform: "linux-arm64",
			Labels:   map[string]string{"zone": "a"}, Capabilities: map[string]string{"gpu": "", "sdk:python": "0.1.0"},
			Stats: &kagziv1.WorkerStats{CpuPercent: 12.4, MemoryBytes: 50 << 20, DiskAvailableBytes: 3 << 30,
				AverageRunMs: 250},
		}},
		queues: []*kagziv1.QueueDepth{
			{TaskQueue: "orders", Pending: 12, Running: 3, Sleeping: 1, OldestPendingSeconds: 75.4, OnlineWorkers: 1,
				UnservedByType: map[string]int64{"refund": 2, "mail": 1}},
			{TaskQueue: "default", Running: 1, OnlineWorkers: 2},
		},
		info: &kagziv1.GetServerInfoResponse{
			Version: "1.2.4", ApiVersion: "v1", Backend: "sqlite", BackendVersion: "3.51", Database: "kagzi.db",
			StartedAt: at(-time.Hour), DatabaseBytes: 3 << 20, SchemaVersion: 1},
		schedules: sampleSchedules(), namespaces: sampleNamespaces(), keys: sampleKeys(),
		me: &kagziv1.WhoAmIResponse{Key: sampleKeys()[3], KeysRequired: true}, audit: sampleAudit(),
		signals: []*kagziv1.Signal{
			{Sequence: 1, Name: "approval", SignalId: "ticket-4",
				Payload: &kagziv1.Payload{Data: []byte(`{"by":"ada"}`)}, ReceivedAt: at(-time.Minute),
				StepName: new("approval")},
			{Sequence: 2, Name: "note", ReceivedAt: at(-time.Second)},
		},
		explained: &kagziv1.ExplainWorkflowResponse{
			Summary: "waits for timer cool-off until 2026-11-21T10:00:00Z",
			Details: []string{"attempt 1", "2 online workers could take it"},
			Blocker: kagziv1.ExplainWorkflowResponse_BLOCKER_TIMER, Since: at(-2 * time.Hour),
			NextAt: at(22 * time.Hour),
			Blocked: []*kagziv1.BlockedCode{{Branch: "2", Since: at(-time.Minute),
				Stack: "goroutine 7 [chan receive]:\nmain.order(0x1)\n\tmain.go:12 +0x1d"}},
		},
	}
}

func TestOutputs_are_golden_in_every_format(t *testing.T) {
	failed, sleeping := "01936b2e-0000-7000-8000-000000000003", "01936b2e-0000-7000-8000-000000000002"
	for name, args := range map[string][]string{
		"workflow-list": {"workflow", "list"}, "workflow-show": {"workflow", "show", failed},
		"workflow-count": {"wf", "count"},
		"workflow-start": {"run", "start", "order"},
		"workflow-wait":  {"wf", "wait", "01936b2e-0000-7000-8000-000000000001"},
		"worker-can-run": {"worker", "list", "--type", "order", "--require", "gpu=a100"},
		"worker-list":    {"worker", "list"}, "worker-show": {"worker", "show", "w1"},
		"worker-drain": {"worker", "drain", "w1"}, "worker-offline": {"worker", "offline", "w1"},
		"queue-list": {"queue", "list"}, "queue-show": {"queue", "show", "orders"},
		"workflow-cancel": {"wf", "cancel", "a", "b"},
		"workflow-pause":  {"wf", "pause", sleeping}, "workflow-resume": {"wf", "resume", sleeping},
		"workflow-pin": {"wf", "pin", failed}, "workflow-unpin": {"wf", "unpin", failed},
		"workflow-retry": {"wf", "retry", failed}, "workflow-signal": {"wf", "signal", sleeping, "approval"},
		"workflow-explain":  {"wf", "explain", sleeping},
		"workflow-override": {"wf", "override", failed, "charge", "--result", `{"id":"ch_7"}`, "--reason", "by hand"},
		"schedule-create":   {"schedule", "create", "report", "--cron", "0 * * * *", "--name", "hourly"},
		"schedule-list":     {"schedule", "list"}, "schedule-show": {"schedule", "show", "daily"},
		"schedule-update": {"schedule", "update", "daily", "--cron", "@daily"},
		"schedule-delete": {"schedule", "delete", "daily"}, "schedule-pause": {"schedule", "pause", "daily"},
		"schedule-resume": {"schedule", "resume", "daily"}, "schedule-trigger": {"schedule", "trigger", "daily"},
		"schedule-runs":    {"schedule", "runs", "daily"},
		"schedule-preview": {"schedule", "preview", "0 * * * *", "--zone", "Europe/Berlin", "--count", "2"},
		"namespace-create": {"namespace", "create", "stage", "--retention", "36h"},
		"namespace-list":   {"namespace", "list"}, "namespace-show": {"namespace", "show", "payments"},
		"namespace-update":  {"namespace", "update", "payments", "--description", "cards"},
		"namespace-enable":  {"namespace", "enable", "default"},
		"namespace-disable": {"namespace", "disable", "payments"},
		"key-list":          {"key", "list", "--revoked"},
		"key-create":        {"key", "create", "shop2", "--role", "worker", "-n", "shop", "--expires", "2027-01-31"},
		"key-revoke":        {"key", "revoke", "shop", "-y"},
		"audit":             {"audit"}, "doctor": {"doctor"},
		"profile-show": {"profile", "show", "--address", "box:1", "--tls"},
	} {
		for _, format := range []string{"table", "json", "jsonl", "yaml"} {
			t.Run(name+" as "+format, func(t *testing.T) {
				s := &session{server: sampleServer()}
				out, _ := s.want(t, ExitOK, append(args, "-o", format)...)
				golden(t, name+"."+format, out)
				assertParses(t, format, out)
			})
		}
	}
}

func assertParses(t *testing.T, format, out string) {
	t.Helper()
	var v any
	switch format {
	case "json":
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			t.Errorf("no valid document: %v", err)
		}
	case "jsonl":
		for line := range strings.Lines(out) {
			if err := json.Unmarshal([]byte(line), &map[string]any{}); err != nil {
				t.Errorf("line %q: %v", line, err)
			}
		}
	case "yaml":
		if err := yaml.Unmarshal([]byte(out), &v); err != nil {
			t.Errorf("no valid document: %v", err)
		}
	}
}

func TestTables_in_a_terminal(t *testing.T) {
	t.Run("tables have colours and fit the width", func(t *testing.T) {
		s := &session{server: sampleServer(), tty: true, width: 100}
		out, _ := s.want(t, ExitOK, "wf", "list")
		if !strings.Contains(out, "\x1b[31mFAILED\x1b[0m") {
			t.Errorf("no colour in\n%s", out)
		}
		golden(t, "workflow-list.terminal", out)
	})
	for name, s := range map[string]*session{
		"NO_COLOR":        {environ: map[string]string{"NO_COLOR": "1"}},
		"KAGZI_NO_COLOR":  {environ: map[string]string{"KAGZI_NO_COLOR": "true"}},
		"a dumb terminal": {environ: map[string]string{"TERM": "dumb"}},
	} {
		t.Run("tables have no colours with "+name, func(t *testing.T) {
			s.server, s.tty = sampleServer(), true
			if out, _ := s.want(t, ExitOK, "wf", "list"); strings.Contains(out, "\x1b") {
				t.Errorf("colours in\n%s", out)
			}
		})
	}
	t.Run("tables show ISO times with --time iso", func(t *testing.T) {
		s := &session{server: sampleServer()}
		if out, _ := s.want(t, ExitOK, "wf", "list", "--time", "iso"); !strings.Contains(
			out, "2026-11-20T11:55:00.000Z") {
			t.Errorf("no ISO time in\n%s", out)
		}
	})
}

func TestList(t *testing.T) {
	t.Run("tells on stderr how to get more", func(t *testing.T) {
		s := &session{server: sampleServer()}
		out, msg := s.want(t, ExitOK, "wf", "list", "--limit", "2")
		if strings.Count(out, "\n") != 3 || !strings.Contains(msg, "--page-token 2") ||
			!strings.Contains(msg, "--all") {
			t.Fatalf("stdout %q, stderr %q", out, msg)
		}
	})
	t.Run("continues from a token", func(t *testing.T) {
		s := &session{server: sampleServer()}
		out, msg := s.want(t, ExitOK, "wf", "list", "--page-token", "2")
		if strings.Count(out, "\n") != 2 || msg != "previous runs: --page-token <2\n" {
			t.Fatalf("stdout %q, stderr %q", out, msg)
		}
	})
	t.Run("continues with the same relative times later",
		func(t *testing.T) {
			for _, args := range [][]string{{"--since", "24h"}, {"-q", "created > -1h and created < -1s"},
				{"--until", "90s"}, {"--since", "2026-11-19"}} {
				s := &session{server: sampleServer(), since: 1234567 * time.Nanosecond}
				for _, r := range s.server.runs {
					r.CreatedAt = at(-10 * time.Minute)
				}
				list := append([]string{"wf", "list", "-o", "json", "--limit", "1"}, args...)
				out, msg := s.want(t, ExitOK, list...)
				var answer struct {
					Page struct {
						Next string `json:"next_page_token"`
					}
				}
				if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Page.Next == "" ||
					!strings.Contains(msg, "--page-token "+answer.Page.Next+",") {
					t.Fatalf("%q: %v, token %q, stderr %q", args, err, answer.Page.Next, msg)
				}
				s.since += time.Minute + 7
				out, msg = s.want(t, ExitOK, append(list, "--page-token", answer.Page.Next)...)
				if !strings.Contains(out, s.server.runs[1].RunId) || strings.Contains(out, s.server.runs[0].RunId) {
					t.Errorf("%q: goes on with\n%s", args, out)
				}
				if _, before, _ := strings.Cut(msg, "previous runs: --page-token "); before == "" {
					t.Errorf("%q: stderr %q does not lead back", args, msg)
				} else {
					s.since += time.Second
					s.want(t, ExitOK, append(list, "--page-token", strings.TrimSpace(before))...)
				}
				first := s.server.requests[0].(*kagziv1.ListWorkflowsRequest)
				for _, asked := range s.server.requests[1:] {
					then := proto.CloneOf(asked.(*kagziv1.ListWorkflowsRequest))
					if !strings.HasSuffix(then.Page.PageToken, "1") {
						t.Errorf("%q: the server was given the token %q", args, then.Page.PageToken)
					}
					then.Page = first.Page
					if !proto.Equal(first, then) {
						t.Errorf("%q: asked for %v, and to go on for %v", args, first, then)
					}
				}
			}
		})
	t.Run("goes back to the previous page", func(t *testing.T) {
		s := &session{server: sampleServer()}
		out, _ := s.want(t, ExitOK, "wf", "list", "--page-token", "<2", "--limit", "1", "-o", "json")
		for _, want := range []string{`"next_page_token": "2"`, `"prev_page_token": "<1"`, s.server.runs[1].RunId} {
			if !strings.Contains(out, want) {
				t.Errorf("stdout lacks %s:\n%s", want, out)
			}
		}
	})
	t.Run("local filters keep the limit and lose no run", func(t *testing.T) {
		s := &session{server: &fake{}}
		for i := range 6 {
			s.server.runs = append(s.server.runs, &kagziv1.Workflow{
				RunId: string(rune('a' + i)), ExternalId: []string{"o", "o-1"}[i%2]})
		}
		out, msg := s.want(t, ExitOK, "wf", "list", "--external-id", "o", "--limit", "2", "-o", "jsonl")
		if strings.Count(out, "\n") != 2 || !strings.Contains(msg, "--page-token 3") {
			t.Fatalf("stdout %q, stderr %q", out, msg)
		}
		if out, _ := s.want(t, ExitOK, "wf", "count", "--external-id", "o"); out != "3\n" {
			t.Fatalf("count = %q, want 3", out)
		}
	})
	t.Run("an empty list is a message, or an empty document", func(t *testing.T) {
		s := &session{}
		out, msg := s.want(t, ExitOK, "wf", "list", "-q", "type = a")
		if out != "" || !strings.Contains(msg, `no runs match type = a in namespace default`) {
			t.Fatalf("stdout %q, stderr %q", out, msg)
		}
		if out, _ := s.want(t, ExitOK, "wf", "list", "-o", "json"); !strings.Contains(out, `"workflows": []`) {
			t.Fatalf("stdout %q", out)
		}
	})
}

func TestShow_payloads_can_be_cut_whole_or_left_out(t *testing.T) {
	s := &session{server: sampleServer()}
	s.server.runs[0].Input.Data = []byte(`"` + strings.Repeat("x", 5000) + `"`)
	id := s.server.runs[0].RunId
	if out, _ := s.want(t, ExitOK, "wf", "show", id); !strings.Contains(
		out, "2.9 KiB more (--payloads full shows all)") {
		t.Errorf("not cut:\n%s", out)
	}
	if out, _ := s.want(t, ExitOK, "wf", "show", id, "--payloads", "full"); !strings.Contains(
		out, strings.Repeat("x", 5000)) {
		t.Errorf("not whole:\n%s", out)
	}
	for i, stack := range []string{"first", "second", ""} {
		s.server.stepList = append(s.server.stepList,
			&kagziv1.Step{RunId: id, Name: "tool", Sequence: 3, AttemptNumber: int32(i + 1),
				Error: &kagziv1.ErrorDetail{Message: "panic", Stack: stack}})
	}
	if out, _ := s.want(t, ExitOK, "wf", "show", id); strings.Contains(out, "first") ||
		!strings.Contains(out, "Error of tool, attempt 2\n  panic\n      second") {
		t.Errorf("not the stack of the last attempt that has one:\n%s", out)
	}
	if out, _ := s.want(t, ExitOK, "wf", "show", "--external", "order-17", "--payloads", "none"); strings.Contains(
		out, "xxx") {
		t.Errorf("not left out:\n%s", out)
	}
}

func TestShow_failed_leaves_out_what_succeeded(t *testing.T) {
	s := &session{server: sampleServer()}
	id := "01936b2e-0000-7000-8000-000000000003"
	out, _ := s.want(t, ExitOK, "wf", "show", id, "--failed", "-o", "json")
	if strings.Contains(out, `"reserve"`) || strings.Count(out, `"step_id"`) != 1 || !strings.Contains(out, `"s3"`) {
		t.Errorf("the steps are not the one that failed:\n%s", out)
	}
	asked := false
	for _, r := range s.server.requests {
		if r, ok := r.(*kagziv1.ListStepsRequest); ok {
			asked = r.GetLatestOnly() && len(r.GetStatuses()) == 3
		}
	}
	if !asked {
		t.Error("the server is asked for more than the steps that are shown")
	}
	s.want(t, ExitUsage, "wf", "show", id, "--failed", "--tree")
}

func TestWait(t *testing.T) {
	t.Run("exits with the code of the run's status", func(t *testing.T) {
		for st, code := range map[kagziv1.WorkflowStatus]int{
			kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED:  ExitOK,
			kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED:     ExitRunFailed,
			kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT:  ExitRunTimedOut,
			kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED:  ExitRunStopped,
			kagziv1.WorkflowStatus_WORKFLOW_STATUS_TERMINATED: ExitRunStopped,
		} {
			run := &kagziv1.Workflow{RunId: "run-1", ExternalId: "x", Status: st}
			for _, args := range [][]string{{"wf", "wait", "run-1"}, {"wf", "wait", "x", "--external"},
				{"wf", "start", "a", "--wait"}} {
				out, _ := (&session{server: &fake{runs: []*kagziv1.Workflow{run}}}).want(t, code, args...)
				if !strings.HasPrefix(out, "run-1  ") {
					t.Errorf("stdout %q", out)
				}
			}
			s := &session{server: &fake{streams: []*stream{
				{events: []*kagziv1.WatchWorkflowEvent{{Workflow: run}}, end: errEOF}}}}
			s.want(t, code, "wf", "watch", "run-1")
		}
	})
	t.Run("shows the duration without the wait before the start", func(t *testing.T) {
		for _, c := range []struct {
			started *timestamppb.Timestamp
			want    string
		}{{at(-3 * time.Second), "run-1  CANCELLED  3s\n"}, {nil, "run-1  CANCELLED  -\n"}} {
			run := &kagziv1.Workflow{RunId: "run-1", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_CANCELLED,
				CreatedAt: at(-time.Hour), StartedAt: c.started, FinishedAt: at(0)}
			for _, args := range [][]string{{"wf", "wait", "run-1"}, {"wf", "start", "a", "--wait"}} {
				if out, _ := (&session{server: &fake{runs: []*kagziv1.Workflow{run}}}).want(
					t, ExitRunStopped, args...); out != c.want {
					t.Errorf("%s: stdout %q, want %q", strings.Join(args, " "), out, c.want)
				}
			}
		}
	})
	t.Run("follows a run that continues as new", func(t *testing.T) {
		next := "run-2"
		s := &session{server: &fake{runs: []*kagziv1.Workflow{
			{RunId: "run-1", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, ContinuedAsRunId: &next},
			{RunId: "run-2", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED},
		}}}
		out, msg := s.want(t, ExitRunFailed, "wf", "wait", "run-1")
		if !strings.HasPrefix(out, "run-2  ") || !strings.Contains(msg, "the run continued as run-2") {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
	})
	t.Run("stops at a cycle of continuations", func(t *testing.T) {
		self := "run-1"
		s := &session{server: &fake{runs: []*kagziv1.Workflow{
			{RunId: "run-1", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, ContinuedAsRunId: &self},
		}}}
		s.want(t, ExitOK, "wf", "wait", "run-1")
	})
	t.Run("exits with the code of the first run that did not complete", func(t *testing.T) {
		s := &session{server: &fake{runs: []*kagziv1.Workflow{
			{RunId: "a", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED},
			{RunId: "b", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT},
			{RunId: "c", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED},
		}}}
		if out, _ := s.want(t, ExitRunTimedOut, "wf", "wait", "a", "b", "c"); strings.Count(out, "\n") != 3 {
			t.Errorf("stdout %q", out)
		}
	})
}

func TestQueueList_says_what_it_left_out(t *testing.T) {
	s := &session{server: sampleServer()}
	out, msg := s.want(t, ExitOK, "queue", "list", "--limit", "1")
	if strings.Count(out, "\n") != 2 || !strings.Contains(msg, "1 queue not shown") {
		t.Fatalf("stdout %q, stderr %q", out, msg)
	}
	if out, msg := s.want(t, ExitOK, "queue", "list", "--limit", "1", "--all"); strings.Count(out, "\n") != 3 ||
		msg != "" {
		t.Fatalf("stdout %q, stderr %q", out, msg)
	}
	s.want(t, ExitNotFound, "queue", "show", "none")
	s.want(t, ExitUsage, "queue", "show", "")
}

func TestVersion(t *testing.T) {
	s := &session{server: sampleServer()}
	if out, _ := s.want(t, ExitOK, "version"); !strings.HasPrefix(out, "kagzi version 1.2.3 (") || len(s.server.requests) > 0 {
		t.Errorf("stdout %q", out)
	}
	if out, _ := s.want(t, ExitOK, "version", "--server"); !strings.Contains(out, "1.2.4") {
		t.Errorf("stdout %q", out)
	}
	if out, _ := s.want(t, ExitOK, "version", "-o", "json"); !strings.Contains(out, `"version": "1.2.3"`) {
		t.Errorf("stdout %q", out)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out, _ := (&session{}).want(t, ExitOK, "completion", shell); !strings.Contains(out, "kagzi") {
			t.Errorf("%s: %q", shell, out)
		}
	}
	s := &session{server: sampleServer()}
	for line, want := range map[string]string{
		"workflow show 01": "01936b2e-0000-7000-8000-000000000003\torder FAILED", "workflow start ot": "other",
		"queue show o": "orders",
		"worker show ": "w1\tONLINE box", "workflow list --status F": "FAILED", "workflow list --queue d": "default",
		"workflow list -o j": "jsonl",
		"workflow override 01936b2e-0000-7000-8000-000000000003 ch":          "charge\tFAILED",
		"workflow retry 01936b2e-0000-7000-8000-000000000003 --from-step ch": "charge",
		"schedule show d": "daily\treport 0 9 * * 1-5", "schedule pause 01936b2e": scheduleID,
		"namespace show p": "payments\tPayments", "schedule create x --overlap b": "buffer-one",
	} {
		if out, _ := s.want(t, ExitOK, append([]string{"__complete"},
			strings.Split(line, " ")...)...); !strings.Contains(out, want) {
			t.Errorf("%s: %q lacks %q", line, out, want)
		}
	}
	if out, _ := s.want(t, ExitOK, "__complete", "workflow", "start", "o"); strings.Contains(out, "\x1b") {
		t.Errorf("a control character got out: %q", out)
	}
}
