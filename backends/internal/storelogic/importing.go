package storelogic

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// ImportRuns makes runs with the given ids and fields.
func ImportRuns(tx Tx, p engine.ImportRunsParams) (engine.Started, error) {
	u := begin(tx, p.Now)
	if p.RequestID != "" {
		id, err := tx.Requested(p.Namespace, p.RequestID)
		if err != nil {
			return engine.Started{}, err
		}
		if !id.IsZero() {
			return u.importedBefore(p.Namespace, p.RequestID, id, &p.Runs[0].Run)
		}
	}
	for i := range p.Runs {
		taken, err := u.find("", p.Runs[i].Run.ID)
		if err != nil {
			return engine.Started{}, err
		}
		if taken != nil {
			return engine.Started{}, &engine.Error{
				Kind: engine.KindExists, Subject: "run", SubjectID: taken.ID.String(), Status: taken.Status,
				Message: "run " + taken.ID.String() + " exists already"}
		}
	}
	if err := u.ensureNamespace(p.Namespace, p.NamespaceMustExist); err != nil {
		return engine.Started{}, err
	}
	clear(u.runs)
	for i := range p.Runs {
		in := p.Runs[i]
		in.Run.RequestID = ""
		if i == 0 {
			in.Run.RequestID = p.RequestID
		}
		if err := u.importRun(&in, p.Namespace); err != nil {
			return engine.Started{}, err
		}
	}
	if err := u.tie(p.Runs); err != nil {
		return engine.Started{}, err
	}
	first := subject{p.Namespace, "run", p.Runs[0].Run.ID.String()}
	if err := u.audit(p.By, p.AuditID, "ImportWorkflow", first, "", fmt.Sprintf("%d runs", len(p.Runs))); err != nil {
		return engine.Started{}, err
	}
	return engine.Started{RunID: p.Runs[0].Run.ID}, u.flush()
}

func (u *unitOfWork) importedBefore(namespace, requestID string, id engine.ID,
	wanted *engine.Run) (engine.Started, error) {
	run, err := u.find(namespace, id)
	if err != nil {
		return engine.Started{}, err
	}
	if run == nil { // deleted since
		first, err := u.tx.LeftRequest(namespace, requestID)
		if err == nil && (first == nil || first.Type != wanted.Type || first.Queue != wanted.Queue) {
			err = requestConflict(id)
		}
		return engine.Started{RunID: id, Existed: true, Repeated: true}, err
	}
	same, err := u.asked(id, wanted)
	if err != nil {
		return engine.Started{}, err
	}
	if run.Origin != engine.OriginImport || !same {
		return engine.Started{}, requestConflict(id)
	}
	return engine.Started{RunID: id, Repeated: true}, nil
}

func (u *unitOfWork) importRun(in *engine.ImportedRun, namespace string) error {
	run := &in.Run
	open := !run.Status.Ended()
	*run = engine.Imported(*run, namespace, u.now)
	steps := make([]engine.Step, len(in.Steps))
	made := Run{Run: *run, TiedTo: run.Tied() || len(in.Signals) > 0} // its end counts what it has not received
	for i, s := range in.Steps {
		steps[i] = unleased(s, run.ID, open, u.now)
		keepPlace(&steps[i], &made)
	}
	if err := u.tx.ImportRun(&made); err != nil {
		return err
	}
	if len(steps) > 0 {
		if err := u.tx.InsertSteps(steps); err != nil {
			return err
		}
	}
	if len(in.Signals) > 0 {
		signals := make([]engine.Signal, len(in.Signals))
		for i, s := range in.Signals {
			s.RunID = run.ID
			signals[i] = s
		}
		if err := u.tx.InsertSignals(signals); err != nil {
			return err
		}
	}
	u.tx.Notify(engine.Notification{Kind: engine.NotifyRun, ID: run.ID})
	if open && !run.ExpiresAt().IsZero() {
		u.notifyTimer()
	}
	return nil
}

// unleased returns an attempt without its lease. In an open run, a running FUNCTION is interrupted,
// and so is a child that is not part of the import.
func unleased(step engine.Step, run engine.ID, open bool, now time.Time) engine.Step {
	step.RunID, step.Token, step.Awaited = run, engine.Token{}, 0
	gone := step.Kind == engine.StepFunction || step.Kind == engine.StepChild && step.ChildRunID.IsZero()
	if open && gone && step.Status == engine.StepRunning {
		failure := engine.InterruptedFailure()
		step.Status, step.Error, step.FinishedAt, step.TimeoutAt = engine.StepFailed, &failure, now, time.Time{}
	}
	return step
}

// tie sets TiedTo on the open parents of the import, as a start would have done.
func (u *unitOfWork) tie(runs []engine.ImportedRun) error {
	for i := range runs {
		if runs[i].Run.ParentRunID.IsZero() {
			continue
		}
		parent, err := u.find("", runs[i].Run.ParentRunID)
		if err != nil {
			return err
		}
		if parent != nil && !parent.Status.Ended() && !parent.TiedTo {
			parent.TiedTo = true
			u.change(parent)
		}
	}
	return nil
}
