package storetest

import (
	"fmt"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// beatKind is a heartbeat, what it must say, and what there is afterwards.
type beatKind struct {
	params engine.HeartbeatParams
	status engine.WorkerStatus // zero: it must be refused
	lost   []engine.Lease
	told   []engine.Lease // that cancellation was asked for
	held   int            // leases of the worker's afterwards
	heard  time.Time
	stats  engine.WorkerStats
	freed  engine.Lease
}

// beatKinds is several workers of every kind, each with a heartbeat of its own. The workers are new.
func (s *stage) beatKinds() []beatKind {
	s.Helper()
	var kinds []beatKind
	was := engine.WorkerStats{CPUPercent: 1}
	add := func(claims int, change func(k *beatKind, leases []engine.Lease)) {
		s.Helper()
		worker := s.worker(fmt.Sprintf("w%x", s.id()))
		s.heartbeat(worker, func(p *engine.HeartbeatParams) { p.Completed, p.Failed, p.Stats = 100, 10, &was })
		var leases []engine.Lease
		for range claims {
			s.start()
			leases = append(leases, s.claim(worker).Lease)
		}
		n := len(kinds)
		k := beatKind{status: engine.WorkerOnline, held: claims, heard: s.now.Add(time.Minute), stats: was}
		k.params = engine.HeartbeatParams{WorkerID: worker, Active: n, Completed: n, Failed: 2 * n, Held: leases, Whole: true, NameWithin: time.Minute, Now: k.heard}
		k.params.Patience = time.Duration(n%2) * 10 * time.Millisecond
		change(&k, leases)
		kinds = append(kinds, k)
	}
	for range 4 {
		add(0, func(*beatKind, []engine.Lease) {})
		add(0, func(k *beatKind, _ []engine.Lease) {
			k.stats = engine.WorkerStats{CPUPercent: 50, MemoryBytes: int64(len(kinds))}
			k.params.Stats = &k.stats
		})
		add(2, func(*beatKind, []engine.Lease) {})
		add(1, func(k *beatKind, _ []engine.Lease) {
			s.must(s.store.DrainWorker(s.ctx, engine.DrainWorkerParams{WorkerID: k.params.WorkerID, Now: s.now}), "DrainWorker")
			k.status = engine.WorkerDraining
		})
		add(1, func(k *beatKind, _ []engine.Lease) { // the clock was set back
			k.params.Now, k.heard = s.now.Add(-time.Hour), s.now.Add(time.Microsecond)
		})
		add(3, func(k *beatKind, leases []engine.Lease) {
			s.finish(leases[0], "done")
			wrong := engine.Lease{RunID: leases[1].RunID, Token: s.token()}
			k.held, k.lost, k.params.Whole = 2, []engine.Lease{leases[0], wrong}, false
			k.params.Held = []engine.Lease{leases[0], wrong, leases[2]}
		})
		add(2, func(k *beatKind, leases []engine.Lease) {
			s.cancelWithin(leases[1].RunID, time.Hour)
			k.told = leases[1:]
		})
		add(2, func(k *beatKind, leases []engine.Lease) {
			k.params.Held, k.held, k.freed = leases[:1], 1, leases[1]
		})
		add(2, func(k *beatKind, leases []engine.Lease) { // too young to be freed
			k.params.Held, k.params.NameWithin = leases[:1], time.Minute+time.Microsecond
		})
		add(1, func(k *beatKind, leases []engine.Lease) {
			s.offline(k.params.WorkerID, engine.OfflineForced)
			s.cancel(leases[0].RunID)
			k.status, k.held, k.heard = 0, 0, s.now
		})
	}
	kinds = append(kinds, beatKind{params: engine.HeartbeatParams{WorkerID: "nobody", Whole: true, Now: s.now}})
	return kinds
}

// beatAtOnce has all of them beat at once, and sees what each was told and has done.
func (s *stage) beatAtOnce(kinds []beatKind) {
	s.Helper()
	beats := make([]engine.Beat, len(kinds))
	errs := atOnce(len(kinds), func(i int) (err error) {
		beats[i], err = s.store.Heartbeat(s.ctx, kinds[i].params)
		return err
	})
	for i, k := range kinds {
		id := k.params.WorkerID
		if k.status == 0 {
			s.refused(errs[i], engine.ErrNotFound, "Heartbeat of an OFFLINE or unknown worker")
			continue
		}
		s.must(errs[i], "Heartbeat")
		equal(s, "status of "+id, beats[i].Status, k.status)
		equal(s, "lost leases", leasesText(beats[i].Lost), leasesText(k.lost))
		var told []engine.Lease
		for _, h := range beats[i].Cancelling {
			told = append(told, h.Lease)
		}
		equal(s, "cancelled leases", leasesText(told), leasesText(k.told))
		equal(s, "leases", len(s.heldBy(id)), k.held)
		w := s.workerState(id)
		equal(s, "active", w.Active, k.params.Active)
		equal(s, "completed", w.Completed, int64(100+k.params.Completed))
		equal(s, "failed", w.Failed, int64(10+k.params.Failed))
		equal(s, "stats", w.Stats, k.stats)
		s.sameTime("heard from", w.LastHeartbeatAt, k.heard)
		if !k.freed.RunID.IsZero() {
			run := s.status(k.freed.RunID, engine.RunPending)
			equal(s, "losses", run.LeaseLosses, 0)
		}
	}
	for _, k := range kinds {
		for _, l := range k.params.Held {
			s.cancelAnyway(l.RunID)
		}
		if !k.freed.RunID.IsZero() {
			s.cancelAnyway(k.freed.RunID)
		}
	}
}

// leasesText is leases in a form that can be compared.
func leasesText(leases []engine.Lease) string {
	out := ""
	for _, l := range leases {
		out += l.RunID.String() + " " + l.Token.Wire() + "\n"
	}
	return out
}
