package kagzi

import (
	"cmp"
	"context"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"
)

const (
	tracerName  = "github.com/kagzi/kagzi/sdk"
	traceparent = "traceparent" // W3C trace context, in gRPC metadata and in tasks
)

// tracerOf returns the SDK's tracer, of the global provider if p is nil. Unless configured, that
// one records nothing at almost no cost.
func tracerOf(p trace.TracerProvider) trace.Tracer {
	if p == nil {
		p = otel.GetTracerProvider()
	}
	return p.Tracer(tracerName)
}

// traceCall starts the span of a call that starts runs. The trace context is sent along and stored
// with the runs.
func (c *Client) traceCall(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context,
	trace.Span) {
	ctx, _, span := c.traceStart(ctx, name, attributes...)
	return ctx, span
}

// traceStart is traceCall that also returns the trace context in W3C form, "" if there is none.
func (c *Client) traceStart(ctx context.Context, name string, attributes ...attribute.KeyValue) (with context.Context,
	parent string, span trace.Span) {
	ctx, span = c.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(append(attributes, attribute.String("kagzi.namespace", c.options.Namespace))...))
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	if parent = carrier[traceparent]; parent == "" {
		return ctx, "", span
	}
	out, _ := metadata.FromOutgoingContext(ctx) // a copy
	if out == nil {
		out = metadata.MD{}
	}
	out.Set(traceparent, parent)
	return metadata.NewOutgoingContext(ctx, out), parent, span
}

// endCall ends a call's span. It records only the code of an error: messages may contain user data.
func endCall(ctx context.Context, span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		text := "error"
		if e, ok := callError(ctx, err).(*Error); ok {
			text = string(e.Code)
		}
		span.SetStatus(codes.Error, text)
	}
	span.End()
}

// traceActivation starts the span of one activation of a run, a child of the span that started the
// run. All contexts of the run's code derive from its context.
func (w *Worker) traceActivation(t *kagziv1.Task) (context.Context, trace.Span) {
	ctx := context.Background()
	if parent := t.GetTraceparent(); parent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceparent: parent})
	}
	return w.tracer.Start(ctx, "workflow "+t.GetWorkflowType(), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(
			attribute.String("kagzi.run_id", t.GetRunId()),
			attribute.String("kagzi.workflow_type", t.GetWorkflowType()),
			attribute.String("kagzi.namespace", t.GetNamespace()),
			attribute.String("kagzi.queue", t.GetTaskQueue()),
			attribute.Int("kagzi.attempt", int(t.GetAttempt())),
		))
}

// endActivation ends the activation's span with its outcome.
func (e *execution) endActivation(cause error) {
	outcome := "released"
	switch cause {
	case errSuspended:
		outcome = "suspended"
	case errPaused:
		outcome = "paused"
	case errFinished:
		outcome = "finished"
	case errLeaseLost:
		outcome = "lease lost"
	}
	if e.span.IsRecording() {
		e.span.SetAttributes(attribute.String("kagzi.outcome", outcome))
	}
	e.span.End()
}

// traceFailure marks a span as failed, with the error's type but not its text.
func traceFailure(span trace.Span, d *kagziv1.ErrorDetail) {
	if span.IsRecording() {
		span.SetStatus(codes.Error, cmp.Or(d.GetType(), string(errorCode(d.GetCode())), "error"))
	}
}

// traceStep starts the span of one attempt of a step, if the activation is recorded.
func (w *Worker) traceStep(ctx context.Context, name string) (context.Context, trace.Span) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return ctx, nil
	}
	return w.tracer.Start(ctx, "step "+name, trace.WithAttributes(
		attribute.String("kagzi.step", name), attribute.Int("kagzi.attempt", Attempt(ctx))))
}

func endStep(ctx context.Context, span trace.Span, err error) {
	if span == nil {
		return
	}
	switch {
	case err != nil && context.Cause(ctx) == errStepTimeout:
		span.SetStatus(codes.Error, string(CodeTimeout))
	case err != nil:
		traceFailure(span, errorDetail(err))
	}
	span.End()
}
