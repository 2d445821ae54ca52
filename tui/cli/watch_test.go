package cli

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

var errEOF = io.EOF

func watchedRuns() (pending, running, completed *kagziv1.Workflow, first, second *kagziv1.Step) {
	pending = &kagziv1.Workflow{RunId: "run-1", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING}
	running = &kagziv1.Workflow{RunId: "run-1", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING,
		WorkerId: new("w1")}
	completed = &kagziv1.Workflow{RunId: "run-1", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED,
		Output: &kagziv1.Payload{Data: []byte("42")}}
	first = &kagziv1.Step{StepId: "s1", Name: "charge", AttemptNumber: 1,
		Status: kagziv1.StepStatus_STEP_STATUS_PENDING, Error: &kagziv1.ErrorDetail{Message: "no\x1bline"},
		RetryAt: at(time.Second)}
	second = &kagziv1.Step{StepId: "s2", Name: "charge", AttemptNumber: 2,
		Status: kagziv1.StepStatus_STEP_STATUS_COMPLETED, Output: &kagziv1.Payload{Data: []byte(`"ok"`)},
		FinishedAt: at(0)}
	return pending, running, completed, first, second
}

func TestWatch_prints_a_line_for_each_change_and_outlasts_the_server(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pending, running, completed, first, second := watchedRuns()
		superseded := proto.CloneOf(first) // has nothing new
		superseded.Status, superseded.FinishedAt = kagziv1.StepStatus_STEP_STATUS_FAILED, at(0)
		s := &session{server: &fake{streams: []*stream{
			{events: []*kagziv1.WatchWorkflowEvent{
				{Workflow: pending}, {SnapshotDone: true}, {Workflow: running, Steps: []*kagziv1.Step{first}}},
				end: status.Error(codes.Unavailable, "server is stopping")},
			{end: unavailable},
			{events: []*kagziv1.WatchWorkflowEvent{
				{Workflow: running, Steps: []*kagziv1.Step{first}}, {SnapshotDone: true},
				{Workflow: completed, Steps: []*kagziv1.Step{superseded, second}}}, end: io.EOF},
		}}}
		begin := time.Now()
		out, msg := s.want(t, ExitOK, "wf", "watch", "run-1")
		want := "12:00:00.000  run   PENDING\n12:00:00.000  run   RUNNING  by w1\n" +
			"12:00:00.000  step  PENDING  charge  no\\x1bline, again in 1s\n" +
			"12:00:00.000  step  COMPLETED  charge, attempt 2  \"ok\"\n12:00:00.000  run   COMPLETED  42\n"
		if out != want {
			t.Errorf("stdout\n%swant\n%s", out, want)
		}
		if strings.Count(msg, "retrying") != 2 || time.Since(begin) != 3*time.Second {
			t.Errorf("stderr %q after %s", msg, time.Since(begin))
		}
	})
}

func TestWatch_shows_when_ended_steps_ended(t *testing.T) {
	_, _, completed, _, second := watchedRuns()
	second.FinishedAt, completed.FinishedAt = at(-time.Hour), at(-time.Minute)
	s := &session{server: &fake{streams: []*stream{
		{events: []*kagziv1.WatchWorkflowEvent{{Workflow: completed, Steps: []*kagziv1.Step{second}}}, end: io.EOF}}}}
	out, _ := s.want(t, ExitOK, "wf", "watch", "run-1")
	if want := "11:00:00.000  step  COMPLETED  charge, attempt 2  \"ok\"\n11:59:00.000  run   COMPLETED  42\n"; out !=
		want {
		t.Errorf("stdout\n%swant\n%s", out, want)
	}
}

func TestWatch_follows_a_run_that_continues_as_new(t *testing.T) {
	ends := func(id string, s kagziv1.WorkflowStatus, next *string) *stream {
		run := &kagziv1.Workflow{RunId: id, Status: s, FinishedAt: at(0), ContinuedAsRunId: next,
			Error: &kagziv1.ErrorDetail{Message: "end of " + id}}
		step := &kagziv1.Step{StepId: "step of " + id, Name: "poll", AttemptNumber: 1,
			Status: kagziv1.StepStatus_STEP_STATUS_COMPLETED, FinishedAt: at(0)}
		return &stream{events: []*kagziv1.WatchWorkflowEvent{{Workflow: run, Steps: []*kagziv1.Step{step}}},
			end: io.EOF}
	}
	first := ends("run-1", kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, new("run-2"))
	first.end = status.Error(codes.Unavailable, "server is stopping") // after everything about the first
	s := &session{server: &fake{streams: []*stream{
		first, ends("run-2", kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, new("run-3")),
		ends("run-3", kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED, nil),
	}}}
	out, msg := s.want(t, ExitRunFailed, "wf", "watch", "run-1")
	want := strings.Repeat("12:00:00.000  step  COMPLETED  poll\n12:00:00.000  run   COMPLETED\n", 2) +
		"12:00:00.000  step  COMPLETED  poll\n12:00:00.000  run   FAILED  end of run-3\n"
	if out != want || msg != "the run continued as run-2\nthe run continued as run-3\n" {
		t.Errorf("stdout\n%swant\n%sstderr %q", out, want, msg)
	}
	var asked []string
	for _, r := range s.server.requests {
		asked = append(asked, r.(*kagziv1.WatchWorkflowRequest).RunId)
	}
	if strings.Join(asked, " ") != "run-1 run-2 run-3" {
		t.Errorf("asked for %v", asked)
	}

	s = &session{server: &fake{streams: []*stream{
		ends("run-1", kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, new("run-2")),
		ends("run-2", kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, new("run-1")),
	}}}
	s.want(t, ExitOK, "wf", "watch", "run-1") // must stop at the cycle
}

func TestWatch_in_every_format_is_one_valid_document(t *testing.T) {
	for _, format := range []string{"json", "jsonl", "yaml"} {
		pending, _, completed, first, _ := watchedRuns()
		s := &session{server: &fake{streams: []*stream{
			{events: []*kagziv1.WatchWorkflowEvent{
				{Workflow: pending, Steps: []*kagziv1.Step{first}}, {Workflow: completed}}, end: io.EOF}}}}
		out, _ := s.want(t, ExitOK, "wf", "watch", "run-1", "-o", format)
		golden(t, "workflow-watch."+format, out)
		assertParses(t, format, out)
	}
}

func TestWatch_gives_up_where_no_server_ever_answered(t *testing.T) {
	s := &session{server: &fake{streams: []*stream{{end: unavailable}}}}
	s.want(t, ExitUnavailable, "wf", "watch", "run-1")
	s = &session{server: &fake{streams: []*stream{{end: notFound("run-1")}}}}
	s.want(t, ExitNotFound, "wf", "watch", "run-1")
}

func TestA_timeout_is_reported_as_given(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, limit := range []string{"300us", "1ns", "90m", "1d"} {
			still := func() (*kagziv1.WaitWorkflowResponse, error) {
				time.Sleep(48 * time.Hour)
				return nil, status.Error(codes.DeadlineExceeded, "late")
			}
			s := &session{server: &fake{waits: []func() (*kagziv1.WaitWorkflowResponse, error){still}}}
			if _, msg := s.want(t, ExitError, "wf", "wait", "run-1", "--timeout", limit); !strings.Contains(
				msg, "gave up after "+limit+" (--timeout)") {
				t.Errorf("--timeout %s: %q", limit, msg)
			}
		}
	})
}

func TestA_wait_that_gives_up_says_why_the_run_has_not_ended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		still := func() (*kagziv1.WaitWorkflowResponse, error) {
			time.Sleep(time.Hour)
			return nil, status.Error(codes.DeadlineExceeded, "late")
		}
		for _, c := range []struct {
			explained *kagziv1.ExplainWorkflowResponse
			fail      map[string]error
			want      string
		}{
			{explained: &kagziv1.ExplainWorkflowResponse{Summary: "no online worker serves type a\x1b[31m in queue q"},
				want: "error: gave up after 2s (--timeout)\n  the run continues: no online worker serves type a\\x1b[31m in queue q\n" +
					"  see what it waits for: kagzi workflow explain run-1 --namespace shop --address db:1\n"},
			{fail: map[string]error{"ExplainWorkflow": unavailable},
				want: "error: gave up after 2s (--timeout)\n  see what it waits for: kagzi workflow explain run-1 --namespace shop --address db:1\n"},
		} {
			s := &session{server: &fake{waits: []func() (*kagziv1.WaitWorkflowResponse, error){still},
				runs: []*kagziv1.Workflow{{RunId: "run-1"}}, explained: c.explained, fail: c.fail}}
			if _, msg := s.want(t, ExitError, "wf", "wait", "run-1", "--timeout", "2s", "-n", "shop", "--address",
				"db:1"); msg != c.want {
				t.Errorf("stderr\n%s\nwant\n%s", msg, c.want)
			}
		}
	})
}

func TestWaiting_says_after_3_seconds_what_the_run_waits_for(t *testing.T) {
	for _, args := range [][]string{{"wf", "start", "order", "--wait"}, {"wf", "wait", "run-1"}, {"wf", "watch", "run-1"}} {
		synctest.Test(t, func(t *testing.T) {
			_, running, completed, _, _ := watchedRuns()
			ended := func() (*kagziv1.WaitWorkflowResponse, error) {
				time.Sleep(time.Minute)
				return &kagziv1.WaitWorkflowResponse{Workflow: completed, Finished: true}, nil
			}
			s := &session{server: &fake{waits: []func() (*kagziv1.WaitWorkflowResponse, error){ended},
				streams: []*stream{{events: []*kagziv1.WatchWorkflowEvent{{Workflow: running}, {Workflow: completed}},
					pause: time.Minute, end: io.EOF}},
				runs:      []*kagziv1.Workflow{{RunId: "run-1"}},
				explained: &kagziv1.ExplainWorkflowResponse{Summary: "waits for signal a\x1b[31m"}}}
			if _, msg := s.want(t, ExitOK, args...); !strings.HasSuffix("\n"+msg,
				"\nrun run-1: waits for signal a\\x1b[31m\n") {
				t.Errorf("%v: stderr %q", args, msg)
			}
		})
	}
}

func TestWait_outlasts_the_server_and_keeps_to_its_timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		still := func() (*kagziv1.WaitWorkflowResponse, error) { return &kagziv1.WaitWorkflowResponse{}, nil }
		gone := func() (*kagziv1.WaitWorkflowResponse, error) { return nil, unavailable }
		runs := []*kagziv1.Workflow{{RunId: "run-1", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED}}

		s := &session{server: &fake{runs: runs, waits: []func() (*kagziv1.WaitWorkflowResponse, error){
			still, gone, gone, still}}}
		s.want(t, ExitOK, "wf", "wait", "run-1")

		s = &session{server: &fake{runs: runs, waits: []func() (*kagziv1.WaitWorkflowResponse, error){
			still, gone, gone, gone, gone}}}
		begin := time.Now()
		_, msg := s.want(t, ExitError, "wf", "wait", "run-1", "--timeout", "5s")
		if !strings.Contains(msg, "gave up after 5s") || time.Since(begin) != 5*time.Second {
			t.Errorf("stderr %q after %s", msg, time.Since(begin))
		}
	})
}

func TestWait_outlasts_a_server_that_is_lost_during_its_first_call(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		still := func() (*kagziv1.WaitWorkflowResponse, error) { return &kagziv1.WaitWorkflowResponse{}, nil }
		cut := func() (*kagziv1.WaitWorkflowResponse, error) {
			return nil, status.Error(codes.Unavailable, "error reading from server: EOF")
		}
		gone := func() (*kagziv1.WaitWorkflowResponse, error) { return nil, unavailable }
		runs := []*kagziv1.Workflow{{RunId: "run-1", ExternalId: "x",
			Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED}}
		for _, c := range []struct {
			args  []string
			first func() (*kagziv1.WaitWorkflowResponse, error)
		}{
			{[]string{"wf", "wait", "run-1"}, cut},
			{[]string{"wf", "wait", "x", "--external"}, gone}, // which was asked for the run before
			{[]string{"wf", "start", "a", "--wait"}, gone},    // which has started it
		} {
			s := &session{server: &fake{runs: runs,
				waits: []func() (*kagziv1.WaitWorkflowResponse, error){c.first, gone, still}}}
			if _, msg := s.want(t, ExitOK, c.args...); strings.Count(msg, "retrying") != 2 {
				t.Errorf("%v: stderr %q, want two tries", c.args, msg)
			}
		}
		s := &session{server: &fake{runs: runs, waits: []func() (*kagziv1.WaitWorkflowResponse, error){gone}}}
		s.want(t, ExitUnavailable, "wf", "wait", "run-1")
	})
}

func TestWait_outlasts_a_server_that_is_lost_between_two_runs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := func() (*kagziv1.WaitWorkflowResponse, error) {
			return &kagziv1.WaitWorkflowResponse{Finished: true,
					Workflow: &kagziv1.Workflow{RunId: "run-1",
						Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED}},
				nil
		}
		runs := []*kagziv1.Workflow{{RunId: "run-1", ExternalId: "x"}, {RunId: "run-2", ExternalId: "y"}}
		s := &session{server: &fake{runs: runs, finds: []error{nil, unavailable, unavailable},
			waits: []func() (*kagziv1.WaitWorkflowResponse, error){ended, ended}}}
		if _, msg := s.want(t, ExitOK, "wf", "wait", "--external", "x", "y"); strings.Count(msg, "retrying") != 2 {
			t.Errorf("stderr %q, want two tries", msg)
		}
		s = &session{server: &fake{runs: runs, finds: []error{unavailable}}}
		s.want(t, ExitUnavailable, "wf", "wait", "--external", "x")
	})
}
