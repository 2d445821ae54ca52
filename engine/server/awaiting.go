package server

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
	maxAwaiting = 10_000           // waits of one stream at a time
	heldBytes   = 8 << 20          // of results that are kept until their stream takes them; more are read again
	endedBytes  = 1 << 20          // of results in one message, about
	lookEvery   = 30 * time.Second // a run is looked at after so long to twice as long, should nobody tell of its end
	looksAtOnce = 16               // of whole runs, for one stream or one call
)

// awaiting is one stream of waits. Its caller's messages are read by one goroutine, and answered by another.
type awaiting struct {
	server    *Server
	namespace string
	send      func(*kagziv1.AwaitWorkflowsResponse) error
	bell      chan struct{} // capacity one: there is something to answer

	mu     sync.Mutex
	waits  map[uint64]*waiter // that are open, by their seq
	told   []*waiter          // that there is something to answer to
	bytes  int                // of the endings of those
	wrong  int                // of those, how many are refused without a look
	last   uint64             // seq
	timer  *time.Timer        // of lookOver
	armed  bool
	closed bool
}

// wait is what a stream knows of a waiter.
type wait struct {
	seq    uint64
	whole  bool
	told   bool // it stands among those told
	old    bool // it was there when all were looked over
	over   bool // it is answered, or forgotten
	ending *engine.Ending
	err    error // that it is refused with
}

// AwaitWorkflows answers for each run that the stream names how it ended, once it has.
func (s *Server) AwaitWorkflows(stream kagziv1.WorkflowService_AwaitWorkflowsServer) error {
	first, err := stream.Recv()
	if err != nil {
		return hungUp(err)
	}
	namespace, err := wire.NamespaceOf(first.Namespace)
	if err != nil {
		return err
	}
	a := &awaiting{server: s, namespace: namespace, send: stream.Send, bell: make(chan struct{}, 1), waits: map[uint64]*waiter{}}
	a.timer = time.AfterFunc(lookEvery, a.lookOver)
	a.timer.Stop()
	defer a.close()
	received := make(chan error, 1)
	go func() { received <- a.receive(first, stream.Recv) }()
	return a.serve(stream.Context(), received)
}

// hungUp is nil when a stream broke because its caller closed it.
func hungUp(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// receive takes waits until the caller closes its side, which is nil, or the stream breaks.
func (a *awaiting) receive(request *kagziv1.AwaitWorkflowsRequest, next func() (*kagziv1.AwaitWorkflowsRequest, error)) error {
	for {
		a.forget(request.Forget) // which makes room
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

// add begins waits. What is wrong with one is its own affair.
func (a *awaiting) add(requests []*kagziv1.AwaitWorkflowsRequest_Wait) error {
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
			w.err = engine.TooLarge("waits", "are %d on this stream already, as many as are allowed", maxAwaiting)
		}
		if w.err != nil {
			if a.wrong++; a.wrong > maxAwaiting {
				a.mu.Unlock()
				return engine.TooLarge("waits", "were refused %d times on this stream, and as many answers wait to be sent; read them first", maxAwaiting)
			}
			a.tell(w)
			continue
		}
		a.waits[w.seq] = w
		waiting = append(waiting, w)
	}
	a.arm()
	a.mu.Unlock()
	a.server.waiters.enter(waiting...)
	a.first(waiting)
	return nil
}

// first looks at the runs that are not known to be there and open.
func (a *awaiting) first(waiting []*waiter) {
	for _, w := range waiting {
		if !a.server.fresh.has(a.namespace, w.id) {
			a.hear(w, nil)
		}
	}
	a.mu.Lock()
	closed := a.closed
	a.mu.Unlock()
	if closed { // while they entered
		a.server.waiters.leave(waiting...)
	}
}

// sizeOf is how much an ending takes up, in bytes: many failures are as large as a few outputs.
func sizeOf(e *engine.Ending) int {
	n := e.Output.Size()
	if e.Error != nil {
		n += e.Error.Size()
	}
	return n
}

// tell has a wait answered, or its run looked at. It is called under the lock.
func (a *awaiting) tell(w *waiter) {
	if !w.told {
		w.told = true
		a.told = append(a.told, w)
		async.Notify(a.bell)
	}
}

// hear is told by the waiters. Whoever else has a run of that id is told of the end in their own namespace only.
func (a *awaiting) hear(w *waiter, ending *engine.Ending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w.over || ending != nil && ending.Namespace != a.namespace {
		return
	}
	if ending != nil && w.ending == nil && !w.whole && a.bytes < heldBytes {
		w.ending = ending
		a.bytes += sizeOf(ending)
	}
	a.tell(w)
}

func (a *awaiting) forget(seqs []uint64) {
	gone := make([]*waiter, 0, len(seqs))
	a.mu.Lock()
	for _, seq := range seqs {
		if w := a.waits[seq]; w != nil {
			a.end(w)
			gone = append(gone, w)
		}
	}
	if len(a.told) > 3*maxAwaiting { // their caller takes no answers, and goes on
		a.told = slices.DeleteFunc(a.told, func(w *waiter) bool { return w.over })
	}
	a.mu.Unlock()
	a.server.waiters.leave(gone...)
}

// end closes a wait, under the lock.
func (a *awaiting) end(w *waiter) {
	w.over = true
	delete(a.waits, w.seq)
}

// close ends all waits.
func (a *awaiting) close() {
	a.mu.Lock()
	a.closed = true
	a.timer.Stop()
	gone := make([]*waiter, 0, len(a.waits))
	for _, w := range a.waits {
		w.over = true
		gone = append(gone, w)
	}
	a.mu.Unlock()
	a.server.waiters.leave(gone...)
}

// serve answers until the caller has closed its side and has all answers, or the stream breaks.
func (a *awaiting) serve(ctx context.Context, received <-chan error) error {
	for done := false; !done || a.open(); {
		select {
		case <-a.bell:
			runtime.Gosched() // runs that end in one commit are told of one after the other: one message for all
		case err := <-received:
			if err != nil {
				return err
			}
			done, received = true, nil
		case <-a.server.stopping:
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

func (a *awaiting) open() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waits) > 0
}

// answer sends what there is to say.
func (a *awaiting) answer(ctx context.Context) error {
	ready, unsure := a.take()
	a.server.waiters.leave(ready...)
	out := parcel{send: a.send}
	for _, w := range ready {
		if err := out.add(a.answerTo(w)); err != nil {
			return err
		}
	}
	if err := out.flush(); err != nil {
		return err
	}
	for group := range slices.Chunk(a.sift(ctx, unsure), looksAtOnce) {
		for _, ended := range a.look(ctx, group) {
			if err := out.add(ended); err != nil {
				return err
			}
		}
	}
	return out.flush()
}

// take is the waits that can be answered, which are over, and those whose runs have to be looked at.
func (a *awaiting) take() (ready, unsure []*waiter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.told {
		w.told = false
		switch {
		case w.over:
		case w.err != nil || w.ending != nil:
			a.end(w)
			ready = append(ready, w)
		default:
			unsure = append(unsure, w)
		}
	}
	a.told, a.bytes, a.wrong = nil, 0, 0
	return ready, unsure
}

// sift leaves out the runs that have not ended. Those that are not there, and those that nobody can tell of, are marked so.
func (a *awaiting) sift(ctx context.Context, unsure []*waiter) []*waiter {
	if len(unsure) < 2 {
		return unsure
	}
	var rest []*waiter
	for group := range slices.Chunk(unsure, engine.MaxPage) {
		ids := make([]engine.ID, len(group))
		for i, w := range group {
			ids[i] = w.id
		}
		runs, err := a.server.store.GetRuns(ctx, a.namespace, ids)
		ended := make(map[engine.ID]bool, len(runs))
		for i := range runs {
			ended[runs[i].ID] = runs[i].Status.Ended()
		}
		for _, w := range group {
			has, there := ended[w.id]
			switch {
			case err != nil:
				w.err = err
			case !there:
				w.err = engine.RunNotFound(w.id)
			case !has:
				continue
			}
			rest = append(rest, w)
		}
	}
	return rest
}

// look answers for the runs of a few waits, as far as they have ended.
func (a *awaiting) look(ctx context.Context, group []*waiter) []*kagziv1.AwaitWorkflowsResponse_Ended {
	answers := make([]*kagziv1.AwaitWorkflowsResponse_Ended, len(group))
	async.Parallel(len(group), func(i int) { answers[i] = a.lookAt(ctx, group[i]) })
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
	a.server.waiters.leave(over...)
	return slices.DeleteFunc(answers, func(one *kagziv1.AwaitWorkflowsResponse_Ended) bool { return one == nil })
}

// lookAt is the answer to a wait; nil while its run has not ended.
func (a *awaiting) lookAt(ctx context.Context, w *waiter) *kagziv1.AwaitWorkflowsResponse_Ended {
	if w.err != nil {
		return a.refused(w.seq, w.err)
	}
	run, err := a.server.store.GetRun(ctx, a.namespace, w.id)
	switch {
	case err != nil:
		return a.refused(w.seq, err)
	case !run.Status.Ended():
		return nil
	case w.whole:
		return &kagziv1.AwaitWorkflowsResponse_Ended{Seq: w.seq, Workflow: wire.RunTo(&run)}
	}
	return endedTo(w.seq, &engine.Ending{Status: run.Status, Output: run.Output, Error: run.Error, ContinuedAs: run.ContinuedAs})
}

// answerTo answers a wait that is over.
func (a *awaiting) answerTo(w *waiter) *kagziv1.AwaitWorkflowsResponse_Ended {
	if w.err != nil {
		return a.refused(w.seq, w.err)
	}
	return endedTo(w.seq, w.ending)
}

func endedTo(seq uint64, e *engine.Ending) *kagziv1.AwaitWorkflowsResponse_Ended {
	return &kagziv1.AwaitWorkflowsResponse_Ended{
		Seq: seq, Status: kagziv1.WorkflowStatus(e.Status), Output: wire.PayloadTo(e.Output), Error: wire.FailureTo(e.Error),
		ContinuedAsRunId: e.ContinuedAs.String(),
	}
}

func (a *awaiting) refused(seq uint64, err error) *kagziv1.AwaitWorkflowsResponse_Ended {
	code, detail := a.server.errors.Detail(err)
	return &kagziv1.AwaitWorkflowsResponse_Ended{Seq: seq, Refusal: detail, StatusCode: int32(code)}
}

// lookOver has the runs looked at of whose end nobody has told for long.
func (a *awaiting) lookOver() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.waits {
		if w.old {
			a.tell(w)
		}
		w.old = true
	}
	a.armed = false
	a.arm()
}

// arm sees to it that waits are looked over, while there are any. It is called under the lock.
func (a *awaiting) arm() {
	if !a.armed && !a.closed && len(a.waits) > 0 {
		a.armed = true
		a.timer.Reset(lookEvery)
	}
}

// parcel gathers answers into messages.
type parcel struct {
	send    func(*kagziv1.AwaitWorkflowsResponse) error
	message *kagziv1.AwaitWorkflowsResponse // nil: empty
	bytes   int
}

func (p *parcel) add(ended *kagziv1.AwaitWorkflowsResponse_Ended) error {
	if p.message == nil {
		p.message = &kagziv1.AwaitWorkflowsResponse{}
	}
	p.message.Ended = append(p.message.Ended, ended)
	p.bytes += proto.Size(ended) // of a failure the text and the stack, and of a result what is said about it, weigh as well
	if p.bytes < endedBytes && len(p.message.Ended) < engine.MaxBatch {
		return nil
	}
	return p.flush()
}

func (p *parcel) flush() error {
	message := p.message
	p.message, p.bytes = nil, 0
	if message == nil {
		return nil
	}
	return p.send(message)
}
