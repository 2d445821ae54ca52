package server

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
)

// span begins the span of a unary call, with the caller's traceparent as its parent. It returns a
// nil span without a tracer. Streams have no span: a session lasts for days, and workers trace its
// operations.
func (s *Server) span(ctx context.Context, method string, request any) (context.Context, trace.Span) {
	if s.options.Tracer == nil {
		return ctx, nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	return s.beginSpan(ctx, carrier(md), method, request)
}

// beginSpan begins a span with the carrier's trace context as its parent. It needs a tracer.
func (s *Server) beginSpan(ctx context.Context, from carrier, method string, request any,
	options ...trace.SpanStartOption) (context.Context, trace.Span) {
	ctx = propagation.TraceContext{}.Extract(ctx, from)
	name := strings.TrimPrefix(method, "/")
	service, rpc, _ := strings.Cut(name, "/")
	attributes := []attribute.KeyValue{
		attribute.String("rpc.system", "grpc"), attribute.String("rpc.service", service),
		attribute.String("rpc.method", rpc),
	}
	if r, ok := request.(interface{ GetNamespace() string }); ok {
		attributes = add(attributes, "kagzi.namespace", r.GetNamespace())
	}
	if r, ok := request.(interface{ GetRunId() string }); ok {
		attributes = add(attributes, "kagzi.run_id", r.GetRunId())
	}
	if r, ok := request.(interface{ GetWorkflowType() string }); ok {
		attributes = add(attributes, "kagzi.workflow_type", r.GetWorkflowType())
	}
	return s.options.Tracer.Start(ctx, name, append(
		options, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attributes...))...)
}

// add adds an attribute unless its text is empty or not valid.
func add(attributes []attribute.KeyValue, key, text string) []attribute.KeyValue {
	if text == "" || engine.CheckText(key, text, engine.MaxName) != nil {
		return attributes
	}
	return append(attributes, attribute.String(key, text))
}

// endSpan ends a span with the status code of the call. It leaves out the message, which may quote
// users' data.
func endSpan(span trace.Span, err error) {
	if span == nil {
		return
	}
	code := status.Code(err)
	span.SetAttributes(attribute.Int("rpc.grpc.status_code", int(code)))
	if err != nil {
		span.SetStatus(codes.Error, code.String())
	}
	span.End()
}

// traced returns the traceparent of the span in ctx; empty if there is none.
func traced(ctx context.Context) string {
	out := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, out)
	return out["traceparent"]
}

// carrier reads the trace context from a call's metadata.
type carrier metadata.MD

func (c carrier) Get(key string) string {
	if values := metadata.MD(c).Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}

func (c carrier) Set(key, value string) { metadata.MD(c).Set(key, value) }

func (c carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for key := range c {
		keys = append(keys, key)
	}
	return keys
}
