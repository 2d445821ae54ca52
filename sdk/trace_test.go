package kagzi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	startedIn   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	startedSpan = "b7ad6b7169203331"
	traceID     = "0af7651916cd43dd8448eb211c80319c"
)

func recorder() (*tracetest.SpanRecorder, trace.TracerProvider) {
	r := tracetest.NewSpanRecorder()
	return r, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r))
}

// told formats a span on one line.
func told(s sdktrace.ReadOnlySpan) string {
	text := s.Name()
	for _, a := range s.Attributes() {
		text += fmt.Sprintf(" %s=%s", a.Key, a.Value.String())
	}
	if s.Status().Code == codes.Error {
		text += " error:" + s.Status().Description
	}
	return text
}

func TestTracing(t *testing.T) {
	t.Run("a span per activation and attempt, in the start's trace", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			spans, provider := recorder()
			w := testWorker(f)
			w.tracer = tracerOf(provider)
			var seen []string
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, _ = Step(ctx, "a", func(ctx context.Context) (int, error) {
					seen = append(seen, trace.SpanContextFromContext(ctx).SpanID().String())
					return 1, nil
				})
				Sleep(ctx, "s", time.Hour)
				_, err := Step(ctx, "b", func(context.Context) (int, error) {
					return 0, NonRetryable(WithType(errors.New("secret"), "card_declined"))
				})
				return 0, err
			})
			running(t, w)
			f.traced("r", "w", startedIn)
			f.await(t, "r")
			w.code.Wait()
			f.until(t, func() bool { return len(spans.Ended()) == 4 })
			var got []string
			for _, s := range spans.Ended() {
				got = append(got, told(s))
				equal(t, s.SpanContext().TraceID().String(), traceID)
			}
			span :=
				"workflow w kagzi.run_id=r kagzi.workflow_type=w kagzi.namespace=default kagzi.queue=default kagzi.attempt=1 kagzi.outcome="
			equal(t, got, []string{"step a kagzi.step=a kagzi.attempt=1", span + "suspended",
				"step b kagzi.step=b kagzi.attempt=1 error:card_declined", span + "finished error:card_declined"})
			all := spans.Ended()
			equal(t, []string{all[1].Parent().SpanID().String(), all[3].Parent().SpanID().String()},
				[]string{startedSpan, startedSpan})
			equal(t, all[0].Parent().SpanID(), all[1].SpanContext().SpanID())
			equal(t, all[2].Parent().SpanID(), all[3].SpanContext().SpanID())
			equal(t, seen, []string{all[0].SpanContext().SpanID().String()})
		})
	})

	t.Run("panics and timeouts are told by their type", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			spans, provider := recorder()
			w := testWorker(f)
			w.tracer = tracerOf(provider)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, _ = Step(ctx, "slow", func(ctx context.Context) (int, error) {
					<-ctx.Done()
					return 0, ctx.Err()
				}, Timeout(time.Second), Retry{Attempts: 1})
				_, _ = Step(ctx, "panics", func(context.Context) (int, error) { panic("secret") }, Retry{Attempts: 1})
				return 0, nil
			})
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			f.until(t, func() bool { return len(spans.Ended()) == 3 })
			var got []string
			for _, s := range spans.Ended() {
				if strings.HasPrefix(s.Name(), "step ") {
					got = append(got, told(s))
				}
			}
			slices.Sort(got) // code of a timed-out step may end after the next attempt
			equal(t, got, []string{"step panics kagzi.step=panics kagzi.attempt=1 error:panic",
				"step slow kagzi.step=slow kagzi.attempt=1 error:TIMEOUT"})
		})
	})

	t.Run("without a provider a step has the trace of the start", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			got := ""
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				return Step(ctx, "a", func(ctx context.Context) (int, error) {
					got = trace.SpanContextFromContext(ctx).SpanID().String()
					return 1, nil
				})
			})
			running(t, w)
			f.traced("r", "w", startedIn)
			f.await(t, "r")
			equal(t, got, startedSpan)
		})
	})

	t.Run("replays are not traced", func(t *testing.T) {
		spans, provider := recorder()
		w := NewWorker(WorkerOptions{Logger: slog.New(slog.DiscardHandler), TracerProvider: provider})
		if err := replayRecord(t.Context(), w, typed(w, "w", func(Context, int) (int, error) { return 1, nil }),
			recorded(pending, "1")); err != nil {
			t.Fatal(err)
		}
		equal(t, len(spans.Started()), 0)
	})
}

func TestTracingOfStarts(t *testing.T) {
	calls := []struct {
		name string
		call func(ctx context.Context, c *Client) error
		want string
	}{
		{"Start", func(ctx context.Context, c *Client) error {
			_, err := Start(ctx, c, "w", 1, StartOptions{})
			return err
		}, "start w kagzi.workflow_type=w kagzi.namespace=shop"},
		{"StartMany", func(ctx context.Context, c *Client) error {
			_, err := StartMany(ctx, c, "w", []int{1, 2}, StartOptions{})
			return err
		}, "start w kagzi.workflow_type=w kagzi.runs=2 kagzi.namespace=shop"},
		{"Retry", func(ctx context.Context, c *Client) error {
			_, err := c.Run("r").Retry(ctx, RetryOptions{})
			return err
		}, "retry run kagzi.run_id=r kagzi.namespace=shop"},
		{"Trigger", func(ctx context.Context, c *Client) error {
			_, err := c.Schedule("s").Trigger(ctx, TriggerOptions{})
			return err
		}, "trigger schedule kagzi.schedule_id=s kagzi.namespace=shop"},
	}
	answering := func(t *testing.T) *fakeServer {
		d := newFakeServer(t)
		d.on("StartWorkflow", &kagziv1.StartWorkflowResponse{})
		d.on("StartWorkflows", &kagziv1.StartWorkflowsResponse{})
		d.on("RetryWorkflow", &kagziv1.RetryWorkflowResponse{})
		d.on("TriggerWorkflowSchedule", &kagziv1.TriggerWorkflowScheduleResponse{})
		return d
	}
	for _, c := range calls {
		t.Run(c.name+" makes a span, and sends its context once", func(t *testing.T) {
			d := answering(t)
			client := d.client(t)
			spans, provider := recorder()
			client.tracer = tracerOf(provider)
			ctx := metadata.AppendToOutgoingContext(t.Context(), traceparent, "old", "own", "kept")
			if err := c.call(ctx, client); err != nil {
				t.Fatal(err)
			}
			span := spans.Ended()[0]
			equal(t, told(span), c.want)
			equal(t, d.metadata[0].Get(traceparent),
				[]string{fmt.Sprintf("00-%s-%s-01", span.SpanContext().TraceID(), span.SpanContext().SpanID())})
			equal(t, d.metadata[0].Get("own"), []string{"kept"})
		})
	}
	t.Run("without a provider the caller's trace is passed on", func(t *testing.T) {
		d := answering(t)
		c := d.client(t)
		if err := calls[0].call(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		id, _ := trace.TraceIDFromHex(traceID)
		spanID, _ := trace.SpanIDFromHex(startedSpan)
		parent := trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: id, SpanID: spanID, TraceFlags: trace.FlagsSampled})
		if err := calls[0].call(trace.ContextWithSpanContext(t.Context(), parent), c); err != nil {
			t.Fatal(err)
		}
		equal(t, [][]string{d.metadata[0].Get(traceparent), d.metadata[1].Get(traceparent)},
			[][]string{nil, {startedIn}})
	})
	t.Run("a refusal is told by its code", func(t *testing.T) {
		d := newFakeServer(t)
		c := d.client(t)
		spans, provider := recorder()
		c.tracer = tracerOf(provider)
		err := calls[0].call(t.Context(), c)
		if status.Code(err) == 0 {
			t.Fatal("no error")
		}
		equal(t, spans.Ended()[0].Status(), sdktrace.Status{Code: codes.Error, Description: "INTERNAL"})
	})
}

// traced adds a run that was started within a span.
func (f *fake) traced(runID, workflowType, parent string) {
	f.mu.Lock()
	f.traceparents = map[string]string{runID: parent}
	f.mu.Unlock()
	f.start(runID, workflowType, "")
}

func TestAnUntracedStepAllocatesNothingForTracing(t *testing.T) {
	w := NewWorker(WorkerOptions{})
	ctx, span := w.traceActivation(&kagziv1.Task{Traceparent: startedIn})
	defer span.End()
	ctx = context.WithValue(ctx, stepKey{}, &stepInfo{})
	if n := testing.AllocsPerRun(1000, func() {
		ctx, span := w.traceStep(ctx, "charge")
		endStep(ctx, span, nil)
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// BenchmarkRunStep runs a step's code without and with a provider.
func BenchmarkRunStep(b *testing.B) {
	for name, provider := range map[string]trace.TracerProvider{
		"untraced": nil, "traced": sdktrace.NewTracerProvider()} {
		b.Run(name, func(b *testing.B) {
			w := NewWorker(WorkerOptions{TracerProvider: provider})
			ctx, span := w.traceActivation(&kagziv1.Task{Traceparent: startedIn})
			defer span.End()
			ctx = context.WithValue(ctx, stepKey{}, &stepInfo{})
			c := &stepCall{run: func(context.Context, string) (any, *kagziv1.Payload, error) { return nil, nil, nil }}
			done := make(chan stepResult, 1)
			b.ReportAllocs()
			for b.Loop() {
				w.code.Add(1)
				w.runStep(ctx, c, "charge", done)
				<-done
			}
		})
	}
}
