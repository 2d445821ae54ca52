package kagzi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/transport"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
)

func TestInvalidLimitsAreNamed(t *testing.T) {
	for want, o := range map[string]WorkerOptions{
		"MaxConcurrent is -1, want at least 1, or 0 for the default": {MaxConcurrent: -1},
		"QueueLimit is -3, want at least 1, or 0 for no limit":       {QueueLimit: -3},
		`TypeLimits names "shp", which is no workflow type of this worker; it has bill, ship`: {
			TypeLimits: map[string]int{"ship": 3, "shp": 2}},
		`TypeLimits["ship"] is 0, want at least 1; a type that is left out has no limit`: {
			TypeLimits: map[string]int{"ship": 0}},
	} {
		o.Profile, o.HandleSignals = NoProfile, []os.Signal{}
		w := NewWorker(o)
		for _, name := range []string{"ship", "bill"} {
			Handle(w, name, func(Context, int) (int, error) { return 0, nil })
		}
		if err := w.Run(t.Context()); err == nil || err.Error() != "kagzi: WorkerOptions: "+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestOptionsThatCannotBeSentAreNamed(t *testing.T) {
	for want, o := range map[string]WorkerOptions{
		`Namespace is "\xff", want UTF-8`:             {Namespace: "\xff"},
		`Queue is "q\xff", want UTF-8`:                {Queue: "q\xff"},
		`Queues[1] is "\xff", want UTF-8`:             {Queues: []string{"q", "\xff"}},
		`WorkerID is "\xff", want UTF-8`:              {WorkerID: "\xff"},
		`Version is "v\xff1", want UTF-8`:             {Version: "v\xff1"},
		`Labels has "\xff": "v", want UTF-8`:          {Labels: map[string]string{"a": "b", "\xff": "v"}},
		`Capabilities has "tool": "\xff", want UTF-8`: {Capabilities: map[string]string{"tool": "\xff"}},
	} {
		withFake(t, func(t *testing.T, f *fake) {
			o.Profile, o.HandleSignals, o.Logger = NoProfile, []os.Signal{}, slog.New(slog.DiscardHandler)
			o.Address, o.DialOptions = "passthrough:///fake", f.dial()
			w := NewWorker(o)
			Handle(w, "ship", func(Context, int) (int, error) { return 0, nil })
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			if err := w.Run(ctx); err == nil || err.Error() != "kagzi: WorkerOptions: "+want || ctx.Err() != nil {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

func TestAWorkerCopiesItsOptions(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake) {
		o := WorkerOptions{Profile: NoProfile, Address: "passthrough:///fake", DialOptions: f.dial(),
			Logger: slog.New(slog.DiscardHandler),
			Queues: []string{"low"}, TypeLimits: map[string]int{"ship": 1}, HandleSignals: []os.Signal{}}
		o.Labels, o.Capabilities = map[string]string{"shard": "1"}, map[string]string{"gpu": "a"}
		w := NewWorker(o)
		// meant for the next worker
		o.Queues[0], o.TypeLimits["ship"], o.Labels["shard"], o.Capabilities["gpu"] = "high", 2, "2", "b"
		Handle(w, "ship", func(Context, int) (int, error) { return 0, nil })
		running(t, w)
		f.mu.Lock()
		defer f.mu.Unlock()
		hello := f.sessions[0].hello
		equal(t, fmt.Sprint(hello.GetTaskQueues(), hello.GetLabels(), hello.GetCapabilities(),
			hello.GetWorkflowTypeConcurrency()[0].GetMaxConcurrent()),
			"[low] map[shard:1] map[gpu:a sdk:go:"+sdkVersion()+"] 1")
	})
}

func TestAllOptionsOfAWorkerReachTheServer(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake) {
		w := NewWorker(WorkerOptions{Profile: NoProfile, Address: "passthrough:///fake", DialOptions: f.dial(),
			Logger:        slog.New(slog.DiscardHandler),
			HandleSignals: []os.Signal{}, Namespace: "shop", Queue: "high", Queues: []string{"low", "lower"},
			MaxConcurrent: 7, Cache: 9,
			TypeLimits: map[string]int{"ship": 1, "bill": 2}, QueueLimit: 5, WorkerID: "w-1", Version: "2.4.1",
			Labels: map[string]string{"shard": "1"}, Capabilities: map[string]string{"tool:jq": "1.7"}})
		for _, workflowType := range []string{"ship", "bill"} {
			Handle(w, workflowType, func(Context, int) (int, error) { return 0, nil })
		}
		running(t, w)
		f.mu.Lock()
		defer f.mu.Unlock()
		want := &kagziv1.RegisterRequest{Namespace: "shop", TaskQueue: "high", TaskQueues: []string{"low", "lower"},
			MaxConcurrent: 7, PausesRuns: true, KeepsRuns: 9,
			WorkflowTypes: []string{"bill", "ship"}, QueueConcurrencyLimit: new(int32(5)), WorkerId: "w-1",
			Version: "2.4.1",
			WorkflowTypeConcurrency: []*kagziv1.WorkflowTypeConcurrency{
				{WorkflowType: "bill", MaxConcurrent: 2}, {WorkflowType: "ship", MaxConcurrent: 1}},
			Labels:       map[string]string{"shard": "1"},
			Capabilities: map[string]string{"tool:jq": "1.7", "sdk:go": sdkVersion()},
			Pid:          int32(os.Getpid())}
		if diff := cmp.Diff(want, f.sessions[0].hello, protocmp.Transform(),
			protocmp.IgnoreFields(want, "hostname", "platform", "instance_id", "build_id")); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

// latin1 is a codec that gives the step named late invalid UTF-8 as metadata.
type latin1 struct{}

func (latin1) Encode(p Payload, info PayloadInfo) (Payload, error) {
	if info.Step == "late" {
		p.Metadata["of"] = "caf\xc3"
	}
	return p, nil
}

func (latin1) Decode(p Payload, _ PayloadInfo) (Payload, error) { return p, nil }

// refusedStream is a stream that the server has ended before the first send.
type refusedStream struct{ grpc.ClientStream }

func (refusedStream) SendMsg(any) error { return io.EOF }
func (refusedStream) RecvMsg(any) error { return status.Error(codes.PermissionDenied, "not you") }

// slowLine is a connection that takes a second for every 256 KiB sent.
type slowLine struct{ net.Conn }

func (l slowLine) Write(data []byte) (int, error) {
	time.Sleep(time.Duration(len(data)) * time.Second / (256 << 10))
	return l.Conn.Write(data)
}

func TestSession(t *testing.T) {
	t.Run("an operation without an answer is repeated, counted once", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			cuts := 0
			f.mute = func(r *kagziv1.SessionRequest) bool {
				if r.GetCompleteStep() != nil && cuts < 3 {
					cuts++
					return true
				}
				return false
			}
			ran := map[string]int{}
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				for _, name := range []string{"a", "b", "c"} {
					if _, err := Step(ctx, name, func(context.Context) (int, error) {
						ran[name]++
						return 1, nil
					}); err != nil {
						return 0, err
					}
				}
				return 3, nil
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), "3")
			equal(t, ran, map[string]int{"a": 1, "b": 1, "c": 1})
			equal(t, f.operations(), []string{"hello ", "claim r", "complete a", "hello worker-1", "hello worker-1",
				"hello worker-1",
				"complete b", "complete c", "end r"})
			f.until(t, func() bool { return slices.Contains(f.log, "heartbeat held=1 of=0") })
		})
	})

	t.Run("a worker returns with its runs after an outage", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			away, tries := false, 0
			f.onHello = func(r *kagziv1.RegisterRequest) error {
				f.mu.Lock()
				defer f.mu.Unlock()
				if away {
					tries++
					return status.Error(codes.Unavailable, "starting")
				}
				return nil
			}
			w := testWorker(f)
			done := make(chan struct{})
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				return Step(ctx, "s", func(ctx context.Context) (int, error) {
					f.mu.Lock()
					away = true
					f.mu.Unlock()
					f.cut()
					time.AfterFunc(50*time.Second, func() { f.mu.Lock(); away = false; f.mu.Unlock() })
					close(done)
					return 5, nil
				})
			})
			running(t, w)
			f.start("r", "w", "")
			<-done
			equal(t, string(f.await(t, "r").Output.GetData()), "5")
			if tries < 3 || tries > 40 {
				t.Fatalf("%d attempts in 50 s", tries)
			}
		})
	})

	t.Run("refused operations keep their order", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			refused := map[string]int{}
			f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
				kind := fmt.Sprintf("%T", r.Operation)
				if (r.GetCompleteStep() != nil || r.GetCompleteWorkflow() != nil) && refused[kind] < 3 {
					refused[kind]++
					return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_INTERNAL}
				}
				return nil
			}
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) { return Step(ctx, "s", constant(1)) })
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			equal(t, f.operations(), []string{"hello ", "claim r", "complete s", "end r"})
		})
	})

	t.Run("a refused heartbeat makes the worker register again",
		func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				forgotten := false
				f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
					if r.GetHeartbeat() != nil && !r.GetHeartbeat().GetHeldIsWhole() {
						t.Error(
							"a heartbeat does not say that it names all that is held: what it leaves out is not freed")
					}
					if r.GetHeartbeat() != nil && len(r.GetHeartbeat().GetHeld()) == 1 && !forgotten {
						forgotten = true
						return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND}
					}
					return nil
				}
				w, began, _ := oneLongStep(f)
				running(t, w)
				f.start("r", "w", "")
				<-began
				f.until(t, func() bool { return slices.Contains(f.log, "heartbeat held=1 of=0") })
				equal(t, f.operations()[:4], []string{"hello ", "claim r", "begin long", "hello worker-1"})
				f.take("r", true)
			})
		})

	t.Run("heartbeats overtake results on a slow connection", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			heard, longest := time.Now(), time.Duration(0)
			f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
				if r.GetHeartbeat() != nil {
					heard, longest = time.Now(), max(longest, time.Since(heard))
				}
				return nil
			}
			w := testWorker(f)
			w.options.DialOptions = append(w.options.DialOptions,
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
					conn, err := f.listener.DialContext(ctx)
					return slowLine{conn}, err
				}))
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				_, err := Step(ctx, "s", constant(strings.Repeat("x", 256<<10)))
				return 0, err
			})
			running(t, w)
			for i := range 60 {
				f.start(fmt.Sprint(i), "w", "")
			}
			for i := range 60 {
				f.await(t, fmt.Sprint(i))
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if longest = max(longest, time.Since(heard)); longest >= f.lease {
				t.Errorf("the server heard nothing for %v, want less than the lease of %v", longest, f.lease)
			}
		})
	})

	t.Run("a task of an unknown type is released", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(Context, struct{}) (int, error) { return 0, nil })
			running(t, w)
			f.mu.Lock()
			r := &fakeRun{}
			r.RunId, r.WorkflowType, r.Status = "r", "other", kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING
			f.runs["r"] = r
			f.mu.Unlock()
			f.until(t, func() bool { return f.sessions[0].credit > 0 })
			f.mu.Lock()
			f.claim(f.sessions[0], r)
			f.mu.Unlock()
			f.until(t, func() bool {
				return slices.Contains(f.log, "release park=false") && f.sessions[0].credit == 100
			})
		})
	})

	t.Run("MaxConcurrent limits the runs, and each end frees a slot", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			w.options.MaxConcurrent = 2
			now, most := 0, 0
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				return Step(ctx, "s", func(ctx context.Context) (int, error) {
					f.mu.Lock()
					now++
					most = max(most, now)
					f.mu.Unlock()
					err := wait(ctx, time.Second)
					f.mu.Lock()
					now--
					f.mu.Unlock()
					return 0, err
				})
			})
			running(t, w)
			for i := range 7 {
				f.start(fmt.Sprint(i), "w", "")
			}
			for i := range 7 {
				f.await(t, fmt.Sprint(i))
			}
			equal(t, most, 2)
		})
	})

	for code, name := range map[codes.Code]string{codes.InvalidArgument: "malformed", codes.AlreadyExists: "taken",
		codes.Unauthenticated: "unauthenticated", codes.PermissionDenied: "denied", codes.Unimplemented: "old"} {
		t.Run("a permanent refusal ends Run: "+name, func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				f.onHello = func(*kagziv1.RegisterRequest) error { return status.Error(code, "because "+name) }
				w := testWorker(f)
				Handle(w, "w", func(Context, struct{}) (int, error) { return 0, nil })
				err := w.Run(t.Context())
				var refusal *Error
				if !errors.As(err, &refusal) || status.Code(refusal) != code ||
					!strings.Contains(err.Error(), "because "+name) {
					t.Fatalf("Run = %v", err)
				}
			})
		})
	}

	t.Run("a refusal that comes before hello could be sent is heard", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			w.options.DialOptions = append(w.options.DialOptions, grpc.WithStreamInterceptor(
				func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, grpc.Streamer,
					...grpc.CallOption) (grpc.ClientStream, error) {
					return refusedStream{}, nil
				}))
			square(w)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var refusal *Error
			if err := w.Run(ctx); !errors.As(err, &refusal) || status.Code(refusal) != codes.PermissionDenied {
				t.Fatalf("Run = %v", err)
			}
		})
	})

	t.Run("a taken worker id is explained, with how to free it", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			f.onHello = func(*kagziv1.RegisterRequest) error { return status.Error(codes.AlreadyExists, "it is taken") }
			for id, want := range map[string]string{
				"box-1": "kagzi: the server refused the worker (another worker has its id; the id of a killed worker is free once it counts as lost, or after " +
					"`kagzi worker offline box-1`): CONFLICT: it is taken",
				"": "kagzi: the server refused the worker: CONFLICT: it is taken",
			} {
				w := testWorker(f)
				w.options.WorkerID = id
				square(w)
				equal(t, fmt.Sprint(w.Run(t.Context())), want)
			}
		})
	})

	for _, code := range []codes.Code{codes.AlreadyExists, codes.NotFound} {
		t.Run("an id chosen by the server and now refused is replaced: "+code.String(),
			func(t *testing.T) {
				withFake(t, func(t *testing.T, f *fake) {
					f.onHello = func(r *kagziv1.RegisterRequest) error {
						if r.GetWorkerId() != "" {
							return status.Error(code, "not yours")
						}
						return nil
					}
					w := testWorker(f)
					square(w)
					running(t, w)
					f.cut()
					f.start("r", "square", "3")
					f.await(t, "r")
					equal(t, f.operations()[:3], []string{"hello ", "hello ", "claim r"})
				})
			})
	}

	t.Run("an unsendable operation is refused alone", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			square(w)
			for name, tag := range map[string]string{
				"broken": "caf\xc3", "huge": strings.Repeat("x", transport.MaxRequest)} {
				Handle(w, name, func(ctx Context, _ struct{}) (int, error) {
					_, err := StartChild[int](ctx, "c", "square", 0, ChildOptions{Tags: map[string]string{"of": tag}})
					Sleep(ctx, "s", time.Hour)
					return 0, err
				})
			}
			w.options.Codec = latin1{}
			Handle(w, "late", func(ctx Context, _ struct{}) (int, error) {
				return Step(ctx, "late", func(context.Context) (int, error) { time.Sleep(time.Minute); return 0, nil })
			})
			running(t, w)
			for _, name := range []string{"broken", "huge", "late"} {
				f.start(name, name, "")
			}
			f.start("r", "square", "3")
			equal(t, string(f.await(t, "r").Output.GetData()), "9")
			const broken = "the call cannot be sent: string field contains invalid UTF-8; names, ids and texts must be UTF-8"
			for name, want := range map[string]string{
				"broken": `start of workflow type square: option Tags has "of": "caf\xc3", want UTF-8`,
				"huge":   "larger than a server accepts",
				"late":   "the server refused to record the result of step late: " + broken,
			} {
				if got := f.await(t, name).Error.GetMessage(); !strings.Contains(got, want) {
					t.Errorf("%s failed with %q, want %q in it", name, got, want)
				}
			}
		})
	})

	t.Run("a worker without workflows refuses to run", func(t *testing.T) {
		equal(t, errors.Is(NewWorker(WorkerOptions{}).Run(t.Context()), ErrNoHandlers), true)
	})
}
