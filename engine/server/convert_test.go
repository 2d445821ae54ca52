package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// fill sets everything within v to something that is not zero; n makes values differ.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMicro(1_700_000_000_000_000 + int64(*n)).UTC()))
		return
	case time.Duration:
		v.SetInt(int64(*n) * int64(time.Millisecond))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("v%d", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n%100 + 1))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	default:
		panic("fill does not know " + v.Type().String())
	}
}

// wantEachFieldSent fills one field of T after another and wants the message to tell it, but for those of which hidden says why not.
func wantEachFieldSent[T any](t *testing.T, hidden map[string]string, convert func(*T) proto.Message) {
	t.Helper()
	var zero T
	empty := convert(&zero)
	kind := reflect.TypeFor[T]()
	for i := range kind.NumField() {
		var one T
		n := i
		fill(reflect.ValueOf(&one).Elem().Field(i), &n)
		name := kind.Field(i).Name
		_, isHidden := hidden[name]
		if told := !proto.Equal(convert(&one), empty); told == isHidden {
			t.Errorf("%s.%s: sent %v, want %v", kind, name, told, !isHidden)
		}
	}
	for name := range hidden {
		if _, ok := kind.FieldByName(name); !ok {
			t.Errorf("%s has no field %s any more", kind, name)
		}
	}
}

func TestEachFieldOfARunIsSent(t *testing.T) {
	wantEachFieldSent(t, map[string]string{
		"RequestID":    "the caller knows it",
		"Failures":     "part of Attempts",
		"Bytes":        "counts for the limit only",
		"Traceparent":  "goes to the worker, with the task",
		"Gated":        "ExplainWorkflow says it",
		"HeldAt":       "it wakes up at no moment while it is held",
		"CancelReason": "goes to the worker, and is the error in the end",
		"Origin":       "the other fields say it",
	}, func(r *engine.Run) proto.Message { return runTo(r) })
}

func TestEachFieldOfAStepIsSent(t *testing.T) {
	wantEachFieldSent(t, map[string]string{
		"Failures":    "part of AttemptNumber",
		"Token":       "a secret of the worker's",
		"Duration":    "WakeAt says it",
		"RetryPolicy": "the contract has no field for it in Step",
		"Awaited":     "WaitingFor of the run says it",
	}, func(s *engine.Step) proto.Message { return stepTo("", s) })
}

func TestEachFieldOfASignalIsSent(t *testing.T) {
	wantEachFieldSent(t, map[string]string{"RunID": "the caller named it"}, func(s *engine.Signal) proto.Message { return signalTo(s) })
}

func TestEachFieldOfAScheduleIsSent(t *testing.T) {
	wantEachFieldSent(t, map[string]string{
		"RequestID": "the caller knows it",
		"Revision":  "a matter between this door and the store",
	}, func(s *engine.Schedule) proto.Message { return scheduleTo(s) })
}

func TestEachFieldOfANamespaceIsSent(t *testing.T) {
	wantEachFieldSent(t, map[string]string{"Keep": "TestKeepRoundTrips"}, func(n *engine.Namespace) proto.Message { return namespaceTo(n) })
}

func TestEachFieldOfAnAuditEventIsSent(t *testing.T) {
	wantEachFieldSent(t, map[string]string{"ID": "the contract has no field for it in AuditEvent"},
		func(e *engine.AuditEvent) proto.Message { return auditTo(e) })
}

func TestEachFieldOfAWorkerIsSent(t *testing.T) {
	wantEachFieldSent(t, map[string]string{
		"InstanceID": "the worker's own; it takes ids over",
	}, func(w *engine.Worker) proto.Message { return workerTo(w) })
	wantEachFieldSent(t, nil, func(s *engine.WorkerStats) proto.Message {
		return cmp.Or(workerTo(&engine.Worker{Stats: *s}).Stats, &kagziv1.WorkerStats{})
	})
}

func TestEachFieldOfAKeyIsSentButForTheHash(t *testing.T) {
	wantEachFieldSent(t, map[string]string{"Hash": "of no use to anybody but the server"}, func(k *engine.APIKey) proto.Message { return keyTo(k) })
}

func TestEachFieldOfATypeIsSent(t *testing.T) {
	wantEachFieldSent(t, nil, func(i *engine.TypeInfo) proto.Message { return typeTo(i) })
}

func TestATaskCarriesWhatAWorkerNeeds(t *testing.T) {
	s := &Server{options: Options{}.withDefaults()}
	var run engine.Run
	n := 0
	fill(reflect.ValueOf(&run).Elem(), &n)
	now := time.Now()
	lease := engine.Lease{Token: engine.NewToken()}
	task := s.taskTo(&engine.Task{Run: run, Lease: lease, ClaimedAt: now, NextSequence: 7, History: []engine.Step{{Name: "s"}}})
	if task.LeaseToken != lease.Token.Wire() || task.NextHistoryToken != "7" || len(task.History) != 1 || task.RunId != run.ID.String() ||
		task.Traceparent != run.Traceparent || task.Attempt != int32(run.Attempts) || !task.DeadlineAt.AsTime().Equal(run.DeadlineAt) ||
		string(task.Input.Data) != string(run.Input.Data) || task.GetParentRunId() != run.ParentRunID.String() ||
		task.GetScheduleId() != run.ScheduleID || !task.ScheduledAt.AsTime().Equal(run.ScheduledAt) || task.GetFailedRunId() != run.FailedRunID.String() ||
		!task.CancelRequested || !task.CancelGraceUntil.AsTime().Equal(run.GraceUntil) || task.CancelReason.Message != run.CancelReason {
		t.Errorf("task = %v", task)
	}
	for fields, i := task.ProtoReflect().Descriptor().Fields(), 0; i < fields.Len(); i++ {
		if !task.ProtoReflect().Has(fields.Get(i)) {
			t.Errorf("the task does not say its %s", fields.Get(i).Name())
		}
	}
	if limit := runTo(&run).GetTimeoutMs(); limit != run.Timeouts.Execution.Milliseconds() {
		t.Errorf("a run with a limit of %s says %d ms", run.Timeouts.Execution, limit)
	}
	if runTo(&engine.Run{}).TimeoutMs != nil {
		t.Error("a run without a limit names one")
	}
	run.CancelRequestedAt = time.Time{}
	if task := s.taskTo(&engine.Task{Run: run}); task.CancelRequested || task.CancelReason != nil {
		t.Errorf("nobody has asked for an end, but the task says %v", task)
	}
	run.Timeouts.Heartbeat = time.Hour
	longer := s.taskTo(&engine.Task{Run: run, ClaimedAt: now})
	if got := longer.LeaseExpiresAt.AsTime().Sub(now); got != time.Hour {
		t.Errorf("a run with a heartbeat timeout of an hour is leased for %s", got)
	}
}

func TestEachFieldOfAReportedFailureIsKeptAndToldToItsHandler(t *testing.T) {
	reported := &kagziv1.ErrorDetail{}
	fillAll(reported.ProtoReflect())
	reported.Code = kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND
	failure, err := failureOf(reported)
	if kept := failureTo(&failure); err != nil || !proto.Equal(kept, reported) {
		t.Errorf("kept = %v, %v, want %v", kept, err, reported)
	}
	run := engine.Run{ID: engine.NewID(time.Now()), Status: engine.RunFailed, Error: &failure, FinishedAt: time.Now()}
	handler := engine.HandlerOf(&run, "mourn", "q", false, time.Now())
	var event kagziv1.WorkflowFailedEvent
	if err := protojson.Unmarshal(handler.Input.Data, &event); err != nil || !proto.Equal(event.Error, reported) {
		t.Errorf("the handler is told %v, %v, want %v", event.Error, err, reported)
	}
}

func TestFailuresPoliciesTimeoutsAndPayloadsRoundTrip(t *testing.T) {
	n := 0
	var f engine.Failure
	fill(reflect.ValueOf(&f).Elem(), &n)
	f.Code = engine.FailureTimeout
	if got, err := failureOf(failureTo(&f)); err != nil || !reflect.DeepEqual(got, f) {
		t.Errorf("failure: %+v, %v, want %+v", got, err, f)
	}
	var p engine.RetryPolicy
	fill(reflect.ValueOf(&p).Elem(), &n)
	if got := retryPolicyOf(retryPolicyTo(&p)); !reflect.DeepEqual(*got, p) {
		t.Errorf("policy: %+v, want %+v", got, p)
	}
	var to engine.Timeouts
	fill(reflect.ValueOf(&to).Elem(), &n)
	if got := timeoutsOf(timeoutsTo(to)); got != to {
		t.Errorf("timeouts: %+v, want %+v", got, to)
	}
	var pl engine.Payload
	fill(reflect.ValueOf(&pl).Elem(), &n)
	if got := payloadOf(payloadTo(pl)); !reflect.DeepEqual(got, pl) {
		t.Errorf("payload: %+v, want %+v", got, pl)
	}
	if retryPolicyOf(nil) != nil || retryPolicyTo(nil) != nil || failureTo(nil) != nil || payloadTo(engine.Payload{}) != nil {
		t.Error("what is absent does not stay absent")
	}
	if got := milliseconds(math.MaxInt64); got < engine.MaxDelay {
		t.Errorf("milliseconds(max) = %s: it has overflowed", got)
	}
	if got := milliseconds(math.MinInt64); got > 0 {
		t.Errorf("milliseconds(min) = %s: it has overflowed", got)
	}
}

// sample is a valid value for each field of a request that has to be more than any text.
var sample = map[protoreflect.Name]string{
	"parent_run_id": anID, "parent_step_id": anID, "run_id": anID, "namespace": "other", "worker_id": "w-1",
}

// fillMessage sets one field of a message, or of all in it, to something valid that is not the default.
func fillMessage(m protoreflect.Message, field protoreflect.FieldDescriptor) {
	scalar := func(f protoreflect.FieldDescriptor) protoreflect.Value {
		switch f.Kind() {
		case protoreflect.StringKind:
			if s, ok := sample[f.Name()]; ok {
				return protoreflect.ValueOfString(s)
			}
			return protoreflect.ValueOfString("text")
		case protoreflect.BytesKind:
			return protoreflect.ValueOfBytes([]byte("bytes"))
		case protoreflect.BoolKind:
			return protoreflect.ValueOfBool(true)
		case protoreflect.Int32Kind:
			return protoreflect.ValueOfInt32(7)
		case protoreflect.Int64Kind:
			return protoreflect.ValueOfInt64(7)
		case protoreflect.DoubleKind:
			return protoreflect.ValueOfFloat64(1)
		case protoreflect.EnumKind:
			return protoreflect.ValueOfEnum(1)
		}
		panic("fillMessage does not know " + f.FullName())
	}
	switch {
	case field.IsMap():
		m.Mutable(field).Map().Set(scalar(field.MapKey()).MapKey(), scalar(field.MapValue()))
	case field.IsList():
		list := m.Mutable(field).List()
		if field.Message() == nil {
			list.Append(scalar(field))
			return
		}
		element := list.AppendMutable().Message()
		fillAll(element)
	case field.Message() != nil:
		switch field.Message().FullName() {
		case "google.protobuf.Timestamp":
			m.Set(field, protoreflect.ValueOfMessage(timestamppb.New(time.Now().Add(time.Hour)).ProtoReflect()))
		case "google.protobuf.Duration":
			m.Set(field, protoreflect.ValueOfMessage(durationpb.New(time.Minute).ProtoReflect()))
		default:
			fillAll(m.Mutable(field).Message())
		}
	default:
		m.Set(field, scalar(field))
	}
}

func fillAll(m protoreflect.Message) {
	for i := range m.Descriptor().Fields().Len() {
		fillMessage(m, m.Descriptor().Fields().Get(i))
	}
}

// wantEachFieldRead sets one field of a request after another and wants the outcome to differ from the plain one's.
func wantEachFieldRead[M proto.Message](t *testing.T, plain M, needs map[protoreflect.Name]func(M), read func(M) (any, error)) {
	t.Helper()
	was, err := read(plain)
	if err != nil {
		t.Fatal(err)
	}
	fields := plain.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		one := proto.Clone(plain).(M)
		if prepare := needs[field.Name()]; prepare != nil {
			prepare(one)
			was, err := read(one)
			if err != nil {
				t.Errorf("%s: %v", field.Name(), err)
			}
			fillMessage(one.ProtoReflect(), field)
			if is, err := read(one); err != nil || reflect.DeepEqual(is, was) {
				t.Errorf("%s is not read (%v)", field.Name(), err)
			}
			continue
		}
		fillMessage(one.ProtoReflect(), field)
		if is, err := read(one); err != nil || reflect.DeepEqual(is, was) {
			t.Errorf("%s is not read (%v)", field.Name(), err)
		}
	}
}

func TestEachFieldOfAStartIsRead(t *testing.T) {
	s := &Server{store: stubStore{}, log: slog.New(slog.DiscardHandler)}
	read := func(r *kagziv1.StartWorkflowRequest) (any, error) {
		start, err := s.startOf(context.Background(), r)
		now := start.CreatedAt // of this very call: told apart from what the request says
		start.ID, start.CreatedAt = engine.ID{}, time.Time{}
		if start.AvailableAt.Equal(now) {
			start.AvailableAt = time.Time{}
		}
		if !start.DeadlineAt.IsZero() && start.DeadlineAt.Before(now.Add(time.Minute)) {
			start.DeadlineAt = time.Time{}
		}
		return start, err
	}
	wantEachFieldRead(t, &kagziv1.StartWorkflowRequest{WorkflowType: "plain"}, map[protoreflect.Name]func(*kagziv1.StartWorkflowRequest){
		"on_failure_task_queue": func(r *kagziv1.StartWorkflowRequest) { r.OnFailureWorkflow = "w" },
		"concurrency_limit":     func(r *kagziv1.StartWorkflowRequest) { r.ConcurrencyKey = "k" },
	}, read)
	ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
	start, err := s.startOf(ctx, &kagziv1.StartWorkflowRequest{WorkflowType: "t"})
	if err != nil || start.Traceparent == "" {
		t.Errorf("trace context %q, %v", start.Traceparent, err)
	}
	for _, bad := range []string{"a b", "\x00", string(make([]byte, 65))} {
		ctx := metadata.NewIncomingContext(context.Background(), metadata.MD{"traceparent": {bad}})
		if start, err := s.startOf(ctx, &kagziv1.StartWorkflowRequest{WorkflowType: "t"}); err != nil || start.Traceparent != "" {
			t.Errorf("a trace context of %q is kept as %q, %v", bad, start.Traceparent, err)
		}
	}
}

func TestEachFieldOfARegistrationIsRead(t *testing.T) {
	read := func(r *kagziv1.RegisterRequest) (any, error) {
		w, err := workerOf(r)
		return w, err
	}
	wantEachFieldRead(t, &kagziv1.RegisterRequest{WorkflowTypes: []string{"plain"}}, nil, read)
	w, err := workerOf(&kagziv1.RegisterRequest{TaskQueue: "a", TaskQueues: []string{"b", "a", "c"}, WorkflowTypes: []string{"t", "t"}})
	if err != nil || !slices.Equal(w.Queues, []string{"a", "b", "c"}) || !slices.Equal(w.Types, []string{"t"}) {
		t.Errorf("queues %v, types %v, %v, want each once and in their order", w.Queues, w.Types, err)
	}
	if w.MaxConcurrent != engine.DefaultConcurrent || w.Namespace != "default" {
		t.Errorf("defaults: %d at once in %q", w.MaxConcurrent, w.Namespace)
	}
}

func TestEachFilterOfAListIsRead(t *testing.T) {
	read := func(r *kagziv1.ListWorkflowsRequest) (any, error) {
		f, err := runFilterOf(r)
		return []any{f, r.Page}, err // the page is read by itself
	}
	wantEachFieldRead(t, &kagziv1.ListWorkflowsRequest{}, nil, read)
}

func TestRunsOfAScheduleAreFoundByItsName(t *testing.T) {
	id := engine.NewID(time.Now())
	s := door(&books{schedules: map[string]engine.Schedule{"nightly": {ID: id, Name: "nightly"}}})
	for given, want := range map[string]string{"nightly": id.String(), id.String(): id.String(), strings.ToUpper(id.String()): id.String()} {
		f, err := s.runFilter(t.Context(), &kagziv1.ListWorkflowsRequest{ScheduleId: &given})
		if err != nil || f.ScheduleID != want {
			t.Errorf("%s: selects those of %q, %v, want of %s", given, f.ScheduleID, err, want)
		}
	}
	// A name that nobody has is a mistake, for which a bulk change is not to say that there was nothing to do.
	odd := &kagziv1.ListWorkflowsRequest{ScheduleId: new("nightyl")}
	_, listed := s.ListWorkflows(t.Context(), odd)
	_, ended := s.bulkOf(t.Context(), &kagziv1.BulkWorkflowsRequest{Filter: odd, Action: kagziv1.BulkAction_BULK_ACTION_CANCEL})
	for what, err := range map[string]error{"a list": listed, "a bulk change": ended} {
		if want := engine.ScheduleNotFound("nightyl").Error(); err == nil || err.Error() != want {
			t.Errorf("%s of a name that no schedule has: %v, want %s", what, err, want)
		}
	}
}

// An id that was lost on the way to a filter is not to have a bulk change end every run of the namespace.
func TestAFilterThatNamesNothingIsRefused(t *testing.T) {
	for field, r := range map[string]*kagziv1.ListWorkflowsRequest{
		"schedule_id": {ScheduleId: new("")}, "parent_run_id": {ParentRunId: new("")}, "worker_id": {WorkerId: new("")},
		"workflow_type": {WorkflowType: new("")}, "task_queue": {TaskQueue: new("")},
	} {
		if _, err := runFilterOf(r); fieldOf(err) != field {
			t.Errorf("an empty %s: %v, want it refused", field, err)
		}
	}
	if _, err := runFilterOf(&kagziv1.ListWorkflowsRequest{Search: new("")}); err != nil {
		t.Errorf("the empty beginning, which each id has, is refused: %v", err)
	}
}

func TestAMomentBeyondTheCalendarIsRefusedWithItsLimits(t *testing.T) {
	for _, seconds := range []int64{-1, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()} {
		if _, err := timeOf("until", &timestamppb.Timestamp{Seconds: seconds}); err == nil || err.Error() != "until: must be a time from 1970 to the year 9999" {
			t.Errorf("%d: %v", seconds, err)
		}
	}
}
