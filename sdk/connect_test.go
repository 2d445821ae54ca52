package kagzi

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/transport"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestWorkersReconnectSoonAfterALongOutage(t *testing.T) {
	t.Run("of a server that accepts them", func(t *testing.T) {
		backAfterAnOutage(t, 12*time.Second, func(*kagziv1.RegisterRequest) error { return nil })
	})
	t.Run("of a server that refuses them at first", func(t *testing.T) {
		var mu sync.Mutex
		asked := map[string]int{}
		backAfterAnOutage(t, 12*time.Second+3*time.Second, func(r *kagziv1.RegisterRequest) error {
			mu.Lock()
			defer mu.Unlock()
			if asked[r.InstanceId]++; asked[r.InstanceId] <= 2 {
				return status.Error(codes.Unavailable, "so many")
			}
			return nil
		})
	})
}

// backAfterAnOutage lets gRPC look for the server about every 5 s, and spreads the workers over the
// 4 s of a third attempt. Refusals then have the same delays as without an outage before.
func backAfterAnOutage(t *testing.T, soon time.Duration, onHello func(*kagziv1.RegisterRequest) error) {
	const workers = 20 // one of them would almost certainly draw a long delay
	withFake(t, func(t *testing.T, f *fake) {
		f.away, f.onHello = true, onHello
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, workers)
		var all []*Worker
		for range workers {
			w := testWorker(f)
			Handle(w, "w", func(Context, struct{}) (int, error) { return 0, nil })
			all = append(all, w)
			go func() { ended <- w.Run(ctx) }()
		}
		if !transport.Sleep(t.Context(), time.Hour) {
			t.Fatal("the test ended")
		}
		f.mu.Lock()
		f.away = false
		f.mu.Unlock()
		returned := time.Now()
		var last time.Duration
		for _, w := range all {
			<-w.Ready()
			last = max(last, time.Since(returned))
		}
		if last > soon {
			t.Errorf("the last of %d workers was back %s after its server, want at most %s", workers, last, soon)
		}
		stop()
		for range workers {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// An attempt may fail just before the connection is up again.
func TestAConnectionReadyAfterAFailedAttemptIsNoRefusal(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake) {
		left := 20
		w := NewWorker(WorkerOptions{Address: "passthrough:///fake", Logger: slog.New(slog.DiscardHandler),
			HandleSignals: []os.Signal{}, DialOptions: append(f.dial(),
				grpc.WithStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, conn *grpc.ClientConn,
					method string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
					if left > 0 {
						left--
						transport.AwaitConnection(ctx, conn)
						return nil, errCut
					}
					return open(ctx, d, conn, method, o...)
				}))})
		Handle(w, "w", func(Context, struct{}) (int, error) { return 0, nil })
		began := time.Now()
		running(t, w)
		if took := time.Since(began); took > 20*4*time.Second {
			t.Errorf("20 attempts that never reached the server took %s, want at most 4 s for each", took)
		}
	})
}

func TestARefusingServerIsAskedLessAndLess(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake) {
		var asked atomic.Int64
		f.onHello = func(*kagziv1.RegisterRequest) error {
			asked.Add(1)
			return status.Error(codes.Unavailable, "no database")
		}
		w := testWorker(f)
		Handle(w, "w", func(Context, struct{}) (int, error) { return 0, nil })
		const hours = 10
		ctx, cancel := context.WithTimeout(t.Context(), hours*time.Hour)
		defer cancel()
		if err := w.Run(ctx); err != nil {
			t.Fatal(err)
		}
		// Delays of up to a minute take half a minute on average.
		if got := asked.Load(); got < hours*100 || got > hours*140 {
			t.Errorf("it was asked %d times in %d hours, want about %d", got, hours, hours*120)
		}
	})
}

func TestTheWelcomeSetsHeartbeatIntervalAndLease(t *testing.T) {
	for name, c := range map[string]struct {
		welcome         *kagziv1.RegisterResponse
		interval, lease time.Duration
	}{
		"to the millisecond": {
			&kagziv1.RegisterResponse{HeartbeatIntervalMs: 2500, HeartbeatIntervalSecs: 3, LeaseMs: 6500},
			2500 * time.Millisecond, 6500 * time.Millisecond},
		"by an older server, in seconds": {
			&kagziv1.RegisterResponse{HeartbeatIntervalSecs: 5}, 5 * time.Second, 30 * time.Second},
		"by an older server, which is slower": {
			&kagziv1.RegisterResponse{HeartbeatIntervalSecs: 20}, 20 * time.Second, 60 * time.Second},
		"not at all": {&kagziv1.RegisterResponse{}, 10 * time.Second, 30 * time.Second},
	} {
		w, hello := NewWorker(WorkerOptions{Logger: slog.New(slog.DiscardHandler)}), time.Now().Add(-time.Second)
		interval := w.welcomed(c.welcome, hello)
		w.lease.Stop()
		if lease := w.lease.Duration(); interval != c.interval || lease != c.lease {
			t.Errorf("%s: a heartbeat each %v and a lease of %v, want %v and %v", name, interval, lease,
				c.interval, c.lease)
		}
		if confirmed := w.lease.LastConfirmed(); !confirmed.Equal(hello) {
			t.Errorf("%s: the leases are measured from %v, want from when hello was said, %v", name, confirmed, hello)
		}
	}
}

func TestAWorkerReconnectsSoonAfterEachBrokenSession(t *testing.T) {
	withFake(t, func(t *testing.T, f *fake) {
		w := testWorker(f)
		Handle(w, "w", func(Context, struct{}) (int, error) { return 0, nil })
		running(t, w)
		for n := range 12 {
			f.cut()
			broke := time.Now()
			f.until(t, func() bool {
				return count(f.log, "hello worker-1") == n+1 && len(f.sessions) == 1 && f.sessions[0].credit > 0
			})
			if took := time.Since(broke); took > 2*time.Second {
				t.Fatalf("after break %d it was back in %v, want at most the second of a first attempt", n+1, took)
			}
		}
	})
}

func TestFinalRefusalsOfAHelloEndTheWorker(t *testing.T) {
	for code, ends := range map[kagziv1.ErrorCode]bool{
		kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE:         false,
		kagziv1.ErrorCode_ERROR_CODE_INTERNAL:            false,
		kagziv1.ErrorCode_ERROR_CODE_PRECONDITION_FAILED: false, // such as a disabled namespace
		kagziv1.ErrorCode_ERROR_CODE_INVALID_ARGUMENT:    true,
		kagziv1.ErrorCode_ERROR_CODE_UNAUTHORIZED:        true,
		kagziv1.ErrorCode_ERROR_CODE_CONFLICT:            true,
	} {
		var fatal fatalError
		if err := refusal(&kagziv1.ErrorDetail{Code: code, Message: "no"}); errors.As(err, &fatal) != ends {
			t.Errorf("%v ends the worker: %v, want %v", code, !ends, ends)
		}
	}
}
