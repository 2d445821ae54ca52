package tracing

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// sink is a collector that keeps what it receives.
type sink struct {
	collector.UnimplementedTraceServiceServer
	requests chan *collector.ExportTraceServiceRequest
	headers  chan metadata.MD // nil: not kept
}

func (s sink) Export(ctx context.Context, r *collector.ExportTraceServiceRequest) (
	*collector.ExportTraceServiceResponse,
	error) {
	s.requests <- r
	if s.headers != nil {
		md, _ := metadata.FromIncomingContext(ctx) // a call has one
		s.headers <- md
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// variables are those that these tests set; a test starts without any.
var variables = []string{"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT",
	"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_HEADERS",
	"OTEL_SERVICE_NAME",
	"OTEL_RESOURCE_ATTRIBUTES"}

func setOnly(t *testing.T, env map[string]string) {
	t.Helper()
	for _, name := range variables {
		t.Setenv(name, env[name])
	}
}

func TestVariablesOfTheSpecificationAreObeyed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	kept := sink{requests: make(chan *collector.ExportTraceServiceRequest, 1), headers: make(chan metadata.MD, 1)}
	srv := grpc.NewServer()
	collector.RegisterTraceServiceServer(srv, kept)
	go srv.Serve(listener)
	t.Cleanup(srv.Stop)
	setOnly(t, map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT":        "http://127.0.0.1:1",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://" + listener.Addr().String(),
		"OTEL_EXPORTER_OTLP_PROTOCOL":        "grpc", "OTEL_TRACES_EXPORTER": "otlp",
		"OTEL_EXPORTER_OTLP_HEADERS": "x-team=ops",
		"OTEL_SERVICE_NAME":          "orders",
		// the second has no value: it is dropped, and the server runs
		"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=prod,broken",
	})
	var log bytes.Buffer
	provider, err := New(t.Context(), "v1", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil || provider == nil {
		t.Fatalf("tracing: %v, %v, want a provider", provider, err)
	}
	if !strings.Contains(log.String(), "OTEL_RESOURCE_ATTRIBUTES") {
		t.Errorf("log %q, want a warning", log.String())
	}
	_, span := provider.Tracer("test").Start(t.Context(), "hello")
	span.End()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := Flush(stopped, provider); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, a := range (<-kept.requests).ResourceSpans[0].Resource.Attributes {
		names[a.Key] = a.Value.GetStringValue()
	}
	if names["service.name"] != "orders" || names["deployment.environment"] != "prod" ||
		names["telemetry.sdk.language"] != "go" {
		t.Errorf("the spans are of %v", names)
	}
	if got := (<-kept.headers).Get("x-team"); len(got) != 1 || got[0] != "ops" {
		t.Errorf("header x-team = %q", got)
	}
}

func TestVariablesThatCannotBeUsedAreWarnedAbout(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_TRACES_EXPORTER": "zipkin",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "localhost:4317",
	} {
		env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", name: value}
		setOnly(t, env)
		var log bytes.Buffer
		provider, err := New(t.Context(), "", slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil || provider != nil || !strings.Contains(log.String(), name) {
			t.Errorf("%s=%s: %v, %v, log %q, want no provider and a warning", name, value, provider, err, log.String())
		}
	}
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
	setOnly(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + listener.Addr().String()})

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
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		setOnly(t, env)
		if provider, err := New(t.Context(), "", slog.New(slog.DiscardHandler)); err != nil || provider != nil {
			t.Errorf("with %v: %v, %v, want nothing", env, provider, err)
		}
	}
}
