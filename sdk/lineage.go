package kagzi

import (
	"context"
	"errors"
	"sync"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// A run that the code of a step starts names the run and the step's attempt that it comes from. The
// attempt has an id when the server knows of it, so a step is announced before its first start.

// announcement tells the server once that a step's code runs.
type announcement struct {
	token string // of the lease under which the code runs
	begin *kagziv1.SessionRequest
	once  sync.Once
	told  chan struct{} // closed when the server has answered
	id    string        // of the attempt
}

var errAttemptOver = errors.New("kagzi: the step's attempt is over")

func newAnnouncement(token string, begin *kagziv1.SessionRequest) *announcement {
	return &announcement{token: token, begin: begin, told: make(chan struct{})}
}

// announce sends the announcement, if it was not sent yet.
func (e *execution) announce(a *announcement) {
	a.once.Do(func() {
		e.lock()
		defer e.mu.Unlock()
		if e.token() != a.token {
			return // the step timed out, the run was parked and came back, and the code still runs
		}
		e.send(a.begin, func(r *kagziv1.SessionResponse) {
			a.id = r.GetBegunStep().GetStepId()
			close(a.told)
		})
	})
}

// attemptID returns the id of the step's attempt. The error is the cause of ctx or of the end of the
// activation.
func (s *stepInfo) attemptID(ctx context.Context) (string, error) {
	s.e.announce(s.announcement)
	if s.e.token() != s.announcement.token {
		return "", errAttemptOver
	}
	select {
	case <-s.announcement.told:
		return s.announcement.id, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-s.e.life.Done():
		return "", context.Cause(s.e.life)
	}
}

// setParent names the step whose code makes the starts, if it is one of this server and namespace.
func (c *Client) setParent(ctx context.Context, starts ...*kagziv1.StartWorkflowRequest) error {
	step, ok := ctx.Value(stepKey{}).(*stepInfo)
	if !ok {
		return nil
	}
	if of := step.e.w.options; of.Address != c.options.Address || of.Namespace != c.options.Namespace {
		return nil
	}
	id, err := step.attemptID(ctx)
	if err != nil {
		return err
	}
	for _, start := range starts {
		start.ParentRunId, start.ParentStepId = step.e.info.RunID, id
	}
	return nil
}
