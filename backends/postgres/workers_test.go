package postgres

import (
	"slices"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Forcing a worker offline frees its leases; a lease made at the same time would belong to nobody.
func TestKeyedClaimRacingDeregistration(t *testing.T) {
	a, b := rivals(t)
	register(t, a, "w1")
	keyed(t, a, 1, 1)
	claimed, err := meanwhile(t, b, deregister(b, "w1"), func() (engine.Claimed, error) {
		return a.Claim(t.Context(), claimParams(a, "w1", 1))
	})
	if err != nil || len(claimed.Tasks) > 0 || !slices.Equal(claimed.Offline, []string{"w1"}) {
		t.Fatalf("claimed %d runs, OFFLINE %q, %v, want none for w1, which is OFFLINE", len(claimed.Tasks),
			claimed.Offline, err)
	}
}

// deregister does what makes a worker OFFLINE, without the commit.
func deregister(s *Store, worker string) func(*tx) error {
	return func(x *tx) error {
		if _, err := x.offlineWorker(&engine.OfflineWorkerParams{
			WorkerID: worker, Reason: engine.OfflineForced, Now: s.Now()}); err != nil {
			return err
		}
		return x.send()
	}
}

func TestDrainSurvivesRegistrationAtOtherServer(t *testing.T) {
	a, b := rivals(t)
	register(t, a, "w1")
	known, err := a.GetWorker(t.Context(), "w1")
	if err != nil {
		t.Fatal(err)
	}
	w, err := meanwhile(t, b, func(x *tx) error {
		if _, err := x.oneWorker(lockWorkerSQL, args{"worker_id": "w1"}); err != nil {
			return err
		}
		_, err := x.exec(drainWorkerSQL, args{"worker_id": "w1"})
		return err
	}, func() (engine.Worker, error) {
		return a.RegisterWorker(t.Context(), engine.RegisterWorkerParams{Worker: known, Chosen: true, Now: a.Now()})
	})
	if err != nil || w.Status != engine.WorkerDraining {
		t.Errorf("the worker is %s, %v, want DRAINING", w.Status, err)
	}
	if got, err := a.GetWorker(t.Context(), "w1"); err != nil || got.Status != engine.WorkerDraining {
		t.Errorf("the worker stands as %s, %v, want DRAINING", got.Status, err)
	}
}

func TestHandoffRacingDeregistration(t *testing.T) {
	s, b := rivals(t)
	register(t, s, "w1")
	start(t, s, 1) // makes the namespace and the lane
	if claimed, err := s.Claim(t.Context(), claimParams(s, "w1", 1)); err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("claimed %d runs, %v, want 1", len(claimed.Tasks), err)
	}
	w := &waiting{worker: "w1", now: engine.Micros(s.Now())}
	known, err := meanwhile(t, b, deregister(b, "w1"), func() (engine.Worker, error) {
		if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{
			Runs: []engine.StartRun{newStart(s)}, Handoff: w}); err != nil {
			return engine.Worker{}, err
		}
		return s.GetWorker(t.Context(), "w1")
	})
	if err != nil || known.Status != engine.WorkerOnline {
		t.Errorf("after the start the worker is %s, %v, want it ONLINE still: a start waits for nobody's worker",
			known.Status, err)
	}
	w.told(t, 0, 1, 0)
}

func TestInterruptedDeregistrationFreesRunsLater(t *testing.T) {
	s := open(t).(*Store)
	register(t, s, "w1")
	long := newStart(s)
	long.Timeouts.Heartbeat = time.Hour // only for lost workers
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{long}}); err != nil {
		t.Fatal(err)
	}
	claimed, err := s.Claim(t.Context(), claimParams(s, "w1", 1))
	if err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("claimed %d runs, %v, want 1", len(claimed.Tasks), err)
	}
	_, err = write(s, "take off and go no further", func(x *tx) (none struct{}, err error) {
		return none, x.queue(offlineWorkerSQL, args{
			"worker_id": "w1", "reason": int16(engine.OfflineForced), "now": micros(s.Now())})
	})
	if err != nil {
		t.Fatal(err)
	}
	if freed, err := s.FreeLost(t.Context(), s.Now()); len(freed.Runs) != 1 || !freed.Next.IsZero() || err != nil {
		t.Errorf("freed %+v, %v, want one run and no other", freed, err)
	}
	run, err := s.GetRun(t.Context(), "default", claimed.Tasks[0].Run.ID)
	if err != nil || run.Status != engine.RunPending || run.LeaseLosses != 0 {
		t.Errorf("run is %s with %d losses, %v, want PENDING with none", run.Status, run.LeaseLosses, err)
	}
}

func TestReturningWorkerKeepsRuns(t *testing.T) {
	a, b := rivals(t)
	register(t, a, "w1")
	long := newStart(a)
	long.Timeouts.Heartbeat = time.Hour
	if _, err := a.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{long}}); err != nil {
		t.Fatal(err)
	}
	if claimed, err := a.Claim(t.Context(), claimParams(a, "w1", 1)); err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("claimed %d runs, %v, want 1", len(claimed.Tasks), err)
	}
	known, err := a.GetWorker(t.Context(), "w1")
	if err != nil {
		t.Fatal(err)
	}
	off := engine.OfflineWorkerParams{WorkerID: "w1", Reason: engine.OfflineLost, HeardAt: known.LastHeartbeatAt,
		Now: a.Now()}
	if taken, err := a.ForceOfflineWorker(t.Context(), off); err != nil || taken.Freed != 0 {
		t.Fatalf("freed %d runs, %v, want none yet", taken.Freed, err)
	}
	over := known.LastHeartbeatAt.Add(time.Hour)
	freed, err := meanwhile(t, b, func(x *tx) error {
		if _, err := x.registerWorker(&engine.RegisterWorkerParams{
			Worker: known, Chosen: true, Now: over}); err != nil {
			return err
		}
		return x.send()
	}, func() (int, error) {
		freed, err := a.FreeLost(t.Context(), over)
		return len(freed.Runs), err
	})
	if err != nil || freed != 0 {
		t.Errorf("freed %d runs, %v, want none", freed, err)
	}
}
