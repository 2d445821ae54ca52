// Package waiting says what a run waits for, while a caller waits for its end. The SDK and the
// command line use it.
package waiting

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// After is how long a caller has waited when it is told what the run waits for. It is told again
// when the run has changed and has then stayed the same for as long.
const After = 3 * time.Second

const (
	askLimit = 10 * time.Second // of one question
	maxPause = time.Minute      // between two streams
)

// API is the part of the server's interface that reports need.
type API interface {
	ExplainWorkflow(context.Context, *kagziv1.ExplainWorkflowRequest,
		...grpc.CallOption) (*kagziv1.ExplainWorkflowResponse, error)
	WatchWorkflow(context.Context, *kagziv1.WatchWorkflowRequest,
		...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.WatchWorkflowEvent], error)
}

// Report describes the wait for one run.
type Report struct {
	API       API
	Namespace string
	RunID     string
	// Say gets a sentence such as "waits for signal approve, without a timeout". It has names and
	// errors of users, so it is not safe for a terminal.
	Say func(sentence string)
	// Slots limits how many reports of a client are made at a time. A report that finds it full says
	// nothing. Nil means no limit.
	Slots chan struct{}
}

// Start begins to report when After has passed. It asks the server once, and then only after changes
// of the run, which it watches. It says nothing when the server does not answer, because the wait
// itself notices that. Call stop when the wait is over; nothing is said after it has returned.
func (r Report) Start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var follows sync.WaitGroup
	follows.Add(1)
	timer := time.AfterFunc(After, func() {
		defer follows.Done()
		if r.Slots != nil {
			select {
			case r.Slots <- struct{}{}:
				defer func() { <-r.Slots }()
			default:
				return
			}
		}
		r.follow(ctx)
	})
	return func() {
		cancel()
		if timer.Stop() {
			follows.Done()
		}
		follows.Wait()
	}
}

// follow asks at once, and again after each change.
func (r Report) follow(ctx context.Context) {
	states := make(chan string)
	go func() {
		defer close(states)
		r.watch(ctx, states)
	}()
	told, last := r.ask(ctx, ""), ""
	var unchanged <-chan time.Time
	for {
		select {
		case state, more := <-states:
			switch {
			case !more:
				return // the run has ended, or cannot be watched
			case last != "" && state != last:
				unchanged = time.After(After)
			}
			last = state
		case <-unchanged:
			told = r.ask(ctx, told)
		case <-ctx.Done():
			for range states {
			}
			return
		}
	}
}

// spans matches the times in a sentence: "due for 3s", "wakes in 4m57s".
var spans = regexp.MustCompile(`\b([0-9]+(ms|[smhd]))+\b`)

// ask says what the run waits for, unless that was told already. It returns what is told now,
// without times.
func (r Report) ask(ctx context.Context, told string) string {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	answer, err := r.API.ExplainWorkflow(ctx, &kagziv1.ExplainWorkflowRequest{Namespace: r.Namespace, RunId: r.RunID})
	sentence := answer.GetSummary()
	same := spans.ReplaceAllString(sentence, "")
	if err != nil || ctx.Err() != nil || sentence == "" || same == told {
		return told
	}
	r.Say(sentence)
	return same
}

// watch sends what explanations depend on: first as it is, then after each change. It returns when
// the run has ended or cannot be watched.
func (r Report) watch(ctx context.Context, states chan<- string) {
	for pause := After; ; pause = min(2*pause, maxPause) {
		ended, err := r.stream(ctx, states)
		if ended || err != nil && status.Code(err) != codes.Unavailable {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

func (r Report) stream(ctx context.Context, states chan<- string) (ended bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := r.API.WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{
		Namespace: r.Namespace, RunId: r.RunID, RunOnly: true})
	if err != nil {
		return false, err
	}
	for {
		event, err := events.Recv()
		if errors.Is(err, io.EOF) {
			return false, nil // the server is stopping
		}
		if err != nil {
			return false, err
		}
		run := event.GetWorkflow()
		switch {
		case run.GetFinishedAt() != nil:
			return true, nil
		case run == nil:
			continue
		}
		select {
		case states <- stateOf(run):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// stateOf returns the fields of a run that its explanation depends on.
func stateOf(run *kagziv1.Workflow) string {
	return fmt.Sprint(run.GetStatus(), run.GetWorkerId(), run.GetWaitingFor(), run.GetWakeUpAt().AsTime(),
		run.GetStepCount(), run.GetAttempts(), run.GetStepRetries(), run.GetLeaseLosses(), run.GetPaused(),
		run.GetCancelRequestedAt() != nil)
}
