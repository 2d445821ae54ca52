// Package tracing sends the server's spans to a collector.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
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
// OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, with the exporter's other
// OTEL_ variables. Otherwise it returns nil, which costs nothing.
func New(ctx context.Context, version string, log *slog.Logger) (*sdktrace.TracerProvider, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" ||
		strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	named, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "kagzi"), attribute.String("service.version", version)),
		resource.WithFromEnv()) // OTEL_SERVICE_NAME overrides ours
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("cannot send traces; dropping them", "error", err) }))
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(named)), nil
}

// Flush sends the last spans when the server stops.
func Flush(ctx context.Context, provider *sdktrace.TracerProvider) error {
	<-ctx.Done()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
	defer cancel()
	_ = provider.Shutdown(limited) // lost spans are reported to the error handler
	return nil
}
