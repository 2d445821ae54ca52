package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/engine"
)

// Answers and rows in words, as far as the model knows them.

func errText(err error) string {
	answer := fmt.Sprintf("error of kind %d", engine.KindOf(err))
	if e, ok := errors.AsType[*engine.Error](err); ok && (e.Kind == engine.KindLeaseLost || e.Kind == engine.KindPrecondition) && e.Status != 0 {
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
	return fmt.Sprintf("run %s existed %t repeated %t", a.RunID, a.Existed, a.Repeated)
}

func verdictText(v engine.Verdict) string {
	return fmt.Sprintf("retry %t at %s, failures %d", v.Retry, clock(v.RetryAt), v.Failures)
}

// idsText is the ids in an order of their own.
func idsText(ids []engine.ID) string {
	var texts []string
	for _, id := range ids {
		texts = append(texts, id.String())
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

func freedText(f engine.Freed) string { return idsText(f.Runs) + " next " + clock(f.Next) }

func timedOutText(o engine.TimedOut) string {
	var texts []string
	for _, a := range o.Attempts {
		texts = append(texts, fmt.Sprintf("%s of %s: %s; ", a.Step, a.RunID, verdictText(a.Verdict)))
	}
	slices.Sort(texts)
	return strings.Join(texts, "") + "next " + clock(o.Next)
}

// timedOut is the answer about one attempt, behind which nothing is due.
func timedOut(run engine.ID, step string, v engine.Verdict) engine.TimedOut {
	return engine.TimedOut{Attempts: []engine.TimedOutAttempt{{RunID: run, Step: step, Verdict: v}}}
}

func begunText(b engine.Begun) string {
	return fmt.Sprintf("execute %t %s", b.Execute, stepLine(b.Step))
}

// stepLine is what the model knows of an attempt.
func stepLine(a engine.Step) string {
	line := fmt.Sprintf("%s#%d %s %s failures %d latest %t at %d %q", a.Name, a.Attempt, a.Kind, a.Status, a.Failures, a.Latest, a.Sequence, a.Output.Data)
	if a.Error != nil {
		line += " error " + a.Error.Message
	}
	if a.Status == engine.StepPending {
		line += " retry " + clock(a.RetryAt)
	}
	if a.Kind == engine.StepSleep {
		line += " wake " + clock(a.WakeAt)
	}
	return line
}

func runLine(r engine.Run) string {
	line := fmt.Sprintf("%s %s attempts %d failures %d steps %d due %s started %s finished %s worker %q waits %q", r.Type, r.Status, r.Attempts,
		r.Failures, r.Steps, clock(r.AvailableAt), clock(r.StartedAt), clock(r.FinishedAt), r.WorkerID, r.WaitingFor)
	if r.Status == engine.RunPending || r.Status == engine.RunSleeping {
		line += fmt.Sprintf(" losses %d", r.LeaseLosses)
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

// seenRun is a run as its store shows it, in the words of the model.
func seenRun(ctx context.Context, store engine.Store, id engine.ID) string {
	r, err := store.GetRun(ctx, space, id)
	if err != nil {
		return errText(err)
	}
	steps, _, err := store.ListSteps(ctx, space, id, "", engine.Page{Limit: engine.MaxPage})
	if err != nil {
		return errText(err)
	}
	text := runLine(r)
	for _, a := range steps {
		text += "\n" + stepLine(a)
	}
	return text
}

// everything is all rows of the namespace, and those of none, in every field that Views show.
func everything(s *stage, store engine.Store) string {
	s.Helper()
	var b strings.Builder
	page := engine.Page{Limit: engine.MaxPage}
	runs, _, err := store.ListRuns(s.ctx, engine.RunFilter{Namespace: space}, page)
	s.must(err, "ListRuns")
	for _, listed := range runs {
		run, err := store.GetRun(s.ctx, space, listed.ID)
		s.must(err, "GetRun")
		b.WriteString(runText(run))
		steps, _, err := store.ListSteps(s.ctx, space, run.ID, "", page)
		s.must(err, "ListSteps")
		for _, step := range steps {
			b.WriteString(stepText(step))
		}
	}
	workers, _, err := store.ListWorkers(s.ctx, engine.WorkerFilter{}, page)
	s.must(err, "ListWorkers")
	for _, w := range workers {
		b.WriteString(workerText(w))
		leases, err := store.HeldBy(s.ctx, w.ID)
		s.must(err, "HeldBy")
		for _, h := range leases {
			b.WriteString(lines("lease of", h.Lease.RunID, "token", h.Lease.Token.Wire()))
		}
	}
	keys, _, err := store.ListKeys(s.ctx, page)
	s.must(err, "ListKeys")
	for _, k := range keys {
		b.WriteString(keyText(k))
	}
	for _, namespace := range []string{space, ""} {
		events, _, err := store.ListAuditEvents(s.ctx, engine.AuditFilter{Namespace: namespace}, page)
		s.must(err, "ListAuditEvents")
		for _, e := range events {
			b.WriteString(auditText(e))
		}
	}
	return b.String()
}
