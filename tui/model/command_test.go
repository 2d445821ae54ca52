package model_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/cli"
	"github.com/kagzi/kagzi/tui/model"
)

// recorder is a server that answers every call with little and records the requests.
type recorder struct {
	mu       sync.Mutex
	requests []recorded
	schedule *kagziv1.WorkflowSchedule // of GetWorkflowSchedule
}

type recorded struct {
	method  string
	request proto.Message
}

func (r *recorder) handle(_ any, stream grpc.ServerStream) error {
	name, _ := grpc.MethodFromServerStream(stream)
	service, method, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return err
	}
	m := d.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(method))
	request, answer := message(m.Input()), message(m.Output())
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	if method == "Watch" {
		<-stream.Context().Done()
		return nil
	}
	switch a := answer.(type) {
	case *kagziv1.GetWorkflowScheduleResponse:
		a.Schedule = r.schedule
	case *kagziv1.DrainWorkerResponse:
		a.Success = true
	case *kagziv1.DeleteNamespaceResponse:
		a.Deleted = true
	case *kagziv1.WhoAmIResponse: // the commands for keys ask first
		a.KeysRequired = true
		return stream.SendMsg(answer)
	case *kagziv1.ListKeysResponse:
		a.Keys = []*kagziv1.Key{{KeyId: someRun}, {KeyId: otherRun}}
		return stream.SendMsg(answer)
	}
	forgetIDs(request)
	r.mu.Lock()
	r.requests = append(r.requests, recorded{method, request})
	r.mu.Unlock()
	return stream.SendMsg(answer)
}

func message(d protoreflect.MessageDescriptor) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		panic(err)
	}
	return t.New().Interface()
}

// forgetIDs removes from a request the ids that are new for each call.
func forgetIDs(m proto.Message) {
	for _, name := range []protoreflect.Name{"request_id", "signal_id"} {
		if f := m.ProtoReflect().Descriptor().Fields().ByName(name); f != nil {
			m.ProtoReflect().Clear(f)
		}
	}
}

// take returns the requests since the last take, without those that only read.
func (r *recorder) take() []recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	requests := slices.DeleteFunc(r.requests, func(q recorded) bool {
		return strings.HasPrefix(q.method, "Get") || q.method == "HealthCheck" || q.method == "PreviewSchedule"
	})
	r.requests = nil
	return requests
}

func serve(t *testing.T) (*recorder, string) {
	t.Helper()
	r := &recorder{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(r.handle))
	done := make(chan error)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return r, listener.Addr().String()
}

// words returns the argument lists of a shell line with one or more commands.
func words(t *testing.T, line string) [][]string {
	t.Helper()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no POSIX shell here")
	}
	out, err := exec.Command(shell, "-c", `kagzi() { printf '%s\0' "$@"; printf '\1\0'; }; `+line).Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	var lists [][]string
	for part := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x01\x00"), "\x01\x00") {
		lists = append(lists, strings.Split(strings.TrimSuffix(part, "\x00"), "\x00"))
	}
	return lists
}

const (
	someRun      = "0193a5c0-0000-7000-8000-000000000001"
	otherRun     = "0193a5c0-0000-7000-8000-000000000002"
	someSchedule = "0193a5c0-0000-7000-8000-000000000003"
)

// actions returns actions of all kinds, with values that shells and flag parsers may mistreat.
func actions(s model.Scope) []model.Action {
	nasty := "it's \"$HOME\" `id` \\ * -- \n é 注 --flag=x"
	policy := &kagziv1.RetryPolicy{MaximumAttempts: -1, InitialIntervalMs: 1500, BackoffCoefficient: 1.5,
		MaximumIntervalMs: 60_000, Jitter: -1, NonRetryableErrors: []string{"A", nasty}}
	timeouts := &kagziv1.TimeoutConfig{StartToCloseTimeoutMs: 1, HeartbeatTimeoutMs: 2000,
		ExecutionTimeoutMs: 7 * 86_400_000}
	input := &kagziv1.Payload{Data: []byte(`{"a": "it's", "b": [1, -2]}`),
		Metadata: map[string]string{"content-type": "application/json"}}
	moment := timestamppb.New(time.Date(2026, 11, 20, 12, 0, 0, 123_000_000, time.UTC))
	old := &kagziv1.WorkflowSchedule{ScheduleId: someSchedule, Tags: map[string]string{`o"l,d`: "1", "kept": "2"},
		RetryPolicy: &kagziv1.RetryPolicy{MaximumAttempts: 9, Jitter: 0.5}}
	two := []string{someRun, otherRun}
	return []model.Action{
		s.Start(&kagziv1.StartWorkflowRequest{WorkflowType: "order"}),
		s.Start(&kagziv1.StartWorkflowRequest{
			WorkflowType: "order", Input: input, TaskQueue: "q", Version: "v2", ExternalId: "o-1",
			ExternalIdReuse: kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_REJECT, Priority: new(int32(-5)),
			Tags: map[string]string{"k": nasty, "l": "a=b"}, Requirements: map[string]string{"gpu": ""},
			StartAt: moment, DeadlineAt: moment, RetryPolicy: policy, Timeouts: timeouts,
			RunRetryPolicy:    &kagziv1.RetryPolicy{MaximumAttempts: 1},
			OnFailureWorkflow: "h", OnFailureTaskQueue: "hq", ConcurrencyKey: "c", ConcurrencyLimit: 3,
			ConcurrencyScope: kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN,
		}),
		s.Start(&kagziv1.StartWorkflowRequest{WorkflowType: "-order",
			Input: &kagziv1.Payload{Data: []byte("-5"), Metadata: input.Metadata}}),
		s.Cancel(two, 0, nasty), s.Cancel(two, 90*time.Second, ""), s.Terminate(two, "-x"),
		s.Retry(two, model.RetryOptions{}), s.Retry(two[:1], model.RetryOptions{FromStep: "charge:2", Reason: nasty}),
		s.Retry(two[:1], model.RetryOptions{Restart: true, Input: input.Data}),
		s.Signal(two, "approval", nil), s.Signal(two[:1], "approval", []byte(`"it's"`)),
		s.Pause(two, false, nasty), s.Pause(two, true, ""),
		s.Resume(two, false, ""), s.Resume(two, true, nasty), s.Pin(two, true, "keep"), s.Pin(two, false, ""),
		s.Override(someRun, model.Override{Step: "charge", Output: []byte(`{"id": 1}`), Reason: nasty}),
		s.Override(someRun, model.Override{Step: "charge", Message: nasty, Type: "Declined", Reason: "r"}),
		s.Drain([]string{"w1", "-w2"}), s.ForceOffline([]string{"w1"}),
		s.CreateSchedule(&kagziv1.CreateWorkflowScheduleRequest{WorkflowType: "report", CronExpr: "*/5 * * * *"}),
		s.CreateSchedule(&kagziv1.CreateWorkflowScheduleRequest{
			WorkflowType: "report", CronExpr: "@hourly", TimeZone: "Europe/Berlin", TaskQueue: "q", Name: "n",
			Version: new("v1"), MaxCatchup: new(int32(0)), JitterMs: 90_000,
			OverlapPolicy: kagziv1.OverlapPolicy_OVERLAP_POLICY_BUFFER_ONE,
			Tags:          map[string]string{"a": nasty}, Input: input, RetryPolicy: policy, Timeouts: timeouts,
			RunRetryPolicy:    policy,
			OnFailureWorkflow: "h", OnFailureTaskQueue: "hq", Enabled: new(false), ConcurrencyKey: "c", ConcurrencyLimit: 3,
			ConcurrencyScope: kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_SLOT,
		}),
		s.UpdateSchedule(old, &kagziv1.UpdateWorkflowScheduleRequest{ConcurrencyKey: new(""), ConcurrencyLimit: new(int32(0)),
			ConcurrencyScope: kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN.Enum()}),
		s.UpdateSchedule(old, &kagziv1.UpdateWorkflowScheduleRequest{CronExpr: new("0 9 * * *"), Enabled: new(false)}),
		s.UpdateSchedule(old, &kagziv1.UpdateWorkflowScheduleRequest{
			TimeZone: new(""), WorkflowType: new("t"), TaskQueue: new("q"), Name: new(""), Version: new("v"),
			MaxCatchup: new(int32(7)), OverlapPolicy: new(kagziv1.OverlapPolicy_OVERLAP_POLICY_ALLOW),
			JitterMs:   new(int64(1500)),
			NextFireAt: moment, Input: input, Tags: &kagziv1.ScheduleTags{
				Tags: map[string]string{"kept": "3", "new": nasty}},
			RetryPolicy: &kagziv1.RetryPolicy{MaximumAttempts: 2}, Timeouts: timeouts,
			RunRetryPolicy:    &kagziv1.RetryPolicy{MaximumAttempts: 1},
			OnFailureWorkflow: new(""), OnFailureTaskQueue: new("x"), Reason: nasty, Enabled: new(true),
		}),
		s.PauseSchedules([]string{someSchedule}, nasty), s.ResumeSchedules([]string{someSchedule}, 0, ""),
		s.ResumeSchedules([]string{someSchedule}, 12, nasty),
		s.TriggerSchedules([]string{someSchedule, someSchedule}), s.DeleteSchedules([]string{someSchedule}, "r"),
		s.CreateNamespace(&kagziv1.CreateNamespaceRequest{Namespace: "payments"}),
		s.CreateNamespace(&kagziv1.CreateNamespaceRequest{
			Namespace: "payments", DisplayName: nasty, Description: new(""), Retention: durationpb.New(720 * time.Hour),
			FailureTaskQueue: "f",
			Keep: map[string]*durationpb.Duration{
				"failed": durationpb.New(90 * 24 * time.Hour), "timed_out": durationpb.New(time.Hour)},
		}),
		s.CreateKey(&kagziv1.Key{Name: nasty, Role: kagziv1.KeyRole_KEY_ROLE_ADMIN}),
		s.CreateKey(&kagziv1.Key{Name: "w", Role: kagziv1.KeyRole_KEY_ROLE_WORKER, Namespaces: []string{"a", "b"},
			TaskQueues: []string{"orders*", "mail"}, WorkflowTypes: []string{"order"}, WorkerIds: []string{"box-*", "w1"},
			ExpiresAt: timestamppb.New(time.Date(2999, 1, 31, 12, 0, 0, 0, time.UTC))}),
		s.RevokeKeys([]string{someRun, otherRun}),
		s.EnableNamespaces([]string{"a", "b"}, ""), s.DisableNamespaces([]string{"a"}, nasty),
		s.DeleteNamespaces([]string{"a", "b"}, false, nasty), s.DeleteNamespaces([]string{"a"}, true, ""),
		s.BackfillSchedule(someSchedule, moment, nil, nasty), s.BackfillSchedule(someSchedule, moment, moment, ""),
		s.CreateHook(&kagziv1.CreateHookRequest{Name: "gh", WorkflowType: nasty, TaskQueue: "ci",
			Signature: kagziv1.HookSignature_HOOK_SIGNATURE_GITHUB}),
		s.RotateHook("gh", "", 90*time.Minute), s.RotateHook("gh", "", 0), s.DeleteHooks([]string{"gh", nasty}),
	}
}

// TestCommandLine_does_what_the_action_does parses each command line with a shell, runs it with
// this program's command line, and compares the requests with those of the action.
func TestCommandLine_does_what_the_action_does(t *testing.T) {
	record, address := serve(t)
	record.schedule = &kagziv1.WorkflowSchedule{
		ScheduleId: someSchedule, Tags: map[string]string{`o"l,d`: "1", "kept": "2"},
		RetryPolicy: &kagziv1.RetryPolicy{MaximumAttempts: 9, Jitter: 0.5}}
	conn, err := tui.Dial(tui.DialOptions{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	posts := make(chan func(), 1000)
	link := model.NewLink(t.Context(), conn, "", func(f func()) { posts <- f }, time.Now)
	defer link.Close()
	for _, namespace := range []string{"", "prod"} {
		for _, action := range actions(model.Scope{Namespace: namespace, Address: address}) {
			record.take()
			job := model.Perform(link, action, func(*model.Job) {})
			for job.Running() {
				(<-posts)()
			}
			if job.Failed > 0 {
				t.Errorf("%s: %v", action.Name, job.Results[0].Err)
				continue
			}
			want, line := record.take(), action.CommandLine()
			for _, args := range words(t, line) {
				run(t, line, args)
			}
			got := record.take()
			sort(want)
			sort(got)
			if diff := cmp.Diff(want, got, protocmp.Transform(), cmp.AllowUnexported(recorded{})); diff != "" ||
				len(got) == 0 {
				t.Errorf("%s\ndoes something else than %s:\n%s", line, action.Name, diff)
			}
		}
	}
}

func run(t *testing.T, line string, args []string) {
	t.Helper()
	root := &cobra.Command{Use: "kagzi", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(cli.Commands("test")...)
	root.SetArgs(args)
	root.SetIn(bytes.NewReader(nil))
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	if err := root.ExecuteContext(context.Background()); err != nil {
		t.Errorf("%s\nfails: %v", line, err)
	}
}

// sort orders concurrent requests.
func sort(list []recorded) {
	slices.SortFunc(list, func(a, b recorded) int {
		encode := func(r recorded) string {
			raw, _ := proto.MarshalOptions{Deterministic: true}.Marshal(r.request)
			return r.method + string(raw)
		}
		return strings.Compare(encode(a), encode(b))
	})
}
