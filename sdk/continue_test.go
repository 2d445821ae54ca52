package kagzi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestContinueAsNew(t *testing.T) {
	t.Run("the next run keeps the external id and has the result", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "count", func(ctx Context, n int) (string, error) {
				_, _ = Step(ctx, "tick", constant(n))
				if n < 3 {
					out, err := ContinueAsNew[string](ctx, n+1)
					return out, fmt.Errorf("wrapped: %w", err)
				}
				return fmt.Sprint("counted to ", n), nil
			})
			running(t, w)
			run, err := Start(t.Context(), testClient(t, f), "count", 1, StartOptions{ExternalID: "counter"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := Result[string](t.Context(), run)
			if err != nil || got != "counted to 3" {
				t.Fatalf("Result = %q, %v", got, err)
			}
			first, err := run.Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			equal(t, []string{string(first.Status), first.ContinuedAsRunID}, []string{"COMPLETED", "run-2"})
			last, err := run.Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			equal(t, []string{last.RunID, last.ExternalID, last.ContinuedFromRunID, last.Queue},
				[]string{"run-3", "counter", "run-2", "default"})
		})
	})

	t.Run("out of a branch it counts when the workflow returns it", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, n int) (int, error) {
				return Go(ctx, func(ctx Context) (int, error) {
					if n == 0 {
						return ContinueAsNew[int](ctx, 7)
					}
					return n, nil
				}).Wait(ctx)
			})
			running(t, w)
			f.start("r", "w", "0")
			equal(t, f.await(t, "r").GetContinuedAsRunId(), "run-2")
			equal(t, string(f.await(t, "run-2").Output.GetData()), "7")
		})
	})

	t.Run("in a step it fails the step for good", func(t *testing.T) {
		d := failure(t, func(ctx Context, _ struct{}) (int, error) {
			return Step(ctx, "s", func(context.Context) (int, error) { return ContinueAsNew[int](ctx, struct{}{}) })
		})
		equal(t, []string{d.GetType(), d.GetMessage()},
			[]string{"continue_as_new",
				"step s: kagzi: ContinueAsNew: its error has to be returned by the workflow function"})
		equal(t, d.GetNonRetryable(), true)
	})

	t.Run("swallowed it does nothing but a warning", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			var log bytes.Buffer
			w := testWorker(f)
			w.log = slog.New(slog.NewTextHandler(&log, nil))
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, _ = ContinueAsNew[int](ctx, 7)
				return 1, nil
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), "1")
			equal(t, len(f.order), 1)
			equal(t, strings.Count(log.String(), "ContinueAsNew ignored"), 1)
		})
	})

	t.Run("an input that JSON cannot carry fails the run and says so", func(t *testing.T) {
		d := failure(t, func(ctx Context, _ struct{}) (int, error) { return ContinueAsNew[int](ctx, make(chan int)) })
		equal(t, d.GetMessage(), "input of the next run: json: unsupported type: chan int")
	})
}

func TestNotes(t *testing.T) {
	t.Run("the last of many notes counts, at most four a second", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				began := time.Now()
				for n := range 1000 {
					Note(ctx, fmt.Sprint("item ", n))
				}
				if took := time.Since(began); took > 0 {
					t.Errorf("waited %v", took)
				}
				_, _ = Step(ctx, "s", func(ctx context.Context) (int, error) { return 0, wait(ctx, time.Second) })
				Note(ctx, "nearly")
				Note(ctx, "done "+strings.Repeat("x", 300))
				return 1, nil
			})
			running(t, w)
			f.start("r", "w", "")
			r := f.await(t, "r")
			equal(t, len(r.Note), 255)
			notes := slices.DeleteFunc(f.operations(), func(s string) bool { return !strings.HasPrefix(s, "note ") })
			equal(t, notes, []string{"note item 0", "note item 999", "note nearly", "note " + r.Note})
		})
	})

	t.Run("a note is sent before a sleep, and again on a new stream", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			broken := false
			f.mute = func(r *kagziv1.SessionRequest) bool {
				if n := r.GetSetNote(); n != nil && n.GetNote() == "b" && !broken {
					broken = true
					return true
				}
				return false
			}
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				Note(ctx, "a")
				Note(ctx, "b")
				Sleep(ctx, "s", time.Hour)
				return 1, nil
			})
			running(t, w)
			f.start("r", "w", "")
			f.awaitParked(t, "r")
			equal(t, count(f.operations(), "note b"), 2)
			f.await(t, "r")
		})
	})
}

func TestFailureHandlers(t *testing.T) {
	t.Run("get the event and the input, through a codec",
		func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				codec := &base64Codec{seen: map[PayloadInfo]int{}}
				w := testWorker(f)
				w.options.Codec = codec
				seen := make(chan string, 1)
				Handle(w, GlobalFailureHandler, func(ctx Context, event WorkflowFailedEvent) (int, error) {
					in, err := OriginalInput[map[string]int](ctx, event)
					seen <- fmt.Sprintln(Info(ctx).FailedRunID, event.FailedRunID, event.Status, event.Error,
						event.Error.Code, event.Attempts,
						event.StartedAt.IsZero(), event.FailedAt.UTC().Format(time.DateOnly), in["total"], err)
					return 1, nil
				})
				running(t, w)
				failed, _ := codec.Encode(Payload{Data: []byte(`{"total":7}`), Metadata: map[string]string{}},
					PayloadInfo{})
				event, err := json.Marshal(WorkflowFailedEvent{
					FailedRunID: "f", Status: StatusTimedOut, Attempts: 2, Input: failed,
					Error: &RunError{Message: "too late", Code: CodeTimeout}, FailedAt: time.Now()})
				if err != nil {
					t.Fatal(err)
				}
				f.mu.Lock()
				handler := f.add("h", &kagziv1.StartWorkflowRequest{
					WorkflowType: GlobalFailureHandler, Input: &kagziv1.Payload{Data: event, Metadata: jsonMetadata}})
				of := "f"
				handler.FailedRunId = &of
				f.pump()
				f.mu.Unlock()
				f.await(t, "h")
				equal(t, <-seen, "f f TIMED_OUT run f timed out: too late TIMEOUT 2 true 2000-01-01 7 <nil>\n")
			})
		})

	t.Run("read the event as the server writes it", func(t *testing.T) {
		var event WorkflowFailedEvent
		err := json.Unmarshal(
			[]byte(
				`{"event":"kagzi/workflow.failed","failed_run_id":"f","namespace_id":"default","workflow_type":"order","task_queue":"q",
			"status":"FAILED","error":{"code":"ERROR_CODE_CRASHED","message":"m","type":"t","retry_after_ms":"5","later_field":1},"original_input":"eyJhIjoxfQ==",
			"original_input_metadata":{"content-type":"application/json"},"attempts":3,"failed_at":"2026-11-20T12:00:00.5Z","started_at":"2026-11-20T11:00:00Z"}`), &event)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, event, WorkflowFailedEvent{FailedRunID: "f", Namespace: "default", WorkflowType: "order", Queue: "q",
			Status: StatusFailed, Attempts: 3,
			Error:     &RunError{RunID: "f", Status: StatusFailed, Type: "t", Message: "m", Code: CodeCrashed},
			StartedAt: time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC),
			FailedAt:  time.Date(2026, 11, 20, 12, 0, 0, 5e8, time.UTC),
			Input: Payload{Data: []byte(`{"a":1}`),
				Metadata: map[string]string{"content-type": "application/json"}}})
		if err := json.Unmarshal([]byte(`{"failed_at":"yesterday"}`), &event); err == nil {
			t.Fatal("a malformed event was read")
		}
	})

	t.Run("are told when the input did not fit", func(t *testing.T) {
		d := failure(t, func(ctx Context, _ struct{}) (int, error) {
			_, err := OriginalInput[int](ctx, WorkflowFailedEvent{FailedRunID: "f", InputOmitted: true})
			if !errors.Is(err, ErrInputOmitted) {
				t.Errorf("err = %v", err)
			}
			return 0, err
		})
		equal(t, strings.HasPrefix(d.GetMessage(), "run f: "), true)
	})
}
