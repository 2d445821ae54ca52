package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/backends/storetest/internal/fixture"
	"github.com/kagzi/kagzi/engine"
)

// Answers and rows as text, as far as the model knows them.

func errText(err error) string {
	answer := fmt.Sprintf("error of kind %d", engine.KindOf(err))
	if e, ok := errors.AsType[*engine.Error](err); ok &&
		(e.Kind == engine.KindLeaseLost || e.Kind == engine.KindPrecondition) && e.Status != 0 {
		answer += " " + e.Status.String()
	}
	if engine.KindOf(err) == engine.KindInternal {
		answer += ": " + err.Error()
	}
	return answer
}

func errOr(err error, answer string) string {
	if err != nil {
		return errText(err)
	}
	return answer
}

func startedText(a engine.Started) string {
	if a.Err != nil {
		return errText(a.Err)
	}
	return fmt.Sprintf("run %s existed %t other input %t repeated %t", a.RunID, a.Existed, a.OtherInput, a.Repeated)
}

func freedText(f engine.Freed) string {
	return fixture.IDsText(f.Runs) + " next " + fixture.Clock(f.Next)
}

func begunText(b engine.Begun) string {
	return fmt.Sprintf("execute %t %s", b.Execute, stepLine(b.Step))
}

// stepLine describes what the model knows of an attempt.
func stepLine(a engine.Step) string {
	line := fmt.Sprintf("%s#%d %s %s failures %d latest %t at %d %q", a.Name, a.Attempt, a.Kind, a.Status, a.Failures,
		a.Latest, a.Sequence, a.Output.Data)
	if a.Error != nil {
		line += " error " + a.Error.Message
	}
	if a.Status == engine.StepPending {
		line += " retry " + fixture.Clock(a.RetryAt)
	}
	if a.Settled != 0 || a.BegunIn != 0 {
		line += fmt.Sprintf(" settled %d begun in %d", a.Settled, a.BegunIn)
	}
	if a.Kind == engine.StepSleep {
		line += " wake " + fixture.Clock(a.WakeAt)
	}
	return line
}

func runLine(r engine.Run) string {
	line := fmt.Sprintf("%s %s attempts %d failures %d steps %d due %s started %s finished %s worker %q waits %q",
		r.Type, r.Status, r.Attempts,
		r.Failures, r.Steps, fixture.Clock(r.AvailableAt), fixture.Clock(r.StartedAt), fixture.Clock(r.FinishedAt),
		r.WorkerID, r.WaitingFor)
	if r.Status == engine.RunPending || r.Status == engine.RunSleeping {
		line += fmt.Sprintf(" losses %d", r.LeaseLosses)
	}
	if r.OwedFrom != 0 {
		line += fmt.Sprintf(" owed from %d", r.OwedFrom)
	}
	if s := r.Suspect; s.Is() {
		line += fmt.Sprintf(" suspect of %d of %s at %s again %t", s.Of, s.Worker, fixture.Clock(s.At), s.Again)
	}
	if r.Error != nil && r.Status.Ended() {
		line += " error " + r.Error.Message
	}
	return line
}

func (r *modelRun) String() string {
	steps := slices.Clone(r.attempts)
	slices.SortStableFunc(steps, func(a, b *engine.Step) int { return int(a.Sequence - b.Sequence) })
	text := runLine(r.Run)
	for _, a := range steps {
		text += "\n" + stepLine(*a)
	}
	return text
}

// seenRun describes a run as its store shows it, in the model's terms.
func seenRun(ctx context.Context, store engine.Store, id engine.ID) string {
	r, err := store.GetRun(ctx, fixture.Space, id)
	if err != nil {
		return errText(err)
	}
	steps, _, err := store.ListSteps(ctx, fixture.Space, id, engine.StepFilter{}, engine.Page{Limit: engine.MaxPage})
	if err != nil {
		return errText(err)
	}
	text := runLine(r)
	for _, a := range steps {
		text += "\n" + stepLine(a)
	}
	return text
}

// everything describes all rows of the namespace, and those of none, in every field that Views
// show.
func everything(s *fixture.F, store engine.Store) string {
	s.Helper()
	var b strings.Builder
	page := engine.Page{Limit: engine.MaxPage}
	runs, _, err := store.ListRuns(s.Ctx, engine.RunFilter{Namespace: fixture.Space}, page)
	s.Must(err, "ListRuns")
	for _, listed := range runs {
		run, err := store.GetRun(s.Ctx, fixture.Space, listed.ID)
		s.Must(err, "GetRun")
		b.WriteString(fixture.RunText(run))
		steps, _, err := store.ListSteps(s.Ctx, fixture.Space, run.ID, engine.StepFilter{}, page)
		s.Must(err, "ListSteps")
		for _, step := range steps {
			b.WriteString(fixture.StepText(step))
		}
	}
	workers, _, err := store.ListWorkers(s.Ctx, engine.WorkerFilter{}, page)
	s.Must(err, "ListWorkers")
	for _, w := range workers {
		b.WriteString(fixture.WorkerText(w))
		leases, err := store.HeldBy(s.Ctx, w.ID)
		s.Must(err, "HeldBy")
		for _, h := range leases {
			b.WriteString(fixture.Lines("lease of", h.Lease.RunID, "token", h.Lease.Token.Wire()))
		}
	}
	keys, _, err := store.ListKeys(s.Ctx, page)
	s.Must(err, "ListKeys")
	for _, k := range keys {
		b.WriteString(fixture.KeyText(k))
	}
	for _, namespace := range []string{fixture.Space, ""} {
		events, _, err := store.ListAuditEvents(s.Ctx, engine.AuditFilter{Namespace: namespace}, page)
		s.Must(err, "ListAuditEvents")
		for _, e := range events {
			b.WriteString(fixture.AuditText(e))
		}
	}
	return b.String()
}
