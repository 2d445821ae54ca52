package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/render"
)

// facts are all that a check goes by: what the caller got, what the server has recorded, and what the steps left on disk.
type facts struct {
	status kagzi.Status
	output json.RawMessage // as Result gave it to the caller; empty when the run ended without one
	err    string          // of a run that ended without a result
	took   time.Duration   // from its creation to its end, by the server's clock
	steps  []attempt       // every attempt, in the order in which the run began its steps
	ledger []execution     // in the order in which they began
	slept  bool            // the run was seen SLEEPING
	killed *kill           // of the run whose worker was killed
}

// attempt is one attempt of a step as the server has recorded it.
type attempt struct {
	name     string
	kind     string // function or sleep
	status   string
	number   int
	output   string // JSON
	errType  string
	errText  string
	started  time.Time
	finished time.Time // zero when it has not
	wakeUp   time.Time // of a sleep
}

// kill is what was known when a worker was killed.
type kill struct {
	worker   string
	recorded []attempt // just before
}

func (a attempt) completed() bool { return a.status == "COMPLETED" }

// collect gathers the facts about a run when it has ended.
func collect(ctx context.Context, s *stage, run *kagzi.Run) (facts, error) {
	var f facts
	output, err := kagzi.Result[json.RawMessage](ctx, run)
	var failed *kagzi.RunError
	switch {
	case errors.As(err, &failed):
		f.err = failed.Error()
	case err != nil:
		return f, fmt.Errorf("result: %w", err)
	}
	f.output = output
	details, err := run.Describe(ctx)
	if err != nil {
		return f, fmt.Errorf("run: %w", err)
	}
	f.status, f.took = details.Status, details.FinishedAt.Sub(details.CreatedAt)
	if f.steps, err = listSteps(ctx, s.api, run.ID()); err != nil {
		return f, err
	}
	f.ledger, err = s.ledger.read(run.ID())
	return f, err
}

// listSteps asks the server for every attempt of a run's steps.
func listSteps(ctx context.Context, api tui.API, runID string) ([]attempt, error) {
	var all []attempt
	request := &kagziv1.ListStepsRequest{Namespace: namespace, RunId: runID, Page: &kagziv1.PageRequest{PageSize: 1000}}
	for {
		page, err := api.ListSteps(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("steps: %w", err)
		}
		for _, s := range page.GetSteps() {
			all = append(all, attemptOf(s))
		}
		request.Page.PageToken = page.GetPage().GetNextPageToken()
		if request.Page.PageToken == "" {
			return all, nil
		}
	}
}

func attemptOf(s *kagziv1.Step) attempt {
	a := attempt{
		name: s.GetName(), kind: render.StepKind(s.GetKind()), status: render.StepStatus(s.GetStatus()), number: int(s.GetAttemptNumber()),
		output: string(s.GetOutput().GetData()), errType: s.GetError().GetType(), errText: s.GetError().GetMessage(),
		started: s.GetStartedAt().AsTime(),
	}
	if s.FinishedAt != nil {
		a.finished = s.FinishedAt.AsTime()
	}
	if s.WakeUpAt != nil {
		a.wakeUp = s.WakeUpAt.AsTime()
	}
	return a
}
