package kagzitest_test

import (
	"context"
	"errors"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/lab/host"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// event is a fault at a time. "cut", "silence", "deaf", "mute" and "stall" affect the host of a
// worker or the client, "kill" that of a worker. "off" and "drain" are operator commands for a
// worker, "pause" for the run.
type event struct {
	kind  string
	at    time.Duration
	who   int
	lasts time.Duration
}

// silence drops everything in one direction for d.
func (a *among) silence(h *host.Host, lost host.Way, d time.Duration) {
	if h.Hush(lost) {
		pause(a.eventful, d)
		h.Speak()
	}
}

// stall delays everything by up to d.
func (a *among) stall(h *host.Host, d time.Duration) {
	if h.Stall() {
		pause(a.eventful, d)
		h.Flow()
	}
}

// takeOff takes a worker offline in the store, without faults.
func (a *among) takeOff(who uint64) {
	id := a.hand(int(who % 2)).worker.ID()
	if id == "" {
		return
	}
	now := a.env.Store().Now()
	if _, err := a.env.Store().ForceOfflineWorker(context.Background(), engine.OfflineWorkerParams{
		WorkerID: id, Reason: engine.OfflineForced, AuditID: engine.NewID(now), Now: now,
	}); err != nil && !errors.Is(err, engine.ErrNotFound) {
		a.Errorf("worker offline: %v", err)
	}
}

// happen carries out an event.
func (a *among) happen(e event) {
	a.faults.hit(e.kind)
	switch e.kind {
	case "cut":
		a.someHost(e.who).Cut(host.All)
	case "silence":
		a.silence(a.someHost(e.who), host.Both, e.lasts)
	case "deaf":
		a.silence(a.someHost(e.who), host.Come, e.lasts)
	case "mute":
		a.silence(a.someHost(e.who), host.Sent, e.lasts)
	case "stall":
		a.stall(a.someHost(e.who), e.lasts)
	case "kill":
		h := a.hand(e.who)
		h.host.Die()
		pause(a.eventful, e.lasts) // meanwhile its code still runs, without effect
		h.kill()
	case "off":
		a.takeOff(uint64(e.who))
	case "drain":
		admin := kagziv1.NewAdminServiceClient(a.client.Conn())
		// refused if it is offline
		_, _ = admin.DrainWorker(a.ctx, &kagziv1.DrainWorkerRequest{WorkerId: a.hand(e.who).worker.ID()})
	case "pause":
		a.pauseRun(e.lasts)
	}
}

// pauseRun pauses the run for d.
func (a *among) pauseRun(d time.Duration) {
	a.mu.Lock()
	run := a.run
	a.mu.Unlock()
	if run == nil {
		return
	}
	_ = a.insist(func() error { return run.Pause(a.ctx, "a look") }) // refused if it has ended
	pause(a.eventful, d)
	_ = a.insist(func() error { return run.Resume(a.ctx, "go on") })
}
