package tracing

import (
	"context"
	"log/slog"
	"net"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// sink is a collector that keeps what it receives.
type sink struct {
	collector.UnimplementedTraceServiceServer
	requests chan *collector.ExportTraceServiceRequest
}

func (s sink) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse,
	error) {
	s.requests <- r
	return &collector.ExportTraceServiceResponse{}, nil
}

func TestSpansGoToTheCollectorThatTheEnvironmentNames(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	kept := sink{requests: make(chan *collector.ExportTraceServiceRequest, 1)}
	srv := grpc.NewServer()
	collector.RegisterTraceServiceServer(srv, kept)
	go srv.Serve(listener)
	t.Cleanup(srv.Stop)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())

	provider, err := New(t.Context(), "v1.2.3", slog.New(slog.DiscardHandler))
	if err != nil || provider == nil {
		t.Fatalf("tracing: %v, %v, want a provider", provider, err)
	}
	_, span := provider.Tracer("test").Start(t.Context(), "hello")
	span.End()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := Flush(stopped, provider); err != nil {
		t.Fatal(err)
	}
	sent := (<-kept.requests).ResourceSpans[0]
	if got := sent.ScopeSpans[0].Spans[0].Name; got != "hello" {
		t.Errorf("the span sent is %q, want hello", got)
	}
	names := map[string]string{}
	for _, a := range sent.Resource.Attributes {
		names[a.Key] = a.Value.GetStringValue()
	}
	if names["service.name"] != "kagzi" || names["service.version"] != "v1.2.3" {
		t.Errorf("the spans are of %v, want kagzi v1.2.3", names)
	}
}

func TestWithoutACollectorThereIsNoTracing(t *testing.T) {
	for _, env := range []map[string]string{
		{"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
	} {
		t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
		for key, value := range env {
			t.Setenv(key, value)
		}
		if provider, err := New(t.Context(), "", slog.New(slog.DiscardHandler)); err != nil || provider != nil {
			t.Errorf("with %v: %v, %v, want nothing", env, provider, err)
		}
	}
}
