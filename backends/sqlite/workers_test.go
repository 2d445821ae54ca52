package sqlite

import (
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func TestInterruptedDeregistrationFreesRunsLater(t *testing.T) {
	s := open(t).(*Store)
	_, err := s.RegisterWorker(t.Context(), engine.RegisterWorkerParams{
		Worker: engine.Worker{ID: "w1", Namespace: "default", InstanceID: "i1", Queues: []string{"q"},
			Types: []string{"w"}, MaxConcurrent: 10},
		Chosen: true, Now: s.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	id := engine.NewID(s.Now())
	_, err = s.StartRuns(t.Context(), engine.StartRunsParams{
		Runs: []engine.StartRun{{Run: engine.Run{
			ID: id, Namespace: "default", Queue: "q", Type: "w", CreatedAt: s.Now(), AvailableAt: s.Now(),
			Timeouts: engine.Timeouts{Heartbeat: time.Hour}}}}}) // only for lost workers
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := s.Claim(t.Context(), engine.ClaimParams{
		Namespace: "default", Queue: "q", Types: []string{"w"}, HistoryBytes: engine.HistoryBytes,
		Slots: []engine.ClaimSlot{{WorkerID: "w1", Token: engine.NewToken()}}, Now: s.Now()})
	if err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("claimed %d runs, %v, want 1", len(claimed.Tasks), err)
	}
	_, err = write(t.Context(), s, "take off and go no further", 0, func(x *tx) (int64, error) {
		return x.exec(&offlineWorkerSQL, text("worker_id", "w1"), num("reason", engine.OfflineForced),
			instant("now", s.Now()))
	})
	if err != nil {
		t.Fatal(err)
	}
	if freed, err := s.FreeLost(t.Context(), s.Now()); len(freed.Runs) != 1 || !freed.Next.IsZero() || err != nil {
		t.Errorf("freed %+v, %v, want one run and no other", freed, err)
	}
	run, err := s.GetRun(t.Context(), "default", id)
	if err != nil || run.Status != engine.RunPending || run.LeaseLosses != 0 {
		t.Errorf("run is %s with %d losses, %v, want PENDING with none", run.Status, run.LeaseLosses, err)
	}
}
