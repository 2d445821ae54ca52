// Package tracing sends the server's spans to a collector.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// flushLimit limits how long a stopping server tries to send its last spans.
const flushLimit = 3 * time.Second

// New returns a provider for the server's spans if the environment names a collector:
// OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT. Otherwise it returns nil, which
// costs nothing. The exporter, the batcher and the sampler read the other OTEL_ variables. As the
// specification demands, a variable that cannot be used is a warning: the server runs without it.
func New(ctx context.Context, version string, log *slog.Logger) (*sdktrace.TracerProvider, error) {
	endpoint, name := first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	if endpoint == "" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	unusable := func(name, value, want string) (*sdktrace.TracerProvider, error) {
		log.Warn("cannot use an OpenTelemetry variable; sending no traces", "variable", name, "value", value,
			"want", want)
		return nil, nil
	}
	switch exporter, name := first("OTEL_TRACES_EXPORTER"); exporter {
	case "", "otlp":
	case "none":
		return nil, nil
	default:
		return unusable(name, exporter, "otlp or none")
	}
	if protocol, name := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol != "" &&
		protocol != "grpc" {
		return unusable(name, protocol, "grpc, which collectors serve on port 4317")
	}
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return unusable(name, "…", "a URL such as http://127.0.0.1:4317") // it may hold a password
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("cannot send traces; dropping them", "error", err)
	}))
	named, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "kagzi"), attribute.String("service.version", version)),
		resource.WithFromEnv()) // OTEL_RESOURCE_ATTRIBUTES overrides ours, and OTEL_SERVICE_NAME overrides both
	if err != nil { // the rest of the resource holds
		log.Warn("cannot use all of an OpenTelemetry variable", "variable", "OTEL_RESOURCE_ATTRIBUTES", "error", err)
	}
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(named)), nil
}

// first returns the first of these variables that is set, and its name; empty counts as unset.
func first(names ...string) (value, name string) {
	for _, name := range names {
		if value := strings.TrimSpace(os.Getenv(name)); value != "" {
			return value, name
		}
	}
	return "", ""
}

// Flush sends the last spans when the server stops.
func Flush(ctx context.Context, provider *sdktrace.TracerProvider) error {
	<-ctx.Done()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
	defer cancel()
	_ = provider.Shutdown(limited) // lost spans are reported to the error handler
	return nil
}
