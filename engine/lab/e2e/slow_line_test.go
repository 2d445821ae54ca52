package e2e

import (
	"context"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine/server"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// slowLine is a connection on which 32 KiB take a second to arrive.
type slowLine struct{ net.Conn }

func (l slowLine) Read(data []byte) (int, error) {
	n, err := l.Conn.Read(data[:min(len(data), 4<<10)])
	time.Sleep(time.Duration(n) * time.Second / (32 << 10))
	return n, err
}

// A worker is given all its tasks at once. Here they take longer to arrive than a run may stay
// unnamed in heartbeats, and longer than the worker trusts unconfirmed leases.
func TestAWorkerOnASlowLineHasEachRunOnce(t *testing.T) {
	for _, test := range []struct {
		name string
		runs int
		size int // input bytes of each
	}{
		{"many tasks", 90, 40 << 10},
		{"few large tasks", 6, 640 << 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			aWorkerOnASlowLine(t, slices.Repeat([]string{strings.Repeat("x", test.size)}, test.runs))
		})
	}
}

func aWorkerOnASlowLine(t *testing.T, inputs []string) {
	synctest.Test(t, func(t *testing.T) {
		db := memory.New(memory.Options{})
		store := db.Open(func(_ context.Context, c *memory.Call) error {
			db.Commit(c)
			c.Ticket.Admit()
			return c.Err
		})
		pipe := bufconn.Listen(64 << 10)
		New(t, store, Options{Pipe: pipe, Server: server.Options{
			HeartbeatInterval: 10 * time.Second, WorkerLease: 30 * time.Second}})
		fast := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return pipe.DialContext(ctx)
		})
		slow := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := pipe.DialContext(ctx)
			return slowLine{conn}, err
		})
		client, err := kagzi.NewClient(kagzi.ClientOptions{
			Profile: kagzi.NoProfile, Address: "passthrough:///pipe", Logger: quiet,
			DialOptions: []grpc.DialOption{fast}})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		runs, err := kagzi.StartMany(t.Context(), client, "w", inputs, kagzi.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}

		w := kagzi.NewWorker(kagzi.WorkerOptions{
			Profile: kagzi.NoProfile, Address: "passthrough:///pipe", Logger: quiet, HandleSignals: []os.Signal{},
			DialOptions: []grpc.DialOption{slow, grpc.WithStaticStreamWindowSize(64 << 10)}})
		var stays, steps atomic.Int32
		kagzi.Handle(w, "w", func(ctx kagzi.Context, _ string) (int, error) {
			stays.Add(1)
			return kagzi.Step(ctx, "s", func(context.Context) (int, error) {
				steps.Add(1)
				time.Sleep(20 * time.Second)
				return 1, nil
			})
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		limit, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		for _, run := range runs {
			if _, err := kagzi.Result[int](limit, run); err != nil {
				t.Errorf("run %s: %v", run.ID(), err)
				break
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := int32(len(runs)); stays.Load() != n || steps.Load() != n {
			t.Errorf("the code of %d runs began %d times, and their steps %d times", n, stays.Load(), steps.Load())
		}
	})
}
