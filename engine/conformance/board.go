package conformance

import (
	"sync"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// board records the traffic of sessions and lets cases answer the operations of their runs.
type board struct {
	mu      sync.Mutex
	log     []message
	hooks   map[string]hook                             // by run
	pending map[int64]map[int64]*kagziv1.SessionRequest // unanswered operations, by stream and number
	refused map[int64]map[int64]bool                    // that the board has refused
	inject  func(stream int64, r *kagziv1.SessionResponse) []*kagziv1.SessionResponse
	calls   func(method string, answered bool) error // of tamper.call
	bell    *bell
}

// message is one message of a session.
type message struct {
	stream int64
	at     time.Time
	up     *kagziv1.SessionRequest  // of the subject
	down   *kagziv1.SessionResponse // of the server, or of the board
	to     *kagziv1.SessionRequest  // what down answers; nil for an event
}

// hook returns a refusal instead of passing an operation on; nil passes it.
type hook func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail

func newBoard(b *bell) *board {
	return &board{hooks: map[string]hook{}, pending: map[int64]map[int64]*kagziv1.SessionRequest{},
		refused: map[int64]map[int64]bool{}, bell: b}
}

func (b *board) tamper() tamper {
	return tamper{up: b.up, down: b.down, call: func(method string, answered bool) error {
		b.mu.Lock()
		calls := b.calls
		b.mu.Unlock()
		if calls == nil {
			return nil
		}
		return calls(method, answered)
	}}
}

// onCalls lets a function have the calls outside of sessions; nil ends that.
func (b *board) onCalls(f func(method string, answered bool) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = f
}

// onDown lets a function change the messages for the subject; nil ends that.
func (b *board) onDown(f func(r *kagziv1.SessionResponse) []*kagziv1.SessionResponse) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f == nil {
		b.inject = nil
		return
	}
	b.inject = func(_ int64, r *kagziv1.SessionResponse) []*kagziv1.SessionResponse { return f(r) }
}

func (b *board) up(stream int64, r *kagziv1.SessionRequest) (bool, *kagziv1.SessionResponse) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.bell.ring()
	b.log = append(b.log, message{stream: stream, at: time.Now(), up: r})
	if b.pending[stream] == nil {
		b.pending[stream], b.refused[stream] = map[int64]*kagziv1.SessionRequest{}, map[int64]bool{}
	}
	b.pending[stream][r.GetSeq()] = r
	var refusal *kagziv1.ErrorDetail
	switch h := b.hooks[runOf(r)]; {
	case b.refused[stream][r.GetAfter()]:
		refusal = &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE,
			Message: "the operation that this one builds on was refused"}
	case h != nil:
		refusal = h(r)
	}
	if refusal == nil {
		return true, nil
	}
	b.refused[stream][r.GetSeq()] = true
	answer := &kagziv1.SessionResponse{Seq: r.GetSeq(), Event: &kagziv1.SessionResponse_Error{Error: refusal}}
	b.answered(stream, answer)
	return false, answer
}

func (b *board) down(stream int64, r *kagziv1.SessionResponse) []*kagziv1.SessionResponse {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.bell.ring()
	b.answered(stream, r)
	if b.inject != nil {
		return b.inject(stream, r)
	}
	return []*kagziv1.SessionResponse{r}
}

// answered records a message for the subject. Needs b.mu.
func (b *board) answered(stream int64, r *kagziv1.SessionResponse) {
	var to *kagziv1.SessionRequest
	if r.GetSeq() > 0 {
		to = b.pending[stream][r.GetSeq()]
		delete(b.pending[stream], r.GetSeq())
	}
	b.log = append(b.log, message{stream: stream, at: time.Now(), down: r, to: to})
}

// set lets a function answer the operations of a run.
func (b *board) set(run string, h hook) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hooks[run] = h
}

// all returns what was recorded so far.
func (b *board) all() []message { return b.since(0) }

// since returns what was recorded after the first n messages.
func (b *board) since(n int) []message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]message(nil), b.log[n:]...)
}

// length returns how many messages were recorded so far.
func (b *board) length() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.log)
}

// of returns the operations of a run and their answers, in order.
func (b *board) of(run string) []message {
	var all []message
	for _, m := range b.all() {
		if m.up != nil && runOf(m.up) == run || m.to != nil && runOf(m.to) == run ||
			m.down.GetTask().GetRunId() == run || m.down.GetPauseTask().GetRunId() == run {
			all = append(all, m)
		}
	}
	return all
}

// lease is what most operations have.
type leased interface {
	GetRunId() string
	GetLeaseToken() string
}

// leaseOf returns the run and token of an operation; nil for others.
func leaseOf(r *kagziv1.SessionRequest) leased {
	switch m := r.Operation.(type) {
	case *kagziv1.SessionRequest_BeginStep:
		return m.BeginStep
	case *kagziv1.SessionRequest_CompleteStep:
		return m.CompleteStep
	case *kagziv1.SessionRequest_FailStep:
		return m.FailStep
	case *kagziv1.SessionRequest_Sleep:
		return m.Sleep
	case *kagziv1.SessionRequest_AwaitSignal:
		return m.AwaitSignal
	case *kagziv1.SessionRequest_StartChild:
		return parentLease{m.StartChild}
	case *kagziv1.SessionRequest_AwaitChildren:
		return m.AwaitChildren
	case *kagziv1.SessionRequest_CompleteWorkflow:
		return m.CompleteWorkflow
	case *kagziv1.SessionRequest_FailWorkflow:
		return m.FailWorkflow
	case *kagziv1.SessionRequest_ReleaseTask:
		return m.ReleaseTask
	case *kagziv1.SessionRequest_SetNote:
		return m.SetNote
	}
	return nil
}

type parentLease struct{ *kagziv1.StartChildRequest }

func (p parentLease) GetRunId() string { return p.GetChild().GetParentRunId() }

func runOf(r *kagziv1.SessionRequest) string {
	if l := leaseOf(r); l != nil {
		return l.GetRunId()
	}
	return ""
}
