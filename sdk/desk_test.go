package kagzi

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/transport"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// desk is a server that starts runs and answers waits as its test says, and records the calls.
type desk struct {
	kagziv1.UnimplementedWorkflowServiceServer
	listener *bufconn.Listener

	mu     sync.Mutex
	calls  []string
	starts map[string]int // by request id
	traces map[string]string
	sent   map[string]*kagziv1.StartWorkflowRequest // the latest, by input
	conns  []net.Conn
	away   bool // connections fail

	held    chan struct{}                        // each start call takes a value first; nil means no wait
	inCall  func(ctx context.Context, runs int)  // called for each call that starts runs
	answer  func(call int) error                 // called after such a call was carried out
	ended   func(runID string) *kagziv1.Workflow // returns the ended run; nil if it is open
	changed chan struct{}                        // closed when ended may return another value
	noBatch bool                                 // an older server, without StartWorkflows and AwaitWorkflows
	refuse  func() error                         // error of streams
	ill     error                                // error of single waits
	open    map[*deskStream]map[uint64]*deskWait // open streams
}

type deskStream struct{ end context.CancelCauseFunc }

type deskWait struct {
	runID string
	whole bool
}

func withDesk(t *testing.T, test func(t *testing.T, d *desk, c *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{listener: bufconn.Listen(1 << 20), starts: map[string]int{}, traces: map[string]string{},
			sent: map[string]*kagziv1.StartWorkflowRequest{}, open: map[*deskStream]map[uint64]*deskWait{},
			changed: make(chan struct{})}
		d.ended = func(string) *kagziv1.Workflow { return nil }
		server := grpc.NewServer(grpc.MaxRecvMsgSize(transport.MaxMessage),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
				MinTime: time.Second, PermitWithoutStream: true}))
		kagziv1.RegisterWorkflowServiceServer(server, d)
		go func() { _ = server.Serve(d.listener) }()
		c, err := NewClient(ClientOptions{Profile: NoProfile, Address: "passthrough:///desk",
			Logger: slog.New(slog.DiscardHandler), DialOptions: []grpc.DialOption{
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
					d.mu.Lock()
					defer d.mu.Unlock()
					if d.away {
						return nil, errCut
					}
					conn, err := d.listener.DialContext(ctx)
					d.conns = append(d.conns, conn)
					return conn, err
				})}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = c.Close()
			server.Stop()
		})
		test(t, d, c)
	})
}

// took returns the calls since it was last called.
func (d *desk) took() []string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	calls := d.calls
	d.calls = nil
	return calls
}

func (d *desk) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, fmt.Sprintf(format, args...))
}

// cut breaks all connections.
func (d *desk) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.conns {
		_ = conn.Close()
	}
}

// leave makes connections fail, or work again.
func (d *desk) leave(away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = away
}

func (d *desk) startOne(r *kagziv1.StartWorkflowRequest, trace string) (*kagziv1.StartWorkflowResponse, error) {
	if r.GetExternalId() == "taken" {
		st, _ := status.New(codes.FailedPrecondition, "is taken").WithDetails(&kagziv1.ErrorDetail{
			Code: kagziv1.ErrorCode_ERROR_CODE_CONFLICT, Message: "is taken", Subject: "run", SubjectId: "r",
			Metadata: map[string]string{"status": "RUNNING"}})
		return nil, st.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.starts[r.GetRequestId()]++
	d.traces[string(r.GetInput().GetData())] = trace
	d.sent[string(r.GetInput().GetData())] = r
	return &kagziv1.StartWorkflowResponse{RunId: "run-" + string(r.GetInput().GetData())}, nil
}

// carried ends a start call.
func (d *desk) carried(ctx context.Context, call string, runs int) error {
	d.note("%s", call)
	if d.inCall != nil {
		d.inCall(ctx, runs)
	}
	if d.held != nil {
		select {
		case <-d.held:
		case <-ctx.Done():
			d.note("given up")
			return ctx.Err()
		}
	}
	if d.answer == nil {
		return nil
	}
	d.mu.Lock()
	n := len(d.calls)
	d.mu.Unlock()
	return d.answer(n)
}

func traceOf(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	return strings.Join(md.Get(traceparent), ",")
}

func (d *desk) StartWorkflow(ctx context.Context,
	r *kagziv1.StartWorkflowRequest) (*kagziv1.StartWorkflowResponse, error) {
	started, refused := d.startOne(r, traceOf(ctx))
	if err := d.carried(ctx, "one", 1); err != nil {
		return nil, err
	}
	return started, refused
}

func (d *desk) StartWorkflows(ctx context.Context,
	r *kagziv1.StartWorkflowsRequest) (*kagziv1.StartWorkflowsResponse, error) {
	if d.noBatch {
		d.note("unknown")
		return d.UnimplementedWorkflowServiceServer.StartWorkflows(ctx, r)
	}
	response := &kagziv1.StartWorkflowsResponse{}
	for _, one := range r.Requests {
		started, err := d.startOne(one, one.GetTraceparent())
		result := &kagziv1.StartWorkflowsResponse_Result{Started: started}
		if st := status.Convert(err); err != nil {
			result.Error, result.StatusCode = st.Details()[0].(*kagziv1.ErrorDetail), int32(st.Code())
		}
		response.Results = append(response.Results, result)
	}
	return response, d.carried(ctx, fmt.Sprint("batch of ", len(r.Requests)), len(r.Requests))
}

func (d *desk) WaitWorkflow(_ context.Context, r *kagziv1.WaitWorkflowRequest) (*kagziv1.WaitWorkflowResponse, error) {
	d.note("wait %s", r.GetRunId())
	d.mu.Lock()
	ill := d.ill
	d.mu.Unlock()
	if ill != nil {
		return nil, ill
	}
	w := d.ended(r.GetRunId())
	if w == nil {
		st, _ := status.New(codes.NotFound, "no such run").WithDetails(
			&kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND, Message: "no such run", Subject: "run"})
		return nil, st.Err()
	}
	return &kagziv1.WaitWorkflowResponse{Workflow: w, Finished: true}, nil
}

func (d *desk) AwaitWorkflows(stream grpc.BidiStreamingServer[kagziv1.AwaitWorkflowsRequest,
	kagziv1.AwaitWorkflowsResponse]) error {
	if d.noBatch {
		d.note("unknown")
		return d.UnimplementedWorkflowServiceServer.AwaitWorkflows(stream)
	}
	if d.refuse != nil {
		d.note("refused")
		return d.refuse()
	}
	ctx, end := context.WithCancelCause(stream.Context())
	s, waits := &deskStream{end: end}, map[uint64]*deskWait{}
	d.mu.Lock()
	d.open[s] = waits
	d.mu.Unlock()
	d.note("stream")
	go func() {
		for {
			r, err := stream.Recv()
			if err != nil {
				end(err)
				return
			}
			d.mu.Lock()
			for _, w := range r.Waits {
				waits[w.Seq] = &deskWait{w.RunId, w.Whole}
			}
			for _, seq := range r.Forget {
				delete(waits, seq)
			}
			d.calls = append(d.calls, fmt.Sprintf("waits %d forget %d", len(r.Waits), len(r.Forget)))
			d.mu.Unlock()
			d.tell()
		}
	}()
	for {
		d.mu.Lock()
		changed, m := d.changed, &kagziv1.AwaitWorkflowsResponse{}
		for seq, w := range waits {
			if one := d.endOf(seq, w); one != nil {
				m.Ended = append(m.Ended, one)
				delete(waits, seq)
			}
		}
		d.mu.Unlock()
		if len(m.Ended) > 0 {
			slices.SortFunc(m.Ended, func(a, b *kagziv1.AwaitWorkflowsResponse_Ended) int {
				return int(a.Seq) - int(b.Seq)
			})
			if err := stream.Send(m); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if err := context.Cause(ctx); err != io.EOF {
				return err
			}
			d.note("closed")
			return nil
		}
	}
}

func (d *desk) endOf(seq uint64, w *deskWait) *kagziv1.AwaitWorkflowsResponse_Ended {
	if w.runID == "missing" {
		return &kagziv1.AwaitWorkflowsResponse_Ended{Seq: seq, StatusCode: int32(codes.NotFound),
			Refusal: &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_NOT_FOUND, Message: "no such run",
				Subject: "run"}}
	}
	run := d.ended(w.runID)
	switch {
	case run == nil:
		return nil
	case w.whole:
		return &kagziv1.AwaitWorkflowsResponse_Ended{Seq: seq, Workflow: run}
	}
	return &kagziv1.AwaitWorkflowsResponse_Ended{
		Seq: seq, Status: run.Status, Output: run.Output, Error: run.Error, ContinuedAsRunId: run.GetContinuedAsRunId()}
}

// tell makes all streams look again.
func (d *desk) tell() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.changed)
	d.changed = make(chan struct{})
}

// end breaks all streams.
func (d *desk) end(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for s := range d.open {
		s.end(err)
		delete(d.open, s)
	}
}
