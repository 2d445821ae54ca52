//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/workload"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"

	"google.golang.org/grpc"

	"encoding/json"

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// stand is a system of one server for a measurement, with a client.
func stand(ctx context.Context, o options) (*system, *kagzi.Client, error) {
	s := shape{Servers: 1, Lease: 30 * time.Second, Heartbeat: 10 * time.Second}
	r, err := newSystem(ctx, o, s)
	if err != nil {
		return r, nil, err
	}
	c, err := kagzi.NewClient(kagzi.ClientOptions{
		Profile: kagzi.NoProfile, Address: r.servers[0].door.Address(), Logger: workload.Quiet})
	return r, c, err
}

// memoryOf returns the resident memory of a process in MiB; processorOf its CPU time.
func memoryOf(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.Atoi(strings.Fields(rest)[0])
			return kib >> 10
		}
	}
	return 0
}

func processorOf(pid int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * time.Second / 100
}

// workerPool is workers in this process.
type workerPool struct {
	stop     context.CancelFunc
	group    sync.WaitGroup
	begun    chan time.Time // when the code of a run began
	welcomes atomic.Int64   // from servers
	open     atomic.Int64   // sessions that a server has welcomed and that have not ended
}

// newWorkerPool runs n workers at a server. Their runs send to begun when they begin.
func newWorkerPool(ctx context.Context, address string, n int) (*workerPool, error) {
	ctx, stop := context.WithCancel(ctx)
	c := &workerPool{stop: stop, begun: make(chan time.Time, 1000)}
	ready := make([]*kagzi.Worker, n)
	for i := range n {
		w := kagzi.NewWorker(kagzi.WorkerOptions{
			Profile: kagzi.NoProfile, Address: address, Logger: workload.Quiet, HandleSignals: []os.Signal{},
			MaxConcurrent: 10, DialOptions: []grpc.DialOption{grpc.WithStreamInterceptor(c.stream)}})
		kagzi.Handle(w, sampleType, func(kagzi.Context, string) (string, error) {
			c.begun <- time.Now()
			return "", nil
		})
		c.group.Go(func() { _ = w.Run(ctx) })
		ready[i] = w
	}
	limit := time.After(workerPoolLimit)
	for _, w := range ready {
		select {
		case <-w.Ready():
		case <-limit:
			c.end()
			return nil, fmt.Errorf("only %d of %d workers had a session after %s", c.open.Load(), n, workerPoolLimit)
		case <-ctx.Done():
			c.end()
			return nil, ctx.Err()
		}
	}
	return c, nil
}

// workerPoolLimit limits how long it may take until all workers of a pool have a session.
const workerPoolLimit = 5 * time.Minute

// stream is the interceptor of the workers' connections.
func (c *workerPool) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer,
	o ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, conn, method, o...)
	if err != nil || method != kagziv1.WorkerService_Session_FullMethodName {
		return s, err
	}
	return &counted{ClientStream: s, workerPool: c}, nil
}

// counted is a worker's session. One goroutine reads it.
type counted struct {
	grpc.ClientStream
	workerPool *workerPool
	welcomed   bool
}

func (s *counted) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch {
	case err == nil && !s.welcomed:
		s.welcomed = true
		s.workerPool.welcomes.Add(1)
		s.workerPool.open.Add(1)
	case err != nil && s.welcomed:
		s.welcomed = false
		s.workerPool.open.Add(-1)
	}
	return err
}

// allBack measures the time until each of n workers of a killed server has another session; at most
// limit.
func (c *workerPool) allBack(ctx context.Context, n int, limit time.Duration) (took time.Duration, ok bool) {
	begun := time.Now()
	for {
		if took, ok = time.Since(begun), c.welcomes.Load() >= int64(2*n) && c.open.Load() == int64(n); ok ||
			took > limit || ctx.Err() != nil {
			return took, ok
		}
		fixture.Breathe(ctx)
	}
}

func (c *workerPool) end() {
	c.stop()
	c.group.Wait()
}

// handOut measures n times how long a run takes from its start until its code runs.
func (c *workerPool) handOut(ctx context.Context, client *kagzi.Client, workflowType string,
	n int) ([]time.Duration, error) {
	var delays []time.Duration
	for range n {
		begun := time.Now()
		if _, err := kagzi.Start(ctx, client, workflowType, "x", kagzi.StartOptions{}); err != nil {
			return nil, err
		}
		select {
		case at := <-c.begun:
			delays = append(delays, at.Sub(begun))
		case <-time.After(fixture.StartLimit):
			return nil, errors.New("a run was not handed out")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	slices.Sort(delays)
	return delays, nil
}

// handOutFigure is the figure of runs that were started one at a time.
func handOutFigure(delays []time.Duration, limit time.Duration) figure {
	p99 := percentile(delays, 99)
	return figure{name: "from a start to its code",
		got:   fmt.Sprintf("p50 %s, p99 %s", round(percentile(delays, 50)), round(p99)),
		limit: "p99 ≤ " + limit.String(), ok: p99 <= limit}
}

const sampleType = "torture.sample"

// idleWorkers is L-01.
func idleWorkers(ctx context.Context, o options) (*report, error) {
	r, client, err := stand(ctx, o)
	defer r.close()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	server := r.servers[0]
	n := int(10_000 * o.scale)
	before := memoryOf(server.current().PID())
	// Bypasses the proxy, which would need two files per worker; the restarted server must be at
	// the address that they know.
	workerPool, err := newWorkerPool(ctx, server.direct, n)
	if err != nil {
		return nil, err
	}
	defer workerPool.end()
	pid := server.current().PID()
	used, begun := processorOf(pid), time.Now()
	r.pauseFor(ctx, o.duration)
	share := float64(processorOf(pid)-used) / float64(time.Since(begun))
	rss := memoryOf(pid)
	delays, err := workerPool.handOut(ctx, client, sampleType, 200)
	if err != nil {
		return nil, err
	}
	const together = time.Minute
	r.shape.ServerFlags = append(r.shape.ServerFlags, "--listen", server.direct)
	server.kill()
	if err := server.start(ctx); err != nil {
		return nil, err
	}
	took, back := workerPool.allBack(ctx, n, 2*together)
	limit := 100 + int(500*o.scale)
	return &report{figures: []figure{
		{name: fmt.Sprintf("memory with %d idle workers", n), got: fmt.Sprintf("%d MiB (%d without)", rss, before),
			limit: fmt.Sprintf("≤ %d MiB", limit), ok: rss <= limit},
		{name: "processor", got: fmt.Sprintf("%.1f %% of a core", 100*share), limit: "≤ 10 %", ok: share <= 0.10},
		handOutFigure(delays, 100*time.Millisecond),
		{name: "until all are back after the server was killed",
			got:   fmt.Sprintf("%s, %d of %d", round(took), workerPool.open.Load(), n),
			limit: "≤ " + together.String(), ok: back && took <= together, hard: !back},
	}}, nil
}

func (r *system) pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// startBatches starts n runs in batches.
func startBatches(ctx context.Context, client *kagzi.Client, workflowType string, n int, o kagzi.StartOptions) error {
	for n > 0 {
		batch := min(n, kagzi.MaxBatch)
		if _, err := kagzi.StartMany(ctx, client, workflowType, make([]string, batch), o); err != nil {
			return err
		}
		n -= batch
	}
	return nil
}

// cancelAll cancels the open runs of a type.
func cancelAll(ctx context.Context, client *kagzi.Client, workflowType string) error {
	bulk, err := kagziv1.NewWorkflowServiceClient(client.Conn()).BulkWorkflows(ctx, &kagziv1.BulkWorkflowsRequest{
		Action: kagziv1.BulkAction_BULK_ACTION_CANCEL,
		Filter: &kagziv1.ListWorkflowsRequest{WorkflowType: &workflowType}, Reason: "torture",
	})
	for err == nil {
		_, err = bulk.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("cancel the runs of %s: %w", workflowType, err)
}

// fullStore is L-02: most runs have ended; the others are due for workers that do not exist, or not
// due for a long time.
func fullStore(ctx context.Context, o options) (*report, error) {
	r, client, err := stand(ctx, o)
	defer r.close()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ended, due := int(1_000_000*o.scale), int(100_000*o.scale)
	if err := startBatches(ctx, client, "torture.ended", ended, kagzi.StartOptions{}); err != nil {
		return nil, err
	}
	if err := cancelAll(ctx, client, "torture.ended"); err != nil {
		return nil, err
	}
	if err := startBatches(ctx, client, "torture.nobody", due, kagzi.StartOptions{}); err != nil {
		return nil, err
	}
	if err := startBatches(ctx, client, sampleType, due, kagzi.StartOptions{Delay: 24 * time.Hour}); err != nil {
		return nil, err
	}
	workerPool, err := newWorkerPool(ctx, r.servers[0].door.Address(), 1)
	if err != nil {
		return nil, err
	}
	defer workerPool.end()
	delays, err := workerPool.handOut(ctx, client, sampleType, 200)
	if err != nil {
		return nil, err
	}
	restarted := r.servers[0]
	restarted.kill()
	if err := restarted.start(ctx); err != nil {
		return nil, err
	}
	again := restarted.starts[len(restarted.starts)-1]
	return &report{figures: []figure{
		handOutFigure(delays, 20*time.Millisecond),
		{name: fmt.Sprintf("start of a server with %d runs", ended+2*due), got: round(again).String(), limit: "≤ 5 s",
			ok: again <= 5*time.Second},
	}}, nil
}

// mismatch is L-06.
func mismatch(ctx context.Context, o options) (*report, error) {
	r, client, err := stand(ctx, o)
	defer r.close()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := startBatches(ctx, client, "torture.nobody", int(100_000*o.scale),
		kagzi.StartOptions{Priority: 50}); err != nil {
		return nil, err
	}
	workerPool, err := newWorkerPool(ctx, r.servers[0].door.Address(), 1)
	if err != nil {
		return nil, err
	}
	defer workerPool.end()
	delays, err := workerPool.handOut(ctx, client, sampleType, 200)
	if err != nil {
		return nil, err
	}
	return &report{figures: []figure{handOutFigure(delays, 50*time.Millisecond)}}, nil
}

// burst is L-03.
func burst(ctx context.Context, o options) (*report, error) {
	r, client, err := stand(ctx, o)
	defer r.close()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	workerPool, err := newWorkerPool(ctx, r.servers[0].door.Address(), 4)
	if err != nil {
		return nil, err
	}
	defer workerPool.end()
	n := int(100_000 * o.scale)
	begun := time.Now()
	started := make(chan error, 1)
	go func() { started <- startBatches(ctx, client, sampleType, n, kagzi.StartOptions{}) }()
	most := 0
	for got := range n {
		select {
		case <-workerPool.begun:
		case <-time.After(fixture.StartLimit):
			return nil, fmt.Errorf("only %d of %d runs were handed out", got, n)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if got%1000 == 0 {
			most = max(most, memoryOf(r.servers[0].current().PID()))
		}
	}
	if err := <-started; err != nil {
		return nil, err
	}
	took := time.Since(begun)
	return &report{figures: []figure{
		{name: fmt.Sprintf("a burst of %d runs", n),
			got:   fmt.Sprintf("drained in %s, %.0f a second", round(took), float64(n)/took.Seconds()),
			limit: "all of them, without an error", ok: true, hard: true},
		{name: "memory meanwhile", got: fmt.Sprintf("%d MiB", most), limit: "≤ 512 MiB", ok: most <= 512},
	}}, nil
}

// overload notes that there was too much work all the time.
func overload(ctx context.Context, t *torture) error {
	t.system.fault("too much work", func() bool { <-ctx.Done(); return true })
	return nil
}

// largePayload is a little less than the maximum payload.
const largePayload = 1900 << 10

// flood is the storm of L-07: beside a load that uses the whole machine, starts with payloads of
// almost 2 MiB are sent at the full rate of the matrix, whatever happened to earlier ones. A start
// that is not acknowledged in time is given up. The servers' memory is watched meanwhile.
func flood(ctx context.Context, t *torture) error {
	var senders []*workload.Client
	defer func() {
		for _, c := range senders {
			c.SDK.Close()
		}
	}()
	for i := range clients {
		c, err := kagzi.NewClient(kagzi.ClientOptions{
			Profile: kagzi.NoProfile, Address: t.system.servers[i%len(t.system.servers)].door.Address(),
			Logger:      workload.Quiet,
			DialOptions: []grpc.DialOption{workload.TriedIn(t.replays)}})
		if err != nil {
			return err
		}
		senders = append(senders, &workload.Client{SDK: c, Log: t.replays})
	}
	t.system.fault("a storm", func() bool {
		var group sync.WaitGroup
		defer group.Wait()
		group.Go(func() { t.watchMemory(ctx) })
		t.send(ctx, senders, &group)
		return t.flood.sent.Load() > 0
	})
	return nil
}

// flooding is the outcome of a storm.
type flooding struct{ sent, taken atomic.Int64 }

// send starts runs at the matrix's rate until ctx ends.
func (t *torture) send(ctx context.Context, senders []*workload.Client, group *sync.WaitGroup) {
	payload := workload.Filler(newRandom(t.options.seed).r, largePayload-20)
	tick := time.NewTicker(time.Duration(float64(time.Second) / (standardRate * t.options.scale)))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		t.flood.sent.Add(1)
		group.Go(func() {
			if t.startOnce(context.WithoutCancel(ctx), senders[n%len(senders)], fmt.Sprintf("flood-%d", n),
				fmt.Sprintf("%020d", n)+payload) {
				t.flood.taken.Add(1)
			}
		})
	}
}

// startOnce starts a run of the storm and reports whether it was acknowledged in time.
func (t *torture) startOnce(ctx context.Context, c *workload.Client, request, input string) bool {
	text, err := json.Marshal(input)
	if err != nil {
		panic(err) // a text
	}
	t.load.Expected.Store(request, check.Wanted{
		Type: workload.FloodType, Queue: "default", Input: history.Digest(text)})
	event := c.Log.Begin(history.Event{Op: history.Start, Request: request})
	ctx, cancel := context.WithTimeout(ctx, workload.CallLimit)
	defer cancel()
	run, err := kagzi.Start(ctx, c.SDK, workload.FloodType, input, kagzi.StartOptions{RequestID: request})
	if event.Outcome, event.Code = workload.Outcome(err); err == nil {
		event.Run = run.ID()
	}
	c.Log.Finish(event)
	return err == nil
}

// flooded reports how much of the storm was accepted. That depends on the machine, so the only
// limit is that it is more than nothing.
func flooded(t *torture) figure {
	sent, taken := t.flood.sent.Load(), t.flood.taken.Load()
	lasted := float64(t.healed-t.faulty) / 1e9
	return figure{name: "starts of the storm acknowledged within " + workload.CallLimit.String(), limit: "> 0",
		got: fmt.Sprintf("%d of %d, %.1f MiB a second", taken, sent, float64(taken)*largePayload/(1<<20)/lasted),
		ok:  taken > 0, hard: true}
}

// watchMemory records the peak memory of the servers until ctx ends.
func (t *torture) watchMemory(ctx context.Context) {
	for t.pause(ctx, 200*time.Millisecond, 300*time.Millisecond) {
		for _, s := range t.system.servers {
			t.memory = max(t.memory, memoryOf(s.current().PID()))
		}
	}
}

// memory requires the servers to use at most this many MiB.
func memory(limit int) func(t *torture) figure {
	return func(t *torture) figure {
		return figure{name: "memory of a server", got: fmt.Sprintf("%d MiB at most", t.memory),
			limit: fmt.Sprintf("≤ %d MiB", limit),
			ok:    t.memory > 0 && t.memory <= limit}
	}
}
