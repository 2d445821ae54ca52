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

// facts are the input of a check: what the caller got, what the server recorded, and what the steps
// left on disk, for a run and the runs that belong to it. Facts about a schedule have no run of
// their own.
type facts struct {
	status     kagzi.Status
	output     json.RawMessage // as returned to the caller by Result; empty if the run ended without one
	err        string          // of a run that ended without a result
	externalID string
	created    time.Time     // by the server's clock
	took       time.Duration // from creation to end, by the server's clock
	steps      []attempt     // every attempt, in the order in which the run started its steps
	ledger     []execution   // in the order in which they started
	signals    []signal      // in order of arrival
	waits      []string      // everything the run was seen SLEEPING for: "timer nap"

	// children in the order in which they were started, or a schedule's runs in the order of their
	// ticks
	runs   []facts
	killed *kill             // of the run whose worker was killed
	sent   int               // signals sent to the run
	sdks   map[string]string // of workers of several languages, by id

	tick     time.Time              // of a run started by a schedule
	schedule *kagzi.ScheduleDetails // at the end
	fired    int                    // runs started by the schedule before the pause
}

// attempt is a recorded attempt of a step.
type attempt struct {
	name     string
	kind     string // function, sleep, signal or child_workflow
	status   string
	number   int
	output   string // JSON
	errType  string
	errText  string
	started  time.Time
	finished time.Time // zero if unfinished
	wakeUp   time.Time // of a sleep, or of a wait with a limit
	childID  string    // run id of a child
}

// kill is what was known when a worker was killed.
type kill struct {
	worker   string
	recorded []attempt // just before
}

func (a attempt) completed() bool { return a.status == "COMPLETED" }

// signal is a signal received by a run.
type signal struct {
	name    string
	id      string
	payload string // JSON
	step    string // the step that consumed it
}

// collect gathers the facts about an ended run and its children.
func collect(ctx context.Context, s *environment, run *kagzi.Run, f *facts) error {
	output, err := kagzi.Result[json.RawMessage](ctx, run)
	var failed *kagzi.RunError
	switch {
	case errors.As(err, &failed):
		f.err = failed.Error()
	case err != nil:
		return fmt.Errorf("result: %w", err)
	}
	f.output = output
	details, err := run.Describe(ctx)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	f.status, f.externalID, f.tick = details.Status, details.ExternalID, details.ScheduledAt
	f.created, f.took = details.CreatedAt, details.FinishedAt.Sub(details.CreatedAt)
	if f.steps, err = listSteps(ctx, s.api, run.ID()); err != nil {
		return err
	}
	if f.signals, err = listSignals(ctx, s.api, run.ID()); err != nil {
		return err
	}
	if f.ledger, err = s.ledger.read(run.ID()); err != nil {
		return err
	}
	for _, step := range f.steps {
		if step.childID == "" {
			continue
		}
		var child facts
		if err := collect(ctx, s, s.client.Run(step.childID), &child); err != nil {
			return fmt.Errorf("child %s: %w", step.name, err)
		}
		f.runs = append(f.runs, child)
	}
	return nil
}

// listSignals lists the signals of a run. Runs of the demo have at most one page.
func listSignals(ctx context.Context, api tui.API, runID string) ([]signal, error) {
	answer, err := api.ListSignals(ctx, &kagziv1.ListSignalsRequest{Namespace: namespace, RunId: runID})
	if err != nil {
		return nil, fmt.Errorf("signals: %w", err)
	}
	var all []signal
	for _, s := range answer.GetSignals() {
		all = append(all, signal{name: s.GetName(), id: s.GetSignalId(), payload: string(s.GetPayload().GetData()),
			step: s.GetStepName()})
	}
	return all, nil
}

// listSteps lists every attempt of a run's steps.
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
		name: s.GetName(), kind: render.StepKind(s.GetKind()), status: render.StepStatus(s.GetStatus()),
		number: int(s.GetAttemptNumber()),
		output: string(s.GetOutput().GetData()), errType: s.GetError().GetType(), errText: s.GetError().GetMessage(),
		started: s.GetStartedAt().AsTime(), childID: s.GetChildRunId(),
	}
	if s.FinishedAt != nil {
		a.finished = s.FinishedAt.AsTime()
	}
	if s.WakeUpAt != nil {
		a.wakeUp = s.WakeUpAt.AsTime()
	}
	return a
}
