package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/kagzi/kagzi/sdk"
)

// stepRuns counts how often the code of a step ran, by run.
type stepRuns struct {
	mu sync.Mutex
	of map[string]int
}

func (e *stepRuns) add(run string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of[run]++
}

func (e *stepRuns) count(run string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of[run]
}

func TestTheRetriesOfStepsAndOfTheRunAreApart(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ran := &stepRuns{of: map[string]int{}}
		s.work(t, kagzi.WorkerOptions{}, func(w *kagzi.Worker) {
			kagzi.Handle(w, "doomed", func(ctx kagzi.Context, _ int) (int, error) {
				return kagzi.Step(ctx, "charge", func(context.Context) (int, error) {
					ran.add(kagzi.Info(ctx).RunID)
					return 0, errors.New("declined")
				})
			})
			kagzi.Handle(w, "parent", func(ctx kagzi.Context, _ int) (string, error) {
				child, err := kagzi.StartChild[int](ctx, "child", "doomed", 0,
					kagzi.ChildOptions{StepRetry: times(2), RunRetry: times(3)})
				if err != nil {
					return "", err
				}
				_, _ = child.Wait(ctx)
				return child.RunID(), nil
			})
		})
		ctx, c := within(t, time.Minute), s.client(t)
		check := func(what, run string, steps, attempts int) {
			w := s.await(t, run)
			if w.Status != failed || ran.count(run) != steps*attempts || int(w.Attempts) != attempts ||
				int(w.GetStepRetries()) != (steps-1)*attempts {
				t.Errorf("%s: %d executions, then %s at attempt %d with %d retries of steps; want %d, attempt %d and %d",
					what, ran.count(run), w.Status, w.Attempts, w.GetStepRetries(), steps*attempts, attempts,
					(steps-1)*attempts)
			}
		}
		for _, o := range []struct {
			what            string
			options         kagzi.StartOptions
			steps, attempts int
		}{
			{"StepRetry", kagzi.StartOptions{StepRetry: times(4)}, 4, 1},
			{"RunRetry", kagzi.StartOptions{StepRetry: times(1), RunRetry: times(3)}, 1, 3},
			{"both", kagzi.StartOptions{StepRetry: times(3), RunRetry: times(2)}, 3, 2},
		} {
			check(o.what, fine(kagzi.Start(ctx, c, "doomed", 0, o.options))(t).ID(), o.steps, o.attempts)
		}
		old := kagzi.StartOptions{}
		old.Retry = times(3) //nolint:staticcheck // what it means must not change
		check("Retry", fine(kagzi.Start(ctx, c, "doomed", 0, old))(t).ID(), 3, 3)

		many := fine(kagzi.StartMany(ctx, c, "doomed", []int{1, 2}, kagzi.StartOptions{StepRetry: times(2)}))(t)
		for i, run := range many {
			check(fmt.Sprint("of many ", i), run.ID(), 2, 1)
		}
		parent := fine(kagzi.Start(ctx, c, "parent", 0, kagzi.StartOptions{}))(t)
		check("child", fine(kagzi.Result[string](ctx, parent))(t), 2, 3)

		plan := fine(kagzi.CreateSchedule(ctx, c, "doomed", "@yearly", 0,
			kagzi.ScheduleOptions{StepRetry: times(2), RunRetry: times(2)}))(t)
		check("schedule", fine(plan.Trigger(ctx, kagzi.TriggerOptions{}))(t).ID(), 2, 2)
		fine(plan.Update(ctx, kagzi.ScheduleUpdate{RunRetry: times(3)}))(t)
		check("schedule with another policy of runs", fine(plan.Trigger(ctx, kagzi.TriggerOptions{}))(t).ID(), 2, 3)
		fine(plan.Update(ctx, kagzi.ScheduleUpdate{StepRetry: times(3)}))(t)
		check("schedule with a policy of steps", fine(plan.Trigger(ctx, kagzi.TriggerOptions{}))(t).ID(), 3, 1)

		again := fine(c.Run(many[0].ID()).Retry(ctx, kagzi.RetryOptions{}))(t)
		check("retry of an ended run", again.ID(), 2, 1)
	})
}

// times returns a policy of n attempts without a delay that a test would notice.
func times(n int) *kagzi.Retry { return &kagzi.Retry{Attempts: n, Initial: time.Millisecond} }
