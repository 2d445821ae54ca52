package kagzi

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func testClient(t *testing.T, f *fake) *Client {
	t.Helper()
	c, err := NewClient(ClientOptions{Address: "passthrough:///fake", DialOptions: f.dial(),
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestClient(t *testing.T) {
	t.Run("a result is waited for, however long it takes", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "hello", func(ctx Context, name string) (string, error) {
				Sleep(ctx, "s", 24*time.Hour)
				return "hello " + name, nil
			})
			running(t, w)
			c := testClient(t, f)
			run, err := Start(t.Context(), c, "hello", "Ada", StartOptions{ExternalID: "x"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := Result[string](t.Context(), run)
			if err != nil || got != "hello Ada" {
				t.Fatalf("Result = %q, %v", got, err)
			}
			again, err := Start(t.Context(), c, "hello", "Ada", StartOptions{ExternalID: "x"})
			if err != nil || again.ID() != run.ID() || !again.AlreadyExisted() {
				t.Fatalf("again = %+v, %v", again, err)
			}
		})
	})

	t.Run("a failed run is a RunError with status, type and message", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(Context, struct{}) (int, error) { return 0, WithType(errors.New("no"), "refused") })
			running(t, w)
			run, err := Start(t.Context(), testClient(t, f), "w", struct{}{}, StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = Result[int](t.Context(), run)
			equal(t, err, error(&RunError{RunID: "run-1", Status: StatusFailed, Type: "refused", Message: "no"}))
			equal(t, err.Error(), "run run-1 failed: no")
		})
	})

	t.Run("Wait survives an absent server and ends with its context", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			c := testClient(t, f)
			run, err := Start(t.Context(), c, "nobody", struct{}{}, StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			f.server.Stop()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			_, err = Result[int](ctx, run)
			equal(t, errors.Is(err, context.DeadlineExceeded), true)
		})
	})

	t.Run("a missing run is an Error that says so, to gRPC's eyes too", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			_, err := testClient(t, f).Get(t.Context(), "missing")
			var e *Error
			if !errors.As(err, &e) || e.Code != CodeNotFound || e.Subject != "run" || e.SubjectID != "missing" ||
				status.Code(err) != codes.NotFound {
				t.Fatalf("err = %#v", err)
			}
		})
	})

	t.Run("invalid options are named, and nothing is started", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			c := testClient(t, f)
			for want, o := range map[string]StartOptions{
				"kagzi: start of workflow type w: option Delay is -1s, want 0 or more":                                    {Delay: -time.Second},
				"kagzi: start of workflow type w: options Delay and StartAt are both set, want one of them":               {Delay: time.Second, StartAt: time.Now()},
				"kagzi: start of workflow type w: option Retry.Attempts is 4294967296, want 1 to 10000, or -1 for no end": {Retry: &Retry{Attempts: 1 << 32}},
			} {
				if _, err := Start(t.Context(), c, "w", 1, o); err == nil || err.Error() != want {
					t.Errorf("Start: %v, want %s", err, want)
				}
				if _, err := StartMany(t.Context(), c, "w", []int{1, 2}, o); err == nil ||
					err.Error() != "start 0: "+want {
					t.Errorf("StartMany: %v, want %s", err, want)
				}
			}
			equal(t, len(f.order), 0)
		})
	})

	t.Run("a list of runs with a status that is none names it", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			var errs []error
			for _, err := range testClient(t, f).List(
				t.Context(), ListOptions{Statuses: []Status{StatusFailed, "BAD"}}) {
				errs = append(errs, err)
			}
			equal(t, fmt.Sprint(errs), `[kagzi: option Statuses has "BAD", want StatusPending and its like]`)
		})
	})

	t.Run(
		"List sends every option and reads page by page", func(t *testing.T) {
			d := newFakeServer(t)
			d.answers["ListWorkflows"] = func(m proto.Message) (proto.Message, error) {
				if m.(*kagziv1.ListWorkflowsRequest).GetPage().GetPageToken() == "" {
					return &kagziv1.ListWorkflowsResponse{
						Workflows: []*kagziv1.Workflow{{RunId: "2"}}, Page: &kagziv1.PageInfo{NextPageToken: "t"}}, nil
				}
				return &kagziv1.ListWorkflowsResponse{Workflows: []*kagziv1.Workflow{{RunId: "1"}}}, nil
			}
			d.on("GetWorkflowByExternalId", &kagziv1.GetWorkflowByExternalIdResponse{
				Workflow: &kagziv1.Workflow{RunId: "2"}})
			d.on("GetServerInfo", &kagziv1.GetServerInfoResponse{SupportedFeatures: []string{"keys", featureQuery}})
			c, noon := d.client(t), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
			var ids []string
			for run, err := range c.List(t.Context(),
				ListOptions{Statuses: []Status{StatusFailed, StatusTimedOut}, WorkflowTypes: []string{"w"},
					Queues: []string{"q"},
					Tags:   map[string]string{"a": "b"}, CreatedAfter: noon, CreatedBefore: noon.Add(time.Hour),
					ParentRunID: "p",
					ScheduleID:  "s", WorkerID: "w-1",
					Search: "order-", Query: "attempts > 1", PageSize: 7}) {
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, run.RunID)
			}
			equal(t, ids, []string{"2", "1"})
			d.wants(t, &kagziv1.ListWorkflowsRequest{
				Namespace: "shop", WorkflowTypes: []string{"w"}, TaskQueues: []string{"q"},
				Tags: map[string]string{"a": "b"},
				Statuses: []kagziv1.WorkflowStatus{
					kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED, kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT},
				CreatedAfter: timestamppb.New(noon), CreatedBefore: timestamppb.New(noon.Add(time.Hour)),
				ParentRunId: new("p"), ScheduleId: new("s"),
				WorkerId: new("w-1"), Search: new("order-"), Query: "attempts > 1", Page: &kagziv1.PageRequest{PageSize: 7, PageToken: "t"}})
			run, err := c.GetByExternalID(t.Context(), "order-17")
			if err != nil || run.RunID != "2" {
				t.Fatalf("%v, %v", run, err)
			}
			d.wants(t, &kagziv1.GetWorkflowByExternalIdRequest{Namespace: "shop", ExternalId: "order-17"})
		})

	t.Run("a query is not sent to a server that would ignore it", func(t *testing.T) {
		d := newFakeServer(t)
		d.on("GetServerInfo", &kagziv1.GetServerInfoResponse{Version: "0.8", SupportedFeatures: []string{"keys"}})
		for _, err := range d.client(t).List(t.Context(), ListOptions{Query: "status = FAILED or status = TIMED_OUT"}) {
			refusal, is := errors.AsType[*Error](err)
			if !is || refusal.Code != CodePreconditionFailed || !strings.Contains(refusal.Message, "version 0.8") {
				t.Errorf("List: %v, want a refusal that names the version", err)
			}
		}
		d.wants(t, &kagziv1.GetServerInfoRequest{})
	})

	t.Run("numbers and durations that do not fit are not altered", func(t *testing.T) {
		for _, o := range []StartOptions{
			{Priority: 1 << 32}, {Priority: -1 << 32}, {ConcurrencyLimit: 1<<32 + 1}, {StepTimeout: -1},
		} {
			r, err := newStart("default", "w", nil, o, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if max(r.GetPriority(), r.GetConcurrencyLimit()) < 1<<31-1 &&
				min(int64(r.GetPriority()), r.GetTimeouts().GetStartToCloseTimeoutMs()) >= 0 {
				t.Errorf("%+v becomes %v", o, r)
			}
		}
	})

	t.Run("every option of a start reaches the server, and of a child's", func(t *testing.T) {
		at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		options := StartOptions{ExternalID: "x", ExternalIDReuse: ReuseReject, Queue: "q", Version: "v",
			RequestID: "once", StepRetry: &Retry{Attempts: 2}, RunRetry: &Retry{Attempts: 5}, Retry: &Retry{},
			StepTimeout: time.Second, HeartbeatTimeout: time.Minute, ExecutionTimeout: time.Hour,
			Deadline: at.Add(time.Hour), StartAt: at, Priority: -5,
			Tags: map[string]string{"a": "b"}, Requirements: map[string]string{"gpu": "a100"}, ConcurrencyKey: "k",
			ConcurrencyLimit: 3, ConcurrencyScope: ScopeOpen,
			OnFailure: "mourn", OnFailureQueue: "fq"}
		want := &kagziv1.StartWorkflowRequest{Namespace: "shop", WorkflowType: "w", Input: jsonPayload("1"),
			ExternalId:      "x",
			ExternalIdReuse: kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_REJECT, TaskQueue: "q", Version: "v",
			RequestId:   "once",
			RetryPolicy: &kagziv1.RetryPolicy{MaximumAttempts: 2}, DeadlineAt: timestamppb.New(at.Add(time.Hour)),
			RunRetryPolicy: &kagziv1.RetryPolicy{MaximumAttempts: 5},
			StartAt:        timestamppb.New(at),
			Timeouts: &kagziv1.TimeoutConfig{StartToCloseTimeoutMs: 1000, HeartbeatTimeoutMs: 60_000,
				ExecutionTimeoutMs: 3_600_000},
			Priority: new(int32(-5)), Tags: map[string]string{"a": "b"}, Requirements: map[string]string{"gpu": "a100"},
			ConcurrencyKey: "k", ConcurrencyLimit: 3, OnFailureWorkflow: "mourn", OnFailureTaskQueue: "fq",
			ConcurrencyScope: kagziv1.ConcurrencyScope_CONCURRENCY_SCOPE_OPEN}
		got, err := newStart("shop", "w", jsonPayload("1"), options, at)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		child := ChildOptions{ExternalID: "x", Queue: "q", Version: "v", Retry: options.Retry,
			StepRetry: options.StepRetry, RunRetry: options.RunRetry, StepTimeout: time.Second,
			HeartbeatTimeout: time.Minute,
			ExecutionTimeout: time.Hour, Deadline: at.Add(time.Hour), StartAt: at, Priority: -5, Tags: options.Tags,
			Requirements:   options.Requirements,
			ConcurrencyKey: "k", ConcurrencyLimit: 3, ConcurrencyScope: ScopeOpen, OnFailure: "mourn",
			OnFailureQueue: "fq"}
		options.RequestID = "" // the start of a child is repeated safely by its step
		equal(t, child.start("parent's"), options)
		later := ChildOptions{Delay: time.Hour}
		equal(t, later.start("parent's"), StartOptions{
			Queue: "parent's", ExternalIDReuse: ReuseReject, Delay: time.Hour})
	})

	t.Run("StartMany starts in order, and one bad start fails alone", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			runs, err := StartMany(t.Context(), testClient(t, f), "w", []int{1, 2, 3}, StartOptions{},
				func(i int, o *StartOptions) {
					if o.ExternalID = fmt.Sprint("x-", i); i == 1 {
						o.ExternalID = "bad id"
					}
				})
			var e *StartError
			if !errors.As(err, &e) || e.Index != 1 {
				t.Fatalf("err = %v", err)
			}
			equal(t, []bool{runs[0] != nil, runs[1] != nil, runs[2] != nil}, []bool{true, false, true})
			closed := testClient(t, f)
			_ = closed.Close() // so that a call would fail
			if none, err := StartMany(t.Context(), closed, "w", []int{}, StartOptions{}); len(none) != 0 || err != nil {
				t.Errorf("StartMany of nothing: %v, %v", none, err)
			}
			if _, err := StartMany(t.Context(), testClient(t, f), "w", make([]int, MaxBatch+1),
				StartOptions{}); err == nil {
				t.Fatal("more than MaxBatch were taken")
			}
		})
	})

	t.Run("a codec sees every payload with its PayloadInfo", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			codec := &base64Codec{seen: map[PayloadInfo]int{}}
			w := testWorker(f)
			w.options.Codec = codec
			Handle(w, "w", func(ctx Context, in string) (string, error) {
				out, err := Step(ctx, "shout", constant(in+"!"))
				Sleep(ctx, "s", time.Hour)
				return out, err
			})
			running(t, w)
			c := testClient(t, f)
			c.options.Codec = codec
			run, err := Start(t.Context(), c, "w", "secret", StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			out, err := Result[string](t.Context(), run)
			if err != nil || out != "secret!" {
				t.Fatalf("Result = %q, %v", out, err)
			}
			r := f.await(t, "run-1")
			equal(t, string(r.Input.GetData()), base64.StdEncoding.EncodeToString([]byte(`"secret"`)))
			equal(t, r.steps[0].GetOutput().GetMetadata(),
				map[string]string{"content-type": "application/json", "encoding": "base64"})
			start := startDigest("w", "", r.Input.GetData())
			equal(t, codec.seen, map[PayloadInfo]int{
				{Kind: PayloadInput, WorkflowType: "w"}: 3, {Kind: PayloadStep, Start: start, Step: "shout"}: 2,
				{Kind: PayloadOutput, RunID: "run-1"}: 2})
		})
	})
}

type base64Codec struct{ seen map[PayloadInfo]int }

func (c *base64Codec) Encode(p Payload, info PayloadInfo) (Payload, error) {
	c.seen[info]++
	p.Data = []byte(base64.StdEncoding.EncodeToString(p.Data))
	p.Metadata["encoding"] = "base64"
	return p, nil
}

func (c *base64Codec) Decode(p Payload, info PayloadInfo) (Payload, error) {
	c.seen[info]++
	data, err := base64.StdEncoding.DecodeString(string(p.Data))
	p.Data = data
	return p, err
}
