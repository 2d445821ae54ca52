package conformance

import (
	"context"
	"math/rand/v2"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// mode is a kind of fault under which random programs run.
type mode struct {
	name   string
	lanes  int  // how many subjects share the programs: more where these wait for a connection
	pages  bool // histories come in pages of one row
	cancel bool // the script has a cancellation
	// interrupts says that bodies are cut off, so that the numbers of attempts differ from the script's
	interrupts bool
	// tamper returns what happens to the messages of one program
	tamper func(l *lane, rnd *rand.Rand) tamper
	// at returns what happens before event i of n
	at func(rnd *rand.Rand, l *lane, n int) func(ctx context.Context, f *family, i int) error
}

var modes = []mode{
	{name: "nothing", lanes: 1},
	{name: "suspended", lanes: 1, interrupts: true, at: suspend},
	{name: "answers lost", lanes: 8, tamper: loseAnswers},
	{name: "connection cut", lanes: 5, tamper: cutConnection},
	{name: "tasks twice", lanes: 1, tamper: twice},
	{name: "pages of one", lanes: 1, pages: true, interrupts: true, at: suspend},
	{name: "worker killed", lanes: 2, interrupts: true, at: once(func(ctx context.Context, l *lane) error { return l.again(ctx) })},
	{name: "cancelled", lanes: 1, cancel: true},
	{name: "server restarted", lanes: 2, at: once(func(_ context.Context, l *lane) error { return l.host.restart() })},
}

// suspend takes the run and its children away from the worker before each event. It is given back at once.
func suspend(_ *rand.Rand, l *lane, _ int) func(context.Context, *family, int) error {
	return func(ctx context.Context, f *family, _ int) error {
		all, err := f.members(ctx)
		if err != nil {
			return err
		}
		for _, m := range all {
			if ended(m.run.GetStatus()) {
				continue
			}
			if _, err := l.host.runs.PauseWorkflow(ctx, &kagziv1.PauseWorkflowRequest{Namespace: namespace,
				RunId: m.run.GetRunId(), Now: true}); err != nil {
				return err
			}
			l.gate.drop(m.run.GetRunId())
			if _, err := l.host.runs.ResumeWorkflow(ctx, &kagziv1.ResumeWorkflowRequest{Namespace: namespace,
				RunId: m.run.GetRunId()}); err != nil {
				return err
			}
		}
		return nil
	}
}

// once does something before one event that the seed chooses.
func once(do func(context.Context, *lane) error) func(*rand.Rand, *lane,
	int) func(context.Context, *family, int) error {
	return func(rnd *rand.Rand, l *lane, n int) func(context.Context, *family, int) error {
		when := rnd.IntN(max(n, 1))
		return func(ctx context.Context, _ *family, i int) error {
			if i != when {
				return nil
			}
			return do(ctx, l)
		}
	}
}

// isOperation reports whether a message is an operation of a run.
func isOperation(r *kagziv1.SessionRequest) bool {
	switch r.Operation.(type) {
	case *kagziv1.SessionRequest_Hello, *kagziv1.SessionRequest_Credit, *kagziv1.SessionRequest_Heartbeat,
		*kagziv1.SessionRequest_Goodbye:
		return false
	}
	return true
}

// isAnswer reports whether a message answers an operation of a run.
func isAnswer(r *kagziv1.SessionResponse) bool {
	switch r.Event.(type) {
	case *kagziv1.SessionResponse_Welcome, *kagziv1.SessionResponse_Task, *kagziv1.SessionResponse_Heartbeat,
		*kagziv1.SessionResponse_Goodbye, *kagziv1.SessionResponse_CancelTask, *kagziv1.SessionResponse_Drain,
		*kagziv1.SessionResponse_PauseTask, *kagziv1.SessionResponse_WaitOver:
		return false
	}
	return r.GetSeq() > 0
}

// isUnaryOperation reports whether a call outside of a session is an operation of a run.
func isUnaryOperation(method string) bool {
	switch method {
	case "Register", "Heartbeat", "Deregister", "PollTask", "GetHistory":
		return false
	}
	return true
}

// mostCuts limits how often one program's connection breaks: a worker may wait for a second after each.
const mostCuts = 2

// loseAnswers breaks the connection instead of delivering some answers: the operation has taken effect.
func loseAnswers(l *lane, rnd *rand.Rand) tamper {
	cuts := 0
	lost := func() bool {
		if cuts == mostCuts || rnd.IntN(4) > 0 {
			return false
		}
		cuts++
		l.proxy.cut()
		return true
	}
	return tamper{
		down: func(_ int64, r *kagziv1.SessionResponse) []*kagziv1.SessionResponse {
			if isAnswer(r) && lost() {
				return nil
			}
			return []*kagziv1.SessionResponse{r}
		},
		unary: func(method string, answered bool) {
			if answered && isUnaryOperation(method) {
				lost()
			}
		},
	}
}

// cutConnection breaks the connection before one operation: it has not taken effect.
func cutConnection(l *lane, rnd *rand.Rand) tamper {
	left := rnd.IntN(12)
	due := func() bool {
		left--
		if left != -1 {
			return false
		}
		l.proxy.cut()
		return true
	}
	return tamper{
		up: func(_ int64, r *kagziv1.SessionRequest) (bool, *kagziv1.SessionResponse) {
			return !isOperation(r) || !due(), nil
		},
		unary: func(method string, answered bool) {
			if !answered && isUnaryOperation(method) {
				due()
			}
		},
	}
}

// twice delivers each task twice.
func twice(*lane, *rand.Rand) tamper {
	return tamper{down: func(_ int64, r *kagziv1.SessionResponse) []*kagziv1.SessionResponse {
		if r.GetTask() == nil {
			return []*kagziv1.SessionResponse{r}
		}
		return []*kagziv1.SessionResponse{r, proto.CloneOf(r)}
	}}
}
