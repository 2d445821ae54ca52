package server

import (
	"context"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestAStartOfManyIsRefusedAsOneAloneWouldBe(t *testing.T) {
	_, conn := serve(t, &servertest.RunStore{Runs: map[engine.ID]engine.Run{}})
	api := kagziv1.NewWorkflowServiceClient(conn)
	bad := &kagziv1.StartWorkflowRequest{WorkflowType: "w", ExternalId: "no spaces"}
	_, err := api.StartWorkflow(t.Context(), bad)
	many, err2 := api.StartWorkflows(t.Context(),
		&kagziv1.StartWorkflowsRequest{Requests: []*kagziv1.StartWorkflowRequest{{WorkflowType: "w"}, bad}})
	if err == nil || err2 != nil {
		t.Fatal(err, err2)
	}
	alone, item := servertest.DetailOf(t, err), many.Results[1]
	if item.StatusCode != int32(codes.InvalidArgument) || item.Error.Message != alone.Message ||
		item.Error.Metadata["field"] != "external_id" {
		t.Errorf("of many: %v, alone: %v", item, alone)
	}
	if many.Results[0].Started.GetRunId() == "" {
		t.Error("the other one did not start")
	}
}

// askedBy records the Handoff of a start.
type askedBy struct {
	servertest.StubStore
	handoff engine.Handoff
}

func (a *askedBy) StartRuns(_ context.Context, p engine.StartRunsParams) ([]engine.Started, error) {
	a.handoff = p.Handoff
	return []engine.Started{{RunID: p.Runs[0].ID}}, nil
}

func TestAStartIsOfferedToWaitingWorkers(t *testing.T) {
	store := &askedBy{}
	s, conn := serve(t, store)
	if _, err := kagziv1.NewWorkflowServiceClient(conn).StartWorkflow(
		t.Context(), &kagziv1.StartWorkflowRequest{WorkflowType: "w"}); err != nil {
		t.Fatal(err)
	}
	if store.handoff != engine.Handoff(s.matcher) {
		t.Errorf("the store may ask %v, want the matcher", store.handoff)
	}
}

func TestEachStartOfManyIsInItsOwnTrace(t *testing.T) {
	const other = "00-1af7651916cd43dd8448eb211c80319c-a7ad6b7169203331-01"
	start := func(t *testing.T, tracer *tracetest.SpanRecorder) (kept []string) {
		options := Options{Trusted: true}
		if tracer != nil {
			options.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(tracer)).Tracer("test")
		}
		a := &servertest.RunStore{Runs: map[engine.ID]engine.Run{}}
		s := New(a, nil, options)
		ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs("traceparent", callersTrace))
		request := &kagziv1.StartWorkflowsRequest{Requests: []*kagziv1.StartWorkflowRequest{
			{WorkflowType: "w"}, {WorkflowType: "w", Traceparent: other},
			{WorkflowType: "w", Traceparent: "not\x00fit"},
		}}
		answer, err := s.unary(ctx, request, &grpc.UnaryServerInfo{
			FullMethod: "/kagzi.v1.WorkflowService/StartWorkflows"}, func(ctx context.Context, r any) (any, error) {
			return s.StartWorkflows(ctx, r.(*kagziv1.StartWorkflowsRequest))
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range answer.(*kagziv1.StartWorkflowsResponse).Results {
			id, err := engine.ParseID(r.Started.GetRunId())
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, a.Runs[id].Traceparent)
		}
		return kept
	}
	t.Run("as its caller says, else that of the call", func(t *testing.T) {
		kept := start(t, nil)
		servertest.Want(t, "the first", kept[0], callersTrace)
		servertest.Want(t, "the second", kept[1], other)
		servertest.Want(t, "the third", kept[2], callersTrace)
	})
	t.Run("with a span of the server's own in it", func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		kept := start(t, spans)
		if len(spans.Ended()) != 2 {
			t.Fatalf("%d spans", len(spans.Ended()))
		}
		own, call := spans.Ended()[0], spans.Ended()[1]
		servertest.Want(t, "the name of the start's span", own.Name(), "kagzi.v1.WorkflowService/StartWorkflow")
		servertest.Want(t, "its parent", own.Parent().SpanID().String(), other[36:52])
		servertest.Want(t, "the second", kept[1], "00-"+other[3:35]+"-"+own.SpanContext().SpanID().String()+"-01")
		servertest.Want(t, "the first", kept[0],
			"00-"+callersTrace[3:35]+"-"+call.SpanContext().SpanID().String()+"-01")
		if links := own.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != call.SpanContext().SpanID() {
			t.Errorf("it points at %v", links)
		}
	})
}

func TestAStartBelongsToTheTraceOfItsCall(t *testing.T) {
	s := New(servertest.StubStore{}, nil, Options{})
	ctx := metadata.NewIncomingContext(context.Background(),
		metadata.Pairs("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
	start, err := s.starts.Start(ctx, &kagziv1.StartWorkflowRequest{WorkflowType: "t"})
	if err != nil || start.Traceparent == "" {
		t.Errorf("trace context %q, %v", start.Traceparent, err)
	}
	for _, bad := range []string{"a b", "\x00", string(make([]byte, 65))} {
		ctx := metadata.NewIncomingContext(context.Background(), metadata.MD{"traceparent": {bad}})
		if start, err := s.starts.Start(ctx, &kagziv1.StartWorkflowRequest{WorkflowType: "t"}); err != nil ||
			start.Traceparent != "" {
			t.Errorf("a trace context of %q is kept as %q, %v", bad, start.Traceparent, err)
		}
	}
}
