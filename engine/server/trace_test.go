package server

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const callersTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestACallIsASpanUnderItsCallersAndWhatItStartsIsUnderThat(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	s := New(servertest.StubStore{}, nil, Options{
		Trusted: true, Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")})
	s.log = s.options.Log
	ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs("traceparent", callersTrace))
	handed := ""
	_, err := s.unary(ctx, &kagziv1.StartWorkflowRequest{Namespace: "default", WorkflowType: "order"},
		&grpc.UnaryServerInfo{FullMethod: "/kagzi.v1.WorkflowService/StartWorkflow"},
		func(ctx context.Context, _ any) (any, error) {
			handed = traceparent(ctx)
			return nil, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	ended := spans.Ended()
	if len(ended) != 1 {
		t.Fatalf("%d spans, want 1", len(ended))
	}
	span := ended[0]
	if got, want := span.SpanContext().TraceID().String(), callersTrace[3:35]; got != want {
		t.Errorf("the span is of trace %s, want the caller's %s", got, want)
	}
	if got, want := span.Parent().SpanID().String(), callersTrace[36:52]; got != want {
		t.Errorf("the span's parent is %s, want the caller's %s", got, want)
	}
	if want := "00-" + callersTrace[3:35] + "-" + span.SpanContext().SpanID().String() + "-01"; handed != want {
		t.Errorf("the run gets traceparent %q, want that of the server's span, %q", handed, want)
	}
	if span.Name() != "kagzi.v1.WorkflowService/StartWorkflow" || len(span.Attributes()) != 6 {
		t.Errorf("span %q with %v", span.Name(), span.Attributes())
	}
}

func TestASpanTellsTheCodeOfARefusalAndNotItsText(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	s := New(servertest.StubStore{}, nil, Options{
		Trusted: true, Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")})
	s.log = s.options.Log
	_, _ = s.unary(context.Background(), &kagziv1.GetWorkflowRequest{},
		&grpc.UnaryServerInfo{FullMethod: "/kagzi.v1.WorkflowService/GetWorkflow"},
		func(context.Context, any) (any, error) { return nil, engine.Invalid("run_id", "is secret") })
	status := spans.Ended()[0].Status()
	if status.Code != codes.Error || status.Description != "InvalidArgument" {
		t.Errorf("the span's status is %v %q, want the code alone", status.Code, status.Description)
	}
}

func TestWithoutATracerTheCallersTraceIsPassedOn(t *testing.T) {
	s := New(servertest.StubStore{}, nil, Options{Trusted: true})
	s.log = s.options.Log
	ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs("traceparent", callersTrace))
	_, _ = s.unary(ctx, &kagziv1.StartWorkflowRequest{}, &grpc.UnaryServerInfo{},
		func(ctx context.Context, _ any) (any, error) {
			if got := traceparent(ctx); got != callersTrace {
				t.Errorf("the run gets traceparent %q, want the caller's", got)
			}
			return nil, nil
		})
}
