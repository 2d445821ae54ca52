package kagzitest_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/internal/seam"
)

// history is a run with the latest attempts of its steps, in the order in which they began.
type history struct {
	run   *kagziv1.Workflow
	steps []*kagziv1.Step
}

// history reads a run as the check of a worker does.
func (g *stage) history(run string) (h history, err error) {
	conn := g.env.Client.Conn()
	got, err := kagziv1.NewWorkflowServiceClient(conn).GetWorkflow(g.ctx,
		&kagziv1.GetWorkflowRequest{Namespace: namespace, RunId: run})
	if err != nil {
		return h, err
	}
	steps, err := kagziv1.NewAdminServiceClient(conn).ListSteps(g.ctx, &kagziv1.ListStepsRequest{
		Namespace: namespace, RunId: run, Page: &kagziv1.PageRequest{PageSize: 1000}})
	if err != nil {
		return h, err
	}
	h.run = got.GetWorkflow()
	for _, s := range steps.GetSteps() {
		if s.GetIsLatest() {
			h.steps = append(h.steps, s)
		}
	}
	slices.SortFunc(h.steps, func(a, b *kagziv1.Step) int { return cmp.Compare(a.GetSequence(), b.GetSequence()) })
	return h, nil
}

func (h history) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "owed from %d, %d attempts", h.run.GetOwedFrom(), h.run.GetAttempts())
	for _, s := range h.steps {
		fmt.Fprintf(&b, "\n  %d %s in %q: %s, settled %d, begun in %d, attempt %d", s.GetSequence(), s.GetName(),
			s.GetBranch(), strings.TrimPrefix(s.GetStatus().String(), "STEP_STATUS_"), s.GetSettled(), s.GetBegunIn(),
			s.GetAttemptNumber())
	}
	return b.String()
}

// results returns how many results the history has an order of.
func (h history) results() (most int64) {
	for _, s := range h.steps {
		most = max(most, s.GetSettled())
	}
	return most
}

// prefix returns the history as it was when k results had been settled: without the steps that began
// after those, and with later results still to come.
func (h history) prefix(k int64) history {
	run := proto.CloneOf(h.run)
	run.Status = kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING
	run.Output, run.Error, run.ContinuedAsRunId = nil, nil, nil
	last := int64(0)
	cancelled := false
	for _, s := range h.steps {
		if s.GetSettled() <= k && s.GetSettled() > 0 {
			last = max(last, s.GetSequence())
			cancelled = cancelled || s.GetName() == "kagzi:cancelled"
		}
	}
	if !cancelled {
		run.CancelRequestedAt = nil
	}
	p := history{run: run}
	for _, s := range h.steps {
		if s.GetSequence() > last {
			continue
		}
		if s.GetSettled() > k || s.GetSettled() < 0 {
			s = proto.CloneOf(s)
			s.Status, s.Settled = kagziv1.StepStatus_STEP_STATUS_RUNNING, 0
			s.Output, s.Error, s.FinishedAt, s.RetryAt, s.SignalTimedOut = nil, nil, nil, nil, false
			if s.GetAttemptNumber() > 1 && s.GetBegunIn() > 0 {
				s.BegunIn = 0 // it may have begun again later, and was not owed before
			}
		}
		p.steps = append(p.steps, s)
	}
	return p
}

// replay replays a history and returns what the code saw.
func (g *stage) replay(h history) (*way, error) {
	records := map[string]bool{}
	for _, s := range h.steps {
		records[s.GetName()] = true
	}
	w := kagzi.NewWorker(kagzi.WorkerOptions{Profile: kagzi.NoProfile})
	var (
		once sync.Once
		seen *way
	)
	kagzi.Handle(w, "script", func(ctx kagzi.Context, again int) (string, error) {
		way := g.newWay(nil, h.run.GetRunId(), records)
		once.Do(func() { seen = way })
		return g.service[0].script.act(ctx, way, again)
	})
	ctx, cancel := context.WithTimeout(g.ctx, time.Minute)
	defer cancel()
	err := seam.Replay(ctx, w, h.run, h.steps)
	return seen, err
}

// agree compares two logs of each branch, as far as both got.
func agree(a, b map[string][]string) error {
	for branch, one := range a {
		other := b[branch]
		n := min(len(one), len(other))
		for i := range n {
			if one[i] != other[i] {
				return fmt.Errorf("branch %q: %q here, %q there, after %q", branch, one[i], other[i], one[:i])
			}
		}
	}
	return nil
}

// compareReplays replays a run from every prefix of its history, and compares what the code saw.
func (g *stage) compareReplays(run string) error {
	h, err := g.history(run)
	if err != nil {
		return err
	}
	whole, err := g.replay(h)
	if err != nil {
		return fmt.Errorf("the whole replay: %w\n%s", err, h)
	}
	activations := g.activations(run)
	overridden := slices.ContainsFunc(h.steps, func(s *kagziv1.Step) bool { return s.GetOverriddenBy() != "" })
	if n := len(activations); n > 0 && activations[n-1].ended && !overridden { // that may be later
		if err := agree(activations[n-1].seen(), whole.seen()); err != nil {
			return fmt.Errorf("live and in the replay: %w\n%s", err, h)
		}
		for branch, live := range activations[n-1].seen() {
			if got := whole.seen()[branch]; len(got) < len(live) && branch == "" && // else the last may not be recorded
				h.run.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED {
				return fmt.Errorf("the replay saw %q of %q\n%s", got, live, h)
			}
		}
	}
	for k := range h.results() {
		part, err := g.replay(h.prefix(k))
		if err != nil {
			return fmt.Errorf("the replay of %d results: %w\n%s", k, err, h)
		}
		if k == 0 {
			continue // an empty history may be of a server that did not record sleeps whose time had passed
		}
		if err := agree(part.seen(), whole.seen()); err != nil {
			return fmt.Errorf("in the replay of %d results and of all: %w\n%s", k, err, h)
		}
	}
	return nil
}
