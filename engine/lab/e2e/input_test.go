package e2e

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/long"
	"github.com/kagzi/kagzi/engine/server/rest/resttest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Bad input is made from the contract's descriptors, so that fields added later are tried too. Each
// request of goodRequests is sent with one field made bad at a time.

// inputStage is the data that good requests refer to.
type inputStage struct {
	run, token, step, worker, schedule string
}

// nobody is an id that nothing has.
const nobody = "0198a3c4-1b2d-7e6f-8a9b-0c1d2e3f4a5b"

// goodRequests has a request for each method, in which every field that can be bad is reachable.
// Requests that would be refused for the current state are still well-formed.
func goodRequests(at inputStage) map[string]proto.Message {
	policy := &kagziv1.RetryPolicy{MaximumAttempts: 1, NonRetryableErrors: []string{"x"}}
	payload := &kagziv1.Payload{Data: []byte("x"), Metadata: map[string]string{"k": "v"}}
	start := &kagziv1.StartWorkflowRequest{
		WorkflowType: "input", Input: payload, RetryPolicy: policy, RunRetryPolicy: policy,
		Timeouts:     &kagziv1.TimeoutConfig{},
		Tags:         map[string]string{"k": "v"},
		Requirements: map[string]string{"k": "v"}, OnFailureWorkflow: "f", ConcurrencyKey: "c",
		ConcurrencyScope: kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN,
		StartAt:          timestamppb.New(time.Now().Add(time.Hour)),
		DeadlineAt:       timestamppb.New(time.Now().Add(2 * time.Hour)), ParentRunId: at.run, ParentStepId: at.run,
	}
	failure := &kagziv1.ErrorDetail{Message: "m", Metadata: map[string]string{"k": "v"}}
	page := &kagziv1.PageRequest{}
	return map[string]proto.Message{
		"Watch":                   &kagziv1.WatchRequest{Interval: durationpb.New(time.Second)},
		"GetActivity":             &kagziv1.GetActivityRequest{Step: durationpb.New(time.Minute)},
		"WatchEvents":             &kagziv1.WatchEventsRequest{After: 1, Tail: 1},
		"StartWorkflow":           start,
		"StartWorkflows":          &kagziv1.StartWorkflowsRequest{Requests: []*kagziv1.StartWorkflowRequest{start}},
		"GetWorkflow":             &kagziv1.GetWorkflowRequest{RunId: at.run},
		"GetWorkflowByExternalId": &kagziv1.GetWorkflowByExternalIdRequest{ExternalId: "x"},
		"ListWorkflows": &kagziv1.ListWorkflowsRequest{
			Page: page, Tags: map[string]string{"k": "v"}, WorkflowTypes: []string{"t"}, TaskQueues: []string{"q"},
			Statuses: []kagziv1.WorkflowStatus{1}, CreatedAfter: timestamppb.Now(), CreatedBefore: timestamppb.Now()},
		"WaitWorkflow": &kagziv1.WaitWorkflowRequest{RunId: at.run, Wait: durationpb.New(0)},
		"AwaitWorkflows": &kagziv1.AwaitWorkflowsRequest{
			Waits: []*kagziv1.AwaitWorkflowsRequest_Wait{{Seq: 1, RunId: nobody}}},
		"WatchWorkflow":     &kagziv1.WatchWorkflowRequest{RunId: at.run},
		"CancelWorkflow":    &kagziv1.CancelWorkflowRequest{RunId: nobody},
		"TerminateWorkflow": &kagziv1.TerminateWorkflowRequest{RunId: nobody},
		"Register": &kagziv1.RegisterRequest{
			WorkflowTypes: []string{"t"}, TaskQueues: []string{"q"}, Labels: map[string]string{"k": "v"},
			Capabilities:            map[string]string{"k": "v"},
			WorkflowTypeConcurrency: []*kagziv1.WorkflowTypeConcurrency{{WorkflowType: "t", MaxConcurrent: 1}}},
		"Heartbeat": &kagziv1.HeartbeatRequest{
			WorkerId: at.worker, Stats: &kagziv1.WorkerStats{},
			Held: []*kagziv1.Lease{{RunId: at.run, LeaseToken: at.token}},
			Blocked: []*kagziv1.BlockedCode{{RunId: at.run, Since: timestamppb.Now(),
				Held: []*kagziv1.Call{{Name: "s", Kind: kagziv1.StepKind_STEP_KIND_FUNCTION}},
				Owed: []*kagziv1.Call{{Name: "s", Kind: kagziv1.StepKind_STEP_KIND_FUNCTION}}}}},
		"Deregister": &kagziv1.DeregisterRequest{WorkerId: "nobody"},
		"PollTask": &kagziv1.PollTaskRequest{
			WorkerId: at.worker, WorkflowTypes: []string{"t"}, Wait: durationpb.New(0)},
		"GetHistory": &kagziv1.GetHistoryRequest{RunId: at.run},
		"BeginStep": &kagziv1.BeginStepRequest{
			RunId: at.run, LeaseToken: at.token, StepName: "s", Input: payload, RetryPolicy: policy,
			StartedAt: timestamppb.Now()},
		"CompleteStep": &kagziv1.CompleteStepRequest{
			RunId: at.run, LeaseToken: at.token, StepId: "s", Output: payload, StartedAt: timestamppb.Now()},
		"FailStep": &kagziv1.FailStepRequest{
			RunId: at.run, LeaseToken: at.token, StepId: "f", Error: failure, RetryPolicy: policy,
			StartedAt: timestamppb.Now()},
		"Sleep": &kagziv1.SleepRequest{
			RunId: at.run, LeaseToken: at.token, StepId: "nap", Duration: durationpb.New(time.Hour), Hold: true},
		"CompleteWorkflow": &kagziv1.CompleteWorkflowRequest{
			RunId: at.run, LeaseToken: at.token, Output: payload, Unreached: []string{"s"}},
		"FailWorkflow": &kagziv1.FailWorkflowRequest{
			RunId: at.run, LeaseToken: at.token, Error: failure, Unreached: []string{"s"}},
		"ReleaseTask": &kagziv1.ReleaseTaskRequest{
			RunId: at.run, LeaseToken: at.token, Divergence: &kagziv1.Divergence{
				Made: []*kagziv1.Call{{Name: "s", Kind: kagziv1.StepKind_STEP_KIND_FUNCTION}},
				Owed: []*kagziv1.Call{{Name: "s", Kind: kagziv1.StepKind_STEP_KIND_FUNCTION}}}},
		"ListWorkers": &kagziv1.ListWorkersRequest{Page: page},
		"MatchWorkers": &kagziv1.MatchWorkersRequest{
			WorkflowType: "t", TaskQueue: "q", Requirements: map[string]string{"k": "v"}},
		"GetWorker":          &kagziv1.GetWorkerRequest{WorkerId: at.worker},
		"DrainWorker":        &kagziv1.DrainWorkerRequest{WorkerId: "nobody"},
		"ForceOfflineWorker": &kagziv1.ForceOfflineWorkerRequest{WorkerId: "nobody"},
		"GetStep":            &kagziv1.GetStepRequest{StepId: at.step},
		"ListSteps":          &kagziv1.ListStepsRequest{RunId: at.run, Page: page},
		"HealthCheck":        &kagziv1.HealthCheckRequest{},
		"GetServerInfo":      &kagziv1.GetServerInfoRequest{},
		"GetStats":           &kagziv1.GetStatsRequest{},
		"WatchStats":         &kagziv1.WatchStatsRequest{Interval: durationpb.New(time.Hour)},
		"GetQueueDepth":      &kagziv1.GetQueueDepthRequest{},
		"ListWorkflowTypes":  &kagziv1.ListWorkflowTypesRequest{Page: page},

		"PauseWorkflow":  &kagziv1.PauseWorkflowRequest{RunId: nobody},
		"ResumeWorkflow": &kagziv1.ResumeWorkflowRequest{RunId: nobody},
		"PinWorkflow":    &kagziv1.PinWorkflowRequest{RunId: nobody, Pinned: true},
		"RetryWorkflow":  &kagziv1.RetryWorkflowRequest{RunId: nobody, Restart: true, Input: payload},
		"OverrideStep": &kagziv1.OverrideStepRequest{
			RunId: nobody, StepName: "s", Reason: "r", Result: &kagziv1.OverrideStepRequest_Output{Output: payload}},
		"ExplainWorkflow": &kagziv1.ExplainWorkflowRequest{RunId: at.run},
		"ExportWorkflow":  &kagziv1.ExportWorkflowRequest{RunId: at.run},
		"ImportWorkflow":  &kagziv1.Capsule{Data: []byte("no zip")},
		"SignalWorkflow":  &kagziv1.SignalWorkflowRequest{RunId: nobody, Name: "s", Payload: payload, SignalId: "1"},
		"ListSignals":     &kagziv1.ListSignalsRequest{RunId: at.run, Page: page},
		"BulkWorkflows": &kagziv1.BulkWorkflowsRequest{
			Action: kagziv1.BulkAction_BULK_ACTION_CANCEL, Limit: 1, Filter: &kagziv1.ListWorkflowsRequest{
				Page: page, Tags: map[string]string{"no": "run"}, WorkflowTypes: []string{"t"},
				TaskQueues: []string{"q"},
				Statuses:   []kagziv1.WorkflowStatus{1}}},

		"AwaitSignal": &kagziv1.AwaitSignalRequest{
			RunId: at.run, LeaseToken: at.token, StepName: "w", SignalName: "s", Timeout: durationpb.New(time.Hour),
			Hold: true},
		"StartChild": &kagziv1.StartChildRequest{
			LeaseToken: at.token, StepName: "kid",
			Child: &kagziv1.StartWorkflowRequest{WorkflowType: "input", ParentRunId: at.run, ConcurrencyKey: "c",
				OnFailureWorkflow: "f"}},
		"AwaitChildren": &kagziv1.AwaitChildrenRequest{
			RunId: at.run, LeaseToken: at.token, ChildRunIds: []string{nobody}, Hold: true},
		"SetRunNote": &kagziv1.SetNote{RunId: at.run, LeaseToken: at.token, Note: "n"},

		"CreateWorkflowSchedule": &kagziv1.CreateWorkflowScheduleRequest{
			WorkflowType: "input", TaskQueue: "idle", CronExpr: "@yearly", Input: payload, RetryPolicy: policy,
			RunRetryPolicy: policy,
			Timeouts:       &kagziv1.TimeoutConfig{}, OnFailureWorkflow: "f", Tags: map[string]string{"k": "v"},
			ConcurrencyKey: "c", ConcurrencyLimit: 2, ConcurrencyScope: kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN},
		"GetWorkflowSchedule":   &kagziv1.GetWorkflowScheduleRequest{ScheduleId: at.schedule},
		"ListWorkflowSchedules": &kagziv1.ListWorkflowSchedulesRequest{Page: page},
		"UpdateWorkflowSchedule": &kagziv1.UpdateWorkflowScheduleRequest{
			ScheduleId: at.schedule, Input: payload, RetryPolicy: policy, RunRetryPolicy: policy,
			Timeouts: &kagziv1.TimeoutConfig{},
			Tags:     &kagziv1.ScheduleTags{Tags: map[string]string{"k": "v"}}, OnFailureWorkflow: proto.String("f"),
			CronExpr: proto.String("@yearly")},
		"DeleteWorkflowSchedule":  &kagziv1.DeleteWorkflowScheduleRequest{ScheduleId: nobody},
		"TriggerWorkflowSchedule": &kagziv1.TriggerWorkflowScheduleRequest{ScheduleId: nobody},
		"BackfillWorkflowSchedule": &kagziv1.BackfillWorkflowScheduleRequest{
			ScheduleId: nobody, From: timestamppb.New(time.Unix(1_700_000_000, 0))},
		"PauseWorkflowSchedule":  &kagziv1.PauseWorkflowScheduleRequest{ScheduleId: nobody},
		"ResumeWorkflowSchedule": &kagziv1.ResumeWorkflowScheduleRequest{ScheduleId: nobody},
		"ListScheduleRuns":       &kagziv1.ListScheduleRunsRequest{ScheduleId: at.schedule, Page: page},
		"PreviewSchedule":        &kagziv1.PreviewScheduleRequest{CronExpr: "@daily", TimeZone: "UTC"},

		"CreateNamespace":  &kagziv1.CreateNamespaceRequest{Namespace: "made", DisplayName: "d"},
		"GetNamespace":     &kagziv1.GetNamespaceRequest{Namespace: "spare"},
		"ListNamespaces":   &kagziv1.ListNamespacesRequest{Page: page},
		"UpdateNamespace":  &kagziv1.UpdateNamespaceRequest{Namespace: "spare", Keep: &kagziv1.Keep{}},
		"EnableNamespace":  &kagziv1.EnableNamespaceRequest{Namespace: "spare"},
		"DisableNamespace": &kagziv1.DisableNamespaceRequest{Namespace: "spare"},
		"DeleteNamespace":  &kagziv1.DeleteNamespaceRequest{Namespace: "never"},
		"ListAuditEvents":  &kagziv1.ListAuditEventsRequest{Page: page},

		// refused for the current state: it cannot be the first
		"CreateKey": &kagziv1.CreateKeyRequest{Key: &kagziv1.Key{
			Name: "k", Role: kagziv1.KeyRole_KEY_ROLE_WORKER, Namespaces: []string{"default"},
			TaskQueues: []string{"*"}, WorkflowTypes: []string{"*"}}},
		"ListKeys":  &kagziv1.ListKeysRequest{Page: page},
		"RevokeKey": &kagziv1.RevokeKeyRequest{KeyId: nobody},
		"WhoAmI":    &kagziv1.WhoAmIRequest{},
		// refused for the current state: no key is needed
		"CreateSession": &kagziv1.CreateSessionRequest{},
		"EndSession":    &kagziv1.EndSessionRequest{},
		"CreateHook": &kagziv1.CreateHookRequest{Name: "h", WorkflowType: "t", Secret: "0123456789abcdef",
			Signature: kagziv1.HookSignature_HOOK_SIGNATURE_PLAIN},
		"GetHook":   &kagziv1.GetHookRequest{Name: "nobody"},
		"ListHooks": &kagziv1.ListHooksRequest{Page: page},
		"RotateHook": &kagziv1.RotateHookRequest{Name: "nobody", Secret: "0123456789abcdef",
			Overlap: durationpb.New(time.Hour)},
		"DeleteHook": &kagziv1.DeleteHookRequest{Name: "nobody"},
	}
}

// tolerated lists bad input that is accepted, and why.
func tolerated(method, path string) bool {
	switch {
	case path == "error" || strings.HasPrefix(path, "error."):
		// The report of a failure must not fail: its texts are cleaned and cut. Its numbers are
		// checked.
		return path != "error.code" && path != "error.retry_after_ms"
	case method == "BulkWorkflows" && strings.HasPrefix(path, "filter.page."):
		return true // it is ignored
	case strings.HasSuffix(path, "traceparent"):
		return true // a hint: a bad value is dropped
	case method == "AwaitWorkflows" && path == "forget":
		return true // a missing wait is fine
	case method == "HealthCheck":
		return true // an unknown service is NOT_FOUND, as grpc.health has it
	}
	return strings.HasSuffix(path, "retry_policy.jitter") // negative means none
}

// spoiled is one way to make a request bad.
type spoiled struct {
	path    string // "retry_policy.maximum_attempts"
	names   []string
	how     string
	request proto.Message
	lenient bool // not bad for every field: any answer but INTERNAL will do
}

// spoil returns copies of a request with one bad field each.
func spoil(good proto.Message) []spoiled {
	var list []spoiled
	var walk func(at func(root protoreflect.Message) protoreflect.Message, d protoreflect.MessageDescriptor,
		names []string)
	add := func(names []string, how string, lenient bool, change func(protoreflect.Message)) {
		copied := proto.Clone(good)
		change(copied.ProtoReflect())
		list = append(list, spoiled{strings.Join(names, "."), slices.Clone(names), how, copied, lenient})
	}
	walk = func(at func(protoreflect.Message) protoreflect.Message, d protoreflect.MessageDescriptor, names []string) {
		for i := range d.Fields().Len() {
			field := d.Fields().Get(i)
			here := append(slices.Clip(names), string(field.Name()))
			set := func(how string, lenient bool, v protoreflect.Value) {
				add(here, how, lenient, func(root protoreflect.Message) {
					m := at(root)
					switch {
					case field.IsList():
						m.Mutable(field).List().Append(v)
					default:
						m.Set(field, v)
					}
				})
			}
			switch {
			case field.IsMap():
				if field.MapValue().Kind() != protoreflect.StringKind { // retention by outcome
					for how, entry := range map[string]struct {
						key   string
						value time.Duration
					}{"an unknown key": {"running", time.Hour}, "NUL in a key": {"failed\x00", time.Hour},
						"a negative length": {"failed", -time.Hour}, "too short a length": {"failed", time.Second}} {
						add(here, how, false, func(root protoreflect.Message) {
							at(root).Mutable(field).Map().Set(
								protoreflect.ValueOfString(entry.key).MapKey(),
								protoreflect.ValueOfMessage(durationpb.New(entry.value).ProtoReflect()))
						})
					}
					continue
				}
				for how, pair := range map[string][2]string{
					"NUL in a key": {"a\x00", "v"}, "NUL in a value": {"a", "\x00"},
					"a long value": {"a", strings.Repeat("v", 1<<20)}} {
					add(here, how, false, func(root protoreflect.Message) {
						at(root).Mutable(field).Map().Set(
							protoreflect.ValueOfString(pair[0]).MapKey(), protoreflect.ValueOfString(pair[1]))
					})
				}
			case field.Kind() == protoreflect.StringKind:
				set("NUL", false, protoreflect.ValueOfString("a\x00b"))
				set("a MiB of text", false, protoreflect.ValueOfString(strings.Repeat("a", 1<<20)))
				set("an escape sequence", true, protoreflect.ValueOfString("\x1b[31mred\u202e"))
			case field.Kind() == protoreflect.BytesKind:
				set("too many bytes", false, protoreflect.ValueOfBytes(make([]byte, engine.MaxPayload+1)))
			case field.Kind() == protoreflect.EnumKind:
				set("9999", false, protoreflect.ValueOfEnum(9999))
				set("-1", false, protoreflect.ValueOfEnum(-1))
			case field.Kind() == protoreflect.Int32Kind:
				set("least", false, protoreflect.ValueOfInt32(math.MinInt32))
				set("-1", field.Name() == "maximum_attempts" ||
					field.Name() == "priority", protoreflect.ValueOfInt32(-1))
				set("most", true, protoreflect.ValueOfInt32(math.MaxInt32))
			case field.Kind() == protoreflect.Int64Kind:
				set("least", false, protoreflect.ValueOfInt64(math.MinInt64))
				set("-1", false, protoreflect.ValueOfInt64(-1))
				set("most", true, protoreflect.ValueOfInt64(math.MaxInt64))
			case field.Kind() == protoreflect.DoubleKind:
				set("NaN", false, protoreflect.ValueOfFloat64(math.NaN()))
				set("endless", false, protoreflect.ValueOfFloat64(math.Inf(1)))
				set("negative", false, protoreflect.ValueOfFloat64(-1e300))
			case field.Message() == nil:
			case field.Message().FullName() == "google.protobuf.Timestamp":
				for how, v := range map[string]*timestamppb.Timestamp{
					"before 1970": {Seconds: -1}, "no time": {Seconds: math.MaxInt64},
					"nanoseconds": {Seconds: 1, Nanos: -1}} {
					set(how, false, protoreflect.ValueOfMessage(v.ProtoReflect()))
				}
				set("the year 9999", true, protoreflect.ValueOfMessage(
					(&timestamppb.Timestamp{Seconds: 253402300799}).ProtoReflect()))
			case field.Message().FullName() == "google.protobuf.Duration":
				for how, v := range map[string]*durationpb.Duration{
					"negative": {Seconds: -1}, "no duration": {Seconds: math.MaxInt64},
					"mixed signs": {Seconds: 1, Nanos: -1}, "too long": {Seconds: 315576000000}} {
					set(how, false, protoreflect.ValueOfMessage(v.ProtoReflect()))
				}
			case field.IsList():
				walk(func(root protoreflect.Message) protoreflect.Message {
					list := at(root).Mutable(field).List()
					if list.Len() == 0 {
						return list.AppendMutable().Message()
					}
					return list.Get(0).Message()
				}, field.Message(), here)
			default:
				walk(func(root protoreflect.Message) protoreflect.Message {
					return at(root).Mutable(field).Message()
				}, field.Message(), here)
			}
		}
	}
	walk(func(root protoreflect.Message) protoreflect.Message { return root }, good.ProtoReflect().Descriptor(), nil)
	return list
}

// namesField reports whether an answer names the field of a path, in whole or in part.
func namesField(got string, names []string) bool {
	for i := range names {
		for j := i + 1; j <= len(names); j++ {
			if got == strings.Join(names[i:j], ".") {
				return true
			}
		}
	}
	return false
}

func TestBadInputIsRefusedByNameAndLeavesNothing(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		w := s.register(t)
		at := inputStage{run: s.start(t), worker: w.id}
		task := w.take(t)
		at.token, at.step = task.LeaseToken, w.completeStep(t, task, "first", "x").StepId
		at.schedule = s.schedule(t, func(r *kagziv1.CreateWorkflowScheduleRequest) {
			r.CronExpr, r.TaskQueue = "@yearly", "idle"
		}).ScheduleId
		fine(s.namespaces().CreateNamespace(within(t, 20*time.Second),
			&kagziv1.CreateNamespaceRequest{Namespace: "spare"}))(t)
		good := goodRequests(at)
		tried, accepted, doors := 0, map[string]int{}, []*Server{s, s.overHTTP(t)}
		eachMethod(func(name string, method protoreflect.MethodDescriptor, path string) {
			request, ok := good[name]
			if !ok {
				if err := s.call(t.Context(), method, path, emptyOf(method.Input())); status.Code(
					err) != codes.Unimplemented && name != "Session" {
					t.Errorf("%s has no good request here, and answers %v", name, err)
				}
				return
			}
			for _, bad := range long.Share(t, spoil(request), 4) {
				tried++
				for _, door := range doors {
					err := door.call(within(t, 30*time.Second), method, path, bad.request)
					if errors.Is(err, resttest.ErrUnsaid) {
						continue // times out of range and the like have no form in JSON
					}
					code, detail := status.Code(err), detailOf(err)
					if err == nil {
						accepted[name]++
					}
					switch {
					case code == codes.Internal || code == codes.Unknown || code == codes.DeadlineExceeded ||
						code == codes.Unavailable:
						t.Errorf("%s with %s in %s: %v", name, bad.how, bad.path, err)
					case bad.lenient || tolerated(name, bad.path):
					case code != codes.InvalidArgument && code != codes.ResourceExhausted:
						t.Errorf("%s with %s in %s: %s %v, want INVALID_ARGUMENT", name, bad.how, bad.path, code, err)
					case !namesField(detail.Metadata["field"], bad.names):
						t.Errorf("%s with %s in %s: the answer names %q: %s", name, bad.how, bad.path,
							detail.Metadata["field"], detail.Message)
					}
				}
			}
		})
		if tried < long.Count(300, 1300) {
			t.Errorf("%d bad requests were tried: the contract was not found", tried)
		}
		t.Logf("%d bad requests", tried)
		ctx := within(t, 20*time.Second)
		runs, err := s.workflows().ListWorkflows(
			ctx, &kagziv1.ListWorkflowsRequest{Page: &kagziv1.PageRequest{PageSize: 1000}})
		// Plus the run that existed before; the child is always the same one.
		if want := 1 + accepted["StartWorkflow"] + accepted["StartWorkflows"] + min(1, accepted["StartChild"]) +
			min(1, accepted["CompleteWorkflow"]); err != nil || len(runs.Workflows) != want {
			t.Errorf("there are %d runs (%v), want %d: refused starts left something", len(runs.Workflows), err, want)
		}
		workers, err := s.admin().ListWorkers(ctx,
			&kagziv1.ListWorkersRequest{Page: &kagziv1.PageRequest{PageSize: 1000}})
		if want := 1 + accepted["Register"]; err != nil || len(workers.Workers) != want {
			t.Errorf("there are %d workers (%v), want %d: refused registrations left something",
				len(workers.Workers), err, want)
		}
		if n := len(fine(s.schedules().ListWorkflowSchedules(
			ctx, &kagziv1.ListWorkflowSchedulesRequest{Page: &kagziv1.PageRequest{PageSize: 1000}}))(
			t).Schedules); n != 1+accepted["CreateWorkflowSchedule"] {
			t.Errorf("there are %d schedules, want %d: refused creations left something", n,
				1+accepted["CreateWorkflowSchedule"])
		}
		if n := len(fine(s.namespaces().ListNamespaces(ctx, &kagziv1.ListNamespacesRequest{}))(t).Namespaces); n != 2+
			min(1, accepted["CreateNamespace"]) {
			t.Errorf("there are %d namespaces: refused creations left something", n)
		}
		t.Logf("accepted: %v", accepted)
	})
}

func eachMethod(f func(name string, method protoreflect.MethodDescriptor, path string)) {
	protoregistry.GlobalFiles.RangeFilesByPackage("kagzi.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				f(string(method.Name()), method, "/"+string(service.FullName())+"/"+string(method.Name()))
			}
		}
		return true
	})
}

func emptyOf(d protoreflect.MessageDescriptor) proto.Message {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		panic(err)
	}
	return kind.New().Interface()
}

// call calls any method and returns the error of its first answer, or of the first item of a bulk
// answer.
func (s *Server) call(ctx context.Context, method protoreflect.MethodDescriptor, path string,
	request proto.Message) error {
	answer := emptyOf(method.Output())
	if !method.IsStreamingServer() && !method.IsStreamingClient() {
		if err := s.Conn.Invoke(ctx, path, request, answer); err != nil {
			return err
		}
		if batch, ok := answer.(*kagziv1.StartWorkflowsResponse); ok && batch.Results[0].Error != nil {
			with, err := status.New(codes.InvalidArgument, "").WithDetails(batch.Results[0].Error)
			if err != nil {
				return err
			}
			return with.Err()
		}
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.Conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, path)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(request); err == nil {
		_ = stream.CloseSend()
	}
	if err := stream.RecvMsg(answer); err != nil {
		return err
	}
	if ends, ok := answer.(*kagziv1.AwaitWorkflowsResponse); ok && ends.Ended[0].Refusal != nil {
		with, err := status.New(codes.Code(ends.Ended[0].StatusCode), ends.Ended[0].Refusal.Message).WithDetails(
			ends.Ended[0].Refusal)
		if err != nil {
			return err
		}
		return with.Err()
	}
	return nil
}
