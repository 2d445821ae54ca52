package kagzi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func jsonPayload(text string) *kagziv1.Payload {
	return &kagziv1.Payload{Data: []byte(text), Metadata: jsonMetadata}
}

func TestSignalling(t *testing.T) {
	t.Run("sends the value with an id, the caller's or a fresh one", func(t *testing.T) {
		d := newFakeServer(t)
		d.on("SignalWorkflow", &kagziv1.SignalWorkflowResponse{})
		run := d.client(t).Run("r")
		if err := Signal(t.Context(), run, "approval", map[string]bool{"yes": true},
			SignalOptions{ID: "one"}); err != nil {
			t.Fatal(err)
		}
		want := &kagziv1.SignalWorkflowRequest{Namespace: "shop", RunId: "r", Name: "approval",
			Payload: jsonPayload(`{"yes":true}`), SignalId: "one"}
		d.wants(t, want)
		if err := Signal(t.Context(), run, "approval", map[string]bool{"yes": true}, SignalOptions{}); err != nil {
			t.Fatal(err)
		}
		d.wants(t, want, "signal_id")
		if id := d.asked[1].(*kagziv1.SignalWorkflowRequest).SignalId; uuid.Validate(id) != nil {
			t.Fatalf("signal id %q", id)
		}
	})

	t.Run("a delivery without an answer is repeated with its id", func(t *testing.T) {
		d := newFakeServer(t)
		d.answers["SignalWorkflow"] = func(proto.Message) (proto.Message, error) {
			if len(d.asked) == 1 {
				return nil, status.Error(codes.Unavailable, "cut")
			}
			return &kagziv1.SignalWorkflowResponse{AlreadyDelivered: true}, nil
		}
		if err := Signal(t.Context(), d.client(t).Run("r"), "n", 1, SignalOptions{}); err != nil {
			t.Fatal(err)
		}
		equal(t, len(d.asked), 2)
		equal(t, d.asked[0].(*kagziv1.SignalWorkflowRequest).SignalId,
			d.asked[1].(*kagziv1.SignalWorkflowRequest).SignalId)
	})

	t.Run("the codec sees how the run was started and the signal's name", func(t *testing.T) {
		d := newFakeServer(t)
		d.on("GetWorkflow", &kagziv1.GetWorkflowResponse{
			Workflow: &kagziv1.Workflow{RunId: "r", WorkflowType: "w", ExternalId: "x", Input: jsonPayload("5")}})
		d.on("SignalWorkflow", &kagziv1.SignalWorkflowResponse{})
		c, codec := d.client(t), &base64Codec{seen: map[PayloadInfo]int{}}
		c.options.Codec = codec
		if err := Signal(t.Context(), c.Run("r"), "n", 1, SignalOptions{}); err != nil {
			t.Fatal(err)
		}
		equal(t, codec.seen, map[PayloadInfo]int{
			{Kind: PayloadSignal, Start: startDigest("w", "x", []byte("5")), Step: "n"}: 1})
	})

	t.Run("a value that is not JSON is refused by the client", func(t *testing.T) {
		d := newFakeServer(t)
		err := Signal(t.Context(), d.client(t).Run("r"), "n", func() {}, SignalOptions{})
		equal(t, fmt.Sprint(err), `kagzi: value of signal "n": json: unsupported type: func()`)
		equal(t, len(d.asked), 0)
	})
}

func TestRepair(t *testing.T) {
	type ask = func(ctx context.Context, r *Run) error
	for _, c := range []struct {
		name, method string
		answer       proto.Message
		ask          ask
		want         proto.Message
	}{
		{"pause", "PauseWorkflow", &kagziv1.PauseWorkflowResponse{}, func(ctx context.Context, r *Run) error {
			return r.Pause(ctx, "why")
		},
			&kagziv1.PauseWorkflowRequest{Namespace: "shop", RunId: "r", Reason: "why"}},
		{"pause now", "PauseWorkflow", &kagziv1.PauseWorkflowResponse{}, func(ctx context.Context, r *Run) error {
			return r.PauseNow(ctx, "why")
		},
			&kagziv1.PauseWorkflowRequest{Namespace: "shop", RunId: "r", Reason: "why", Now: true}},
		{"resume", "ResumeWorkflow", &kagziv1.ResumeWorkflowResponse{}, func(ctx context.Context, r *Run) error {
			return r.Resume(ctx, "why")
		},
			&kagziv1.ResumeWorkflowRequest{Namespace: "shop", RunId: "r", Reason: "why"}},
		{"pin", "PinWorkflow", &kagziv1.PinWorkflowResponse{}, func(ctx context.Context, r *Run) error {
			return r.Pin(ctx, "why")
		},
			&kagziv1.PinWorkflowRequest{Namespace: "shop", RunId: "r", Pinned: true, Reason: "why"}},
		{"unpin", "PinWorkflow", &kagziv1.PinWorkflowResponse{}, func(ctx context.Context, r *Run) error {
			return r.Unpin(ctx, "why")
		},
			&kagziv1.PinWorkflowRequest{Namespace: "shop", RunId: "r", Reason: "why"}},
		{"cancel", "CancelWorkflow", &kagziv1.CancelWorkflowResponse{},
			func(ctx context.Context, r *Run) error { return r.Cancel(ctx, "why") },
			&kagziv1.CancelWorkflowRequest{Namespace: "shop", RunId: "r", Reason: "why",
				Grace: durationpb.New(30 * time.Second)}},
		{"cancel with a grace", "CancelWorkflow", &kagziv1.CancelWorkflowResponse{},
			func(ctx context.Context, r *Run) error { return r.CancelGracefully(ctx, time.Minute, "why") },
			&kagziv1.CancelWorkflowRequest{Namespace: "shop", RunId: "r", Reason: "why",
				Grace: durationpb.New(time.Minute)}},
		{"cancel with hardly a grace", "CancelWorkflow", &kagziv1.CancelWorkflowResponse{},
			func(ctx context.Context, r *Run) error { return r.CancelGracefully(ctx, 0, "why") },
			&kagziv1.CancelWorkflowRequest{Namespace: "shop", RunId: "r", Reason: "why",
				Grace: durationpb.New(time.Millisecond)}},
		{"override a step's result", "OverrideStep", &kagziv1.OverrideStepResponse{},
			func(ctx context.Context, r *Run) error {
				return OverrideStep(ctx, r, "charge", []int{1}, "paid by hand")
			},
			&kagziv1.OverrideStepRequest{Namespace: "shop", RunId: "r", StepName: "charge", Reason: "paid by hand",
				Result: &kagziv1.OverrideStepRequest_Output{Output: jsonPayload("[1]")}}},
		{"override a step with a failure", "OverrideStep", &kagziv1.OverrideStepResponse{},
			func(ctx context.Context, r *Run) error {
				return r.OverrideStepError(ctx, "charge", WithType(errors.New("lost"), "gone"), "never came")
			},
			&kagziv1.OverrideStepRequest{Namespace: "shop", RunId: "r", StepName: "charge", Reason: "never came",
				Result: &kagziv1.OverrideStepRequest_Error{
					Error: &kagziv1.ErrorDetail{Message: "lost", Type: "gone", NonRetryable: true}}}},
	} {
		t.Run(c.name+" is one call, and a refusal is an Error", func(t *testing.T) {
			d := newFakeServer(t)
			run := d.client(t).Run("r")
			var e *Error
			if err := c.ask(t.Context(), run); !errors.As(err, &e) {
				t.Fatalf("err = %v", err)
			}
			d.on(c.method, c.answer)
			if err := c.ask(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			d.wants(t, c.want)
		})
	}

	t.Run("a step is not overridden with a failure that is none", func(t *testing.T) {
		d := newFakeServer(t)
		err := d.client(t).Run("r").OverrideStepError(t.Context(), "charge", nil, "never came")
		equal(t, fmt.Sprint(err), `kagzi: failure of step "charge" is nil, want an error; OverrideStep sets a result`)
		equal(t, len(d.asked), 0)
	})

	t.Run("a retry keeps results, starts at a step, or restarts", func(t *testing.T) {
		d := newFakeServer(t)
		d.on("RetryWorkflow", &kagziv1.RetryWorkflowResponse{NewRunId: "r2", AlreadyRunning: true})
		run := d.client(t).Run("r")
		again, err := run.Retry(t.Context(), RetryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, []any{again.ID(), again.AlreadyExisted()}, []any{"r2", true})
		d.wants(t, &kagziv1.RetryWorkflowRequest{Namespace: "shop", RunId: "r"}, "request_id")
		if id := d.asked[0].(*kagziv1.RetryWorkflowRequest).RequestId; uuid.Validate(id) != nil {
			t.Fatalf("request id %q", id)
		}
		if _, err := run.Retry(t.Context(), RetryOptions{
			FromStep: "charge", Reason: "why", RequestID: "x"}); err != nil {
			t.Fatal(err)
		}
		d.wants(t, &kagziv1.RetryWorkflowRequest{
			Namespace: "shop", RunId: "r", FromStep: "charge", Reason: "why", RequestId: "x"})
		if _, err := run.Retry(t.Context(), RetryOptions{
			Restart: true, Input: InputOf([]int{7}), RequestID: "y"}); err != nil {
			t.Fatal(err)
		}
		d.wants(t, &kagziv1.RetryWorkflowRequest{
			Namespace: "shop", RunId: "r", Restart: true, Input: jsonPayload("[7]"), RequestId: "y"})
	})

	t.Run("a retry that contradicts itself is refused", func(t *testing.T) {
		d := newFakeServer(t)
		run := d.client(t).Run("r")
		for _, o := range []RetryOptions{{FromStep: "a", Restart: true}, {Input: InputOf(1)},
			{Restart: true, Input: InputOf(func() {})}} {
			if _, err := run.Retry(t.Context(), o); err == nil {
				t.Fatalf("%+v was taken", o)
			}
		}
		equal(t, len(d.asked), 0)
	})

	t.Run("an explanation comes as the server gives it", func(t *testing.T) {
		d, since := newFakeServer(t), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		d.on("ExplainWorkflow", &kagziv1.ExplainWorkflowResponse{Summary: "s", Details: []string{"a"},
			Blocker: kagziv1.ExplainWorkflowResponse_BLOCKER_NO_WORKER, Since: timestamppb.New(since),
			Blocked: []*kagziv1.BlockedCode{{Branch: "2", Since: timestamppb.New(since), Stack: "main()",
				Held: []*kagziv1.Call{{Name: "a"}}, Owed: []*kagziv1.Call{{Name: "b"}, {Name: "c"}}}}})
		got, err := d.client(t).Run("r").Explain(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		equal(t, *got, Explanation{Summary: "s", Details: []string{"a"}, Blocker: BlockerNoWorker, Since: since,
			Blocked: []BlockedCode{{Branch: "2", Since: since, Stack: "main()", Held: []string{"a"},
				Owed: []string{"b", "c"}}}})
	})

	t.Run("every blocker of the wire has its constant", func(t *testing.T) {
		known := []Blocker{BlockerNone, BlockerNoWorker, BlockerWorkersBusy, BlockerRetryDelay, BlockerTimer,
			BlockerSignal, BlockerChild,
			BlockerPaused, BlockerConcurrencyLimit, BlockerNamespaceDisabled, BlockerNotYetStarted}
		for n, name := range kagziv1.ExplainWorkflowResponse_Blocker_name {
			if n != 0 && !slices.Contains(known, Blocker(strings.TrimPrefix(name, "BLOCKER_"))) {
				t.Errorf("no constant for %s", name)
			}
		}
	})
}

func TestExportAndImport(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	capsule := make([]byte, 2*capsuleChunk+17)
	for i := range capsule {
		capsule[i] = byte(random.Uint32())
	}
	t.Run("an export is written byte for byte", func(t *testing.T) {
		d := newFakeServer(t)
		d.capsule = capsule[:5000]
		var got bytes.Buffer
		if err := d.client(t).Run("r").Export(t.Context(), &got, ExportOptions{RedactPayloads: true}); err != nil {
			t.Fatal(err)
		}
		d.wants(t, &kagziv1.ExportWorkflowRequest{Namespace: "shop", RunId: "r", RedactPayloads: true})
		equal(t, bytes.Equal(got.Bytes(), d.capsule), true)
	})
	t.Run("an export that breaks off is an error", func(t *testing.T) {
		d := newFakeServer(t)
		d.capsule, d.refuse = capsule[:5000], status.Error(codes.DataLoss, "broken")
		err := d.client(t).Run("r").Export(t.Context(), io.Discard, ExportOptions{})
		equal(t, status.Code(err), codes.DataLoss)
		d.refuse = nil
		full := errors.New("disk full")
		err = d.client(t).Run("r").Export(t.Context(), failingWriter{full}, ExportOptions{})
		equal(t, errors.Is(err, full), true)
	})
	for _, size := range []int{0, 1, capsuleChunk, capsuleChunk + 1, len(capsule)} {
		t.Run(fmt.Sprintf("an import of %d bytes arrives whole, and says once where to", size), func(t *testing.T) {
			d := newFakeServer(t)
			run, err := d.client(t).Import(t.Context(), iotest.OneByteReader(bytes.NewReader(capsule[:min(size, 100)])),
				ImportOptions{RequestID: "x"})
			if size > 100 {
				run, err = d.client(t).Import(t.Context(), bytes.NewReader(capsule[:size]),
					ImportOptions{RequestID: "x"})
			}
			if err != nil {
				t.Fatal(err)
			}
			equal(t, []any{run.ID(), run.AlreadyExisted()}, []any{"imported", true})
			d.wants(t, &kagziv1.Capsule{Namespace: "shop", RequestId: "x"})
			equal(t, bytes.Equal(d.capsule, capsule[:size]), true)
		})
	}
	t.Run("a refused import gives the server's reason", func(t *testing.T) {
		d := newFakeServer(t)
		d.refuse = status.Error(codes.InvalidArgument, "no capsule")
		_, err := d.client(t).Import(t.Context(), bytes.NewReader(capsule), ImportOptions{})
		equal(t, fmt.Sprint(err), "kagzi: INVALID_ARGUMENT: no capsule")
	})
	t.Run("a reader that fails ends the import", func(t *testing.T) {
		d, cut := newFakeServer(t), errors.New("cut")
		_, err := d.client(t).Import(t.Context(), iotest.ErrReader(cut), ImportOptions{})
		equal(t, errors.Is(err, cut), true)
	})
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
