package storelogic

import (
	"time"

	"github.com/kagzi/kagzi/engine"
)

// AuditDrain writes the audit event for draining a worker; w is the worker before. Without an
// AuditID the worker itself asked, and there is no event.
func AuditDrain(tx Tx, w *engine.Worker, p *engine.DrainWorkerParams) error {
	if w.Status == engine.WorkerDraining {
		return nil
	}
	return auditWorker(tx, w, "DrainWorker", p.By, p.AuditID, p.Now)
}

// AuditOffline writes the audit event for forcing a worker offline. Without an AuditID the worker
// left or was lost, and there is no event.
func AuditOffline(tx Tx, w *engine.Worker, p *engine.OfflineWorkerParams) error {
	return auditWorker(tx, w, "ForceOfflineWorker", p.By, p.AuditID, p.Now)
}

// FreeHeld frees these runs of the worker that p deregisters or has deregistered, as the reason
// says, and returns how many.
func FreeHeld(tx Tx, w *engine.Worker, ids []engine.ID, p *engine.OfflineWorkerParams) (int, error) {
	if p.Reason == engine.OfflineLost {
		lost, err := LoseRuns(tx, ids, w.LastHeartbeatAt, p.Now)
		return len(lost), err
	}
	return len(ids), FreeRuns(tx, ids, p.Now)
}

// DeregisteredBy says whether this call made the worker OFFLINE; w may be nil.
func DeregisteredBy(w *engine.Worker, p *engine.OfflineWorkerParams) bool {
	return w != nil && w.Status == engine.WorkerOffline && w.Reason == p.Reason && w.DeregisteredAt.Equal(p.Now)
}

func auditWorker(tx Tx, w *engine.Worker, method string, by engine.Actor, id engine.ID, now time.Time) error {
	if id.IsZero() {
		return nil
	}
	return begin(tx, now).audit(by, id, method, onWorker(w), "", "")
}
