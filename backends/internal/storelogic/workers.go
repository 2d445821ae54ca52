package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// AuditDrain keeps who has just had a worker drain; w is the worker as it was before. Without an
// AuditID it was the worker itself.
func AuditDrain(tx Tx, w *engine.Worker, p *engine.DrainWorkerParams) error {
	if w.Status == engine.WorkerDraining {
		return nil
	}
	return auditWorker(tx, w, "DrainWorker", p.By, p.AuditID, p.Now)
}

// AuditOffline keeps who took the worker off. Without an AuditID it left or was lost.
func AuditOffline(tx Tx, w *engine.Worker, p *engine.OfflineWorkerParams) error {
	return auditWorker(tx, w, "ForceOfflineWorker", p.By, p.AuditID, p.Now)
}

// FreeHeld frees these runs of the worker that p deregisters, or has deregistered, as the reason
// says, and returns how many.
func FreeHeld(tx Tx, w *engine.Worker, ids []engine.ID, p *engine.OfflineWorkerParams) (int, error) {
	if p.Reason == engine.OfflineLost {
		lost, err := LoseRuns(tx, ids, w.LastHeartbeatAt, p.Now)
		return len(lost), err
	}
	return len(ids), FreeRuns(tx, ids, p.Now)
}

// DeregisteredBy says that the worker, nil when there is none, is OFFLINE since this call.
func DeregisteredBy(w *engine.Worker, p *engine.OfflineWorkerParams) bool {
	return w != nil && w.Status == engine.WorkerOffline && w.Reason == p.Reason && w.DeregisteredAt.Equal(p.Now)
}

func auditWorker(tx Tx, w *engine.Worker, method string, by engine.Actor, id engine.ID, now time.Time) error {
	if id.IsZero() {
		return nil
	}
	return begin(tx, now).audit(by, id, method, onWorker(w), "", "")
}
