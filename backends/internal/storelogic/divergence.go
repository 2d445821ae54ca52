package storelogic

import (
	"github.com/kagzi/kagzi/engine"
)

// diverge records that the code of the run's worker has diverged.
func (u *unitOfWork) diverge(run *Run, d engine.Divergence) (err error) {
	if d.BuildID, err = u.tx.BuildOf(run.Holder); err != nil {
		return err
	}
	if d.BuildID == "" {
		return engine.Invalid("divergence", "worker %s has no build: register it with a build_id", run.Holder)
	}
	d.ReportedAt = u.now
	run.Report(d)
	u.change(run)
	u.tx.Notify(engine.Notification{Kind: engine.NotifyDiverged})
	return nil
}

// forgetDivergences forgets what builds have reported, because the run has changed since.
func (u *unitOfWork) forgetDivergences(run *Run) {
	if len(run.Divergences) > 0 {
		u.change(run)
		run.Divergences = nil
	}
}

// alone is NotAlone if a worker of another build may reach what the code of this one has not.
func (u *unitOfWork) alone(run *Run, unreached []string) error {
	if len(unreached) == 0 {
		return nil
	}
	build, err := u.tx.BuildOf(run.Holder)
	if err != nil {
		return err
	}
	workers, err := u.tx.InService(run.Namespace)
	if err != nil {
		return err
	}
	for i := range workers {
		if w := &workers[i]; w.BuildID != build && !run.DivergedIn(w.BuildID) && w.Serves(&run.Run) {
			return engine.NotAlone(w.ID)
		}
	}
	return nil
}

// PauseDiverged pauses runs that no build in service can continue.
func PauseDiverged(tx Tx, p engine.PauseDivergedParams) ([]engine.ID, error) {
	u := begin(tx, p.Now)
	kinds, err := tx.DivergedKinds()
	if err != nil {
		return nil, err
	}
	workers := map[string][]engine.Worker{}
	var paused []engine.ID
	for _, kind := range kinds {
		in, known := workers[kind.Lane.Namespace]
		if !known {
			if in, err = tx.InService(kind.Lane.Namespace); err != nil {
				return nil, err
			}
			workers[kind.Lane.Namespace] = in
		}
		if len(paused) == p.Limit || !engine.Stranded(&kind.Lane, kind.Builds, in) {
			continue
		}
		ids, err := tx.DivergedRuns(kind, p.Limit-len(paused))
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			run, err := u.find("", id)
			if err != nil {
				return nil, err
			}
			if run == nil || run.AvailableAt.IsZero() || run.Builds() != kind.Builds {
				continue // another transaction was faster
			}
			reports := run.Divergences // they are why it is paused
			u.pause(run)
			run.Divergences = reports
			paused = append(paused, id)
		}
	}
	return paused, u.flush()
}
