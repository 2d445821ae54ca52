package watch

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	maxAwaiting  = 10_000           // concurrent waits of one stream
	heldBytes    = 8 << 20          // results kept in memory for one stream; further ones are read again
	endedBytes   = 1 << 20          // approximate size of the results in one message
	recheckEvery = 30 * time.Second // a run is read after one to two intervals, in case a notification was lost
	readsAtOnce  = 16               // concurrent reads of runs for one stream or call
)

// awaitStream is one stream of waits. One goroutine reads the caller's messages, another one
// answers.
type awaitStream struct {
	service   *Service
	namespace string
	send      func(*kagziv1.AwaitWorkflowsResponse) error
	wake      chan struct{} // capacity one: due is not empty

	mu     sync.Mutex
	waits  map[uint64]*waiter // open waits by seq
	due    []*waiter          // waits to answer or to check
	bytes  int                // size of the endings in due
	wrong  int                // number of waits in due that are refused
	last   uint64             // the last seq
	timer  *time.Timer        // calls recheck
	armed  bool
	closed bool
}

// wait is the state of a waiter in its stream.
type wait struct {
	seq    uint64
	whole  bool
	due    bool // it is in awaitStream.due
	old    bool // it was there at the last recheck
	over   bool // it was answered or forgotten
	ending *engine.Ending
	err    error // why it is refused
}

// AwaitWorkflows sends, for each run that the stream names, how it ended once it has.
func (s *Service) AwaitWorkflows(stream kagziv1.WorkflowService_AwaitWorkflowsServer) error {
	first, err := stream.Recv()
	if err != nil {
		return hungUp(err)
	}
	namespace, err := wire.NamespaceOf(first.Namespace)
	if err != nil {
		return err
	}
	a := &awaitStream{service: s, namespace: namespace, send: stream.Send, wake: make(chan struct{}, 1),
		waits: map[uint64]*waiter{}}
	a.timer = time.AfterFunc(recheckEvery, a.recheck)
	a.timer.Stop()
	defer a.close()
	received := make(chan error, 1)
	go func() { received <- a.receive(first, stream.Recv) }()
	return a.serve(stream.Context(), received)
}

// hungUp returns nil if err means that the caller closed its side of the stream, otherwise err.
func hungUp(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// receive adds waits until the caller closes its side, which returns nil, or the stream fails.
func (a *awaitStream) receive(request *kagziv1.AwaitWorkflowsRequest,
	next func() (*kagziv1.AwaitWorkflowsRequest, error)) error {
	for {
		a.forget(request.Forget) // first, because it makes room
		if err := a.add(request.Waits); err != nil {
			return err
		}
		var err error
		if request, err = next(); err != nil {
			return hungUp(err)
		}
		if request.Namespace != "" && request.Namespace != a.namespace {
			return engine.Invalid("namespace", "must be that of the stream's first message")
		}
	}
}

// add begins waits. A wait that is refused does not affect the others.
func (a *awaitStream) add(requests []*kagziv1.AwaitWorkflowsRequest_Wait) error {
	waiting := make([]*waiter, 0, len(requests))
	a.mu.Lock()
	for _, r := range requests {
		if r.Seq <= a.last {
			a.mu.Unlock()
			return engine.Invalid("waits.seq", "must be larger than all before, got %d", r.Seq)
		}
		a.last = r.Seq
		w := &waiter{to: a, wait: wait{seq: r.Seq, whole: r.Whole}}
		if w.id, w.err = wire.IDOf("run_id", r.RunId); w.err == nil && len(a.waits) >= maxAwaiting {
			w.err = engine.TooLarge("waits", "exceed the limit of %d open waits per stream", maxAwaiting)
		}
		if w.err != nil {
			if a.wrong++; a.wrong > maxAwaiting {
				a.mu.Unlock()
				return engine.TooLarge("waits",
					"were refused %d times on this stream, and the answers are not read yet; read them first",
					maxAwaiting)
			}
			a.enqueue(w)
			continue
		}
		a.waits[w.seq] = w
		waiting = append(waiting, w)
	}
	a.arm()
	a.mu.Unlock()
	a.service.waiters.enter(waiting...)
	a.first(waiting)
	return nil
}

// first enqueues the waits whose runs are not known to exist and be open.
func (a *awaitStream) first(waiting []*waiter) {
	for _, w := range waiting {
		if !a.service.recent.has(a.namespace, w.id) {
			a.ended(w, nil)
		}
	}
	a.mu.Lock()
	closed := a.closed
	a.mu.Unlock()
	if closed { // meanwhile
		a.service.waiters.leave(waiting...)
	}
}

// sizeOf returns the size of an ending in bytes, with its failure.
func sizeOf(e *engine.Ending) int {
	n := e.Output.Size()
	if e.Error != nil {
		n += e.Error.Size()
	}
	return n
}

// enqueue makes serve answer a wait, or check its run. a.mu is held.
func (a *awaitStream) enqueue(w *waiter) {
	if !w.due {
		w.due = true
		a.due = append(a.due, w)
		async.Notify(a.wake)
	}
}

// ended is called by waiters. It ignores the end of a run in another namespace.
func (a *awaitStream) ended(w *waiter, ending *engine.Ending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w.over || ending != nil && ending.Namespace != a.namespace {
		return
	}
	if ending != nil && w.ending == nil && !w.whole && a.bytes < heldBytes {
		w.ending = ending
		a.bytes += sizeOf(ending)
	}
	a.enqueue(w)
}

func (a *awaitStream) forget(seqs []uint64) {
	gone := make([]*waiter, 0, len(seqs))
	a.mu.Lock()
	for _, seq := range seqs {
		if w := a.waits[seq]; w != nil {
			a.end(w)
			gone = append(gone, w)
		}
	}
	if len(a.due) > 3*maxAwaiting { // the caller keeps adding waits but does not read answers
		a.due = slices.DeleteFunc(a.due, func(w *waiter) bool { return w.over })
	}
	a.mu.Unlock()
	a.service.waiters.leave(gone...)
}

// end closes a wait. a.mu is held.
func (a *awaitStream) end(w *waiter) {
	w.over = true
	delete(a.waits, w.seq)
}

// close ends all waits.
func (a *awaitStream) close() {
	a.mu.Lock()
	a.closed = true
	a.timer.Stop()
	gone := make([]*waiter, 0, len(a.waits))
	for _, w := range a.waits {
		w.over = true
		gone = append(gone, w)
	}
	a.mu.Unlock()
	a.service.waiters.leave(gone...)
}

// serve answers until the caller has closed its side and has all answers, or the stream fails.
func (a *awaitStream) serve(ctx context.Context, received <-chan error) error {
	for done := false; !done || a.open(); {
		select {
		case <-a.wake:
			runtime.Gosched() // runs that end in one commit are notified one by one; collect them in one message
		case err := <-received:
			if err != nil {
				return err
			}
			done, received = true, nil
		case <-a.service.stopping:
			return wire.ErrStopping
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := a.answer(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (a *awaitStream) open() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waits) > 0
}

// answer sends all answers that are ready.
func (a *awaitStream) answer(ctx context.Context) error {
	ready, unsure := a.take()
	a.service.waiters.leave(ready...)
	out := responseBatch{send: a.send}
	for _, w := range ready {
		if err := out.add(a.answerTo(w)); err != nil {
			return err
		}
	}
	if err := out.flush(); err != nil {
		return err
	}
	for group := range slices.Chunk(a.keepEnded(ctx, unsure), readsAtOnce) {
		for _, ended := range a.readRuns(ctx, group) {
			if err := out.add(ended); err != nil {
				return err
			}
		}
	}
	return out.flush()
}

// take returns the due waits: those that can be answered, which it closes, and those whose runs
// have to be read.
func (a *awaitStream) take() (ready, unsure []*waiter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.due {
		w.due = false
		switch {
		case w.over:
		case w.err != nil || w.ending != nil:
			a.end(w)
			ready = append(ready, w)
		default:
			unsure = append(unsure, w)
		}
	}
	a.due, a.bytes, a.wrong = nil, 0, 0
	return ready, unsure
}

// keepEnded leaves out the runs that have not ended. It sets err for runs that do not exist or
// could not be read.
func (a *awaitStream) keepEnded(ctx context.Context, unsure []*waiter) []*waiter {
	if len(unsure) < 2 {
		return unsure
	}
	var rest []*waiter
	for group := range slices.Chunk(unsure, engine.MaxPage) {
		ids := make([]engine.ID, len(group))
		for i, w := range group {
			ids[i] = w.id
		}
		runs, err := a.service.store.GetRuns(ctx, a.namespace, ids)
		ended := make(map[engine.ID]bool, len(runs))
		for i := range runs {
			ended[runs[i].ID] = runs[i].Status.Ended()
		}
		for _, w := range group {
			has, there := ended[w.id]
			switch {
			case err != nil:
				w.err = err
			case !there: // readRun looks whether others continue its chain
			case !has:
				continue
			}
			rest = append(rest, w)
		}
	}
	return rest
}

// readRuns returns the answers to those waits whose runs have ended.
func (a *awaitStream) readRuns(ctx context.Context, group []*waiter) []*kagziv1.AwaitWorkflowsResponse_Ended {
	answers := make([]*kagziv1.AwaitWorkflowsResponse_Ended, len(group))
	async.Parallel(len(group), func(i int) { answers[i] = a.readRun(ctx, group[i]) })
	var over []*waiter
	a.mu.Lock()
	for i, w := range group {
		switch {
		case w.over: // meanwhile
			answers[i] = nil
		case answers[i] != nil:
			a.end(w)
			over = append(over, w)
		}
	}
	a.mu.Unlock()
	a.service.waiters.leave(over...)
	return slices.DeleteFunc(answers, func(one *kagziv1.AwaitWorkflowsResponse_Ended) bool { return one == nil })
}

// readRun returns the answer to a wait; nil if its run has not ended.
func (a *awaitStream) readRun(ctx context.Context, w *waiter) *kagziv1.AwaitWorkflowsResponse_Ended {
	if w.err != nil {
		return a.refused(w.seq, w.err)
	}
	run, err := a.service.store.GetRun(ctx, a.namespace, w.id)
	if engine.KindOf(err) == engine.KindNotFound {
		// The first run of a chain was deleted: the caller goes on with the newest.
		latest, chainErr := a.service.store.LatestOfChain(ctx, a.namespace, w.id)
		if chainErr != nil {
			return a.refused(w.seq, chainErr)
		}
		if !latest.IsZero() {
			return endedTo(w.seq, &engine.Ending{Status: engine.RunCompleted, ContinuedAs: latest})
		}
	}
	switch {
	case err != nil:
		return a.refused(w.seq, err)
	case !run.Status.Ended():
		return nil
	case w.whole:
		return &kagziv1.AwaitWorkflowsResponse_Ended{Seq: w.seq, Workflow: wire.RunTo(&run)}
	}
	return endedTo(w.seq, &engine.Ending{Status: run.Status, Output: run.Output, Error: run.Error,
		ContinuedAs: run.ContinuedAs})
}

// answerTo returns the answer to a wait that is over.
func (a *awaitStream) answerTo(w *waiter) *kagziv1.AwaitWorkflowsResponse_Ended {
	if w.err != nil {
		return a.refused(w.seq, w.err)
	}
	return endedTo(w.seq, w.ending)
}

func endedTo(seq uint64, e *engine.Ending) *kagziv1.AwaitWorkflowsResponse_Ended {
	return &kagziv1.AwaitWorkflowsResponse_Ended{
		Seq: seq, Status: kagziv1.WorkflowStatus(e.Status), Output: wire.PayloadTo(e.Output),
		Error:            wire.FailureTo(e.Error),
		ContinuedAsRunId: e.ContinuedAs.String(),
	}
}

func (a *awaitStream) refused(seq uint64, err error) *kagziv1.AwaitWorkflowsResponse_Ended {
	code, detail := a.service.errors.Detail(err)
	return &kagziv1.AwaitWorkflowsResponse_Ended{Seq: seq, Refusal: detail, StatusCode: int32(code)}
}

// recheck enqueues the waits that were open at the last recheck, so that their runs are read.
func (a *awaitStream) recheck() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.waits {
		if w.old {
			a.enqueue(w)
		}
		w.old = true
	}
	a.armed = false
	a.arm()
}

// arm starts the timer of recheck while there are waits. a.mu is held.
func (a *awaitStream) arm() {
	if !a.armed && !a.closed && len(a.waits) > 0 {
		a.armed = true
		a.timer.Reset(recheckEvery)
	}
}

// responseBatch collects answers into messages.
type responseBatch struct {
	send    func(*kagziv1.AwaitWorkflowsResponse) error
	message *kagziv1.AwaitWorkflowsResponse // nil: empty
	bytes   int
}

func (p *responseBatch) add(ended *kagziv1.AwaitWorkflowsResponse_Ended) error {
	if p.message == nil {
		p.message = &kagziv1.AwaitWorkflowsResponse{}
	}
	p.message.Ended = append(p.message.Ended, ended)
	p.bytes += proto.Size(ended)
	if p.bytes < endedBytes && len(p.message.Ended) < engine.MaxBatch {
		return nil
	}
	return p.flush()
}

func (p *responseBatch) flush() error {
	message := p.message
	p.message, p.bytes = nil, 0
	if message == nil {
		return nil
	}
	return p.send(message)
}
