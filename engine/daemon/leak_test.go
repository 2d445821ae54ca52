package daemon

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

var (
	cycles = flag.Int("daemon.cycles", 5, "how often TestServersLeaveNothingBehind starts and stops a server")
	waits  = flag.Int("daemon.waits", 1000, "how many waits TestCancelledWaitsLeaveNothingBehind gives up")
)

// openFiles returns the number of open file descriptors; 0 if unknown.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// slackFiles is the allowed difference of two counts: the runtime opens some files on first use.
const slackFiles = 5

func TestServersLeaveNothingBehind(t *testing.T) {
	c := testConfig(t)
	once := func() {
		t.Helper()
		s := serve(t, c, embedded(nil))
		if err := healthOf(t, s.Address); err != nil {
			t.Fatal(err)
		}
		s.stop()
		if err := <-s.done; err != nil {
			t.Fatal(err)
		}
	}
	once() // the first time may open things that stay open
	before, ignored := openFiles(), goleak.IgnoreCurrent()
	for range *cycles {
		once()
	}
	if err := goleak.Find(ignored); err != nil {
		t.Errorf("after %d servers: %v", *cycles, err)
	}
	if after := openFiles(); after > before+slackFiles {
		t.Errorf("after %d servers %d files are open, want %d", *cycles, after, before)
	}
}

func TestCancelledWaitsLeaveNothingBehind(t *testing.T) {
	s := serve(t, testConfig(t), embedded(nil))
	conn, err := grpc.NewClient(s.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := kagziv1.NewWorkflowServiceClient(conn)
	started, err := client.StartWorkflow(t.Context(),
		&kagziv1.StartWorkflowRequest{WorkflowType: "nobodys", TaskQueue: "default"})
	if err != nil {
		t.Fatal(err)
	}
	// A wait is known to be running once it has returned something: the run's state, or that
	// another run, requested after it, does not exist.
	giveUp := func(n int) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if n%2 == 0 {
			stream, err := client.WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{RunId: started.RunId})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		}
		stream, err := client.AwaitWorkflows(ctx)
		if err != nil {
			return err
		}
		err = stream.Send(&kagziv1.AwaitWorkflowsRequest{Waits: []*kagziv1.AwaitWorkflowsRequest_Wait{
			{Seq: 1, RunId: started.RunId}, {Seq: 2, RunId: engine.NewID(time.Now()).String()},
		}})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	some := func(n int) {
		t.Helper()
		const callers = 50
		var group sync.WaitGroup
		failures := make(chan error, callers)
		for caller := range callers {
			group.Go(func() {
				for i := caller; i < n; i += callers {
					if err := giveUp(i); err != nil {
						failures <- fmt.Errorf("wait %d: %w", i, err)
						return
					}
				}
			})
		}
		group.Wait()
		close(failures)
		for err := range failures {
			t.Fatal(err)
		}
	}
	some(100) // the first time may open things that stay open
	before, ignored := openFiles(), goleak.IgnoreCurrent()
	some(*waits)
	if err := goleak.Find(ignored); err != nil {
		t.Errorf("after %d waits: %v", *waits, err)
	}
	if after := openFiles(); after > before+slackFiles {
		t.Errorf("after %d waits %d files are open, want %d", *waits, after, before)
	}
}
