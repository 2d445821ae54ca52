package sqlite

import (
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// queueCache caches rows that nearly every call needs and that rarely change: namespaces and lanes,
// and the number of leases of a queue. Only the writer changes them, so the cache is complete.
type queueCache struct {
	stale      bool            // a transaction was rolled back, so cached values may be wrong
	namespaces map[string]bool // existing namespaces; false: disabled
	lanes      map[laneKey]int64
	lanesOf    map[queueKey][]lane
	running    map[queueKey]map[string]int // leases by workflow type; nil: not counted yet
	apart      bool                        // a run may be waiting apart
	requests   bool                        // a start was answered with an earlier run for its request
}

type queueKey struct{ namespace, queue string }

type laneKey struct {
	queueKey
	kind, requirements string
	priority           int
}

// lane is a row of lanes, for a claim.
type lane struct {
	id           int64
	kind         string
	requirements map[string]string
	priority     int

	ahead int  // during a claim: heads that it has not decided about
	more  bool // during a claim: there are others after these
}

//go:embed sql/known_namespaces.sql
var knownNamespacesSQL string

//go:embed sql/list_lanes.sql
var listLanesSQL string

//go:embed sql/any_apart.sql
var anyApartSQL string

//go:embed sql/any_request.sql
var anyRequestSQL string

func (k *queueCache) load(t *tx) error {
	t.leases = leaseCache{leases: map[engine.ID]*cachedLease{}}
	t.recentRuns = map[engine.ID]*engine.Run{}
	*k = queueCache{namespaces: map[string]bool{}, lanes: map[laneKey]int64{}, lanesOf: map[queueKey][]lane{},
		stale: true}
	err := t.query(&knownNamespacesSQL, func(r *row) error {
		name := r.text()
		k.namespaces[name] = r.flag()
		return nil
	})
	if err != nil {
		return err
	}
	err = t.query(&listLanesSQL, func(r *row) error {
		id := r.num()
		key := laneKey{queueKey{r.text(), r.text()}, r.text(), r.text(), int(r.num())}
		return k.add(key, id)
	})
	if err == nil {
		k.requests, err = t.found(&anyRequestSQL, func(*row) error { return nil })
	}
	if err == nil {
		k.apart, err = t.found(&anyApartSQL, func(*row) error { return nil })
	}
	k.stale = err != nil
	return err
}

func (k *queueCache) add(key laneKey, id int64) error {
	l := lane{id: id, kind: key.kind, priority: key.priority}
	var err error
	decode(key.requirements, &l.requirements, &err)
	k.lanes[key] = id
	k.lanesOf[key.queueKey] = append(k.lanesOf[key.queueKey], l)
	return err
}

// useNamespace makes the namespace on its first use.
func (t *tx) useNamespace(name string, now time.Time) error {
	if _, known := t.queues.namespaces[name]; known {
		return nil
	}
	now = engine.Micros(now)
	return t.InsertNamespace(&engine.Namespace{
		Name: name, ID: storelogic.NamespaceID(name), Enabled: true, CreatedAt: now, UpdatedAt: now})
}

// disabled says whether the namespace exists and is disabled.
func (k *queueCache) disabled(namespace string) bool {
	enabled, known := k.namespaces[namespace]
	return known && !enabled
}

//go:embed sql/insert_lane.sql
var insertLaneSQL string

// lane returns the id of the run's lane, and makes a new lane.
func (t *tx) lane(run *engine.Run, requirements string) (int64, error) {
	key := laneKey{queueKey{run.Namespace, run.Queue}, run.Type, requirements, run.Priority}
	if id, ok := t.queues.lanes[key]; ok {
		return id, nil
	}
	var id int64
	_, err := t.returning(&insertLaneSQL, func(r *row) error {
		id = r.num()
		return nil
	}, text("namespace", run.Namespace), text("task_queue", run.Queue), text("workflow_type", run.Type),
		text("requirements", requirements), num("priority", run.Priority))
	if err != nil {
		return 0, err
	}
	return id, t.queues.add(key, id)
}

//go:embed sql/count_leases.sql
var countLeasesSQL string

// running returns the number of leases of a queue, by workflow type.
func (t *tx) running(q queueKey) (map[string]int, error) {
	if t.queues.running == nil {
		counts := map[queueKey]map[string]int{}
		err := t.query(&countLeasesSQL, func(r *row) error {
			q, kind := queueKey{r.text(), r.text()}, r.text()
			if counts[q] == nil {
				counts[q] = map[string]int{}
			}
			counts[q][kind] = int(r.num())
			return nil
		})
		if err != nil {
			return nil, err
		}
		t.queues.running = counts
	}
	return t.queues.running[q], nil
}

// leased adds more to the leases of a queue and a type; negative if leases have ended.
func (k *queueCache) leased(q queueKey, kind string, more int) {
	if k.running == nil {
		return
	}
	if k.running[q] == nil {
		k.running[q] = map[string]int{}
	}
	k.running[q][kind] += more
}

// leaseCache caches the leases under which steps are reported and runs end. So the common step
// takes one insert, the common end reads nothing, and a run's counts are written once for all its
// steps in a commit. The entries equal the rows, except for the counts of dirty entries;
// flushCounts writes these before any other statement of the transaction reads them.
type leaseCache struct {
	leases map[engine.ID]*cachedLease
	dirty  []*cachedLease
}

// cachedLease is a lease with its counts.
type cachedLease struct {
	run        engine.ID
	token      engine.Token
	namespace  string
	queue      string
	kind       string
	worker     string
	steps      int64
	bytes      int64
	settled    int64
	owedFrom   int64
	tied       bool // the run's end affects other rows
	progressed bool
	apart      bool // a record changes the run too, so the fast paths do not apply
	pausing    bool // a record may end the lease, so the fast path does not apply
	plain      bool // every step of the run was recorded under this lease by one insert, so none is open
	dirty      bool
}

//go:embed sql/get_lease.sql
var getLeaseSQL string

// lease returns the cached lease; nil if its token is not the current one.
func (t *tx) lease(l engine.Lease) (*cachedLease, error) {
	c := t.leases.leases[l.RunID]
	if c == nil {
		c = &cachedLease{run: l.RunID}
		found, err := t.found(&getLeaseSQL, func(r *row) error {
			c.token, c.namespace, c.queue, c.kind, c.worker = r.token(), r.text(), r.text(), r.text(), r.text()
			c.steps, c.bytes, c.tied, c.progressed, c.apart, c.pausing = r.num(), r.num(), r.flag(), r.flag(),
				r.flag(), r.flag()
			c.settled, c.owedFrom = r.num(), r.num()
			return nil
		}, idArg("run_id", l.RunID))
		if err != nil || !found {
			return nil, err
		}
		t.leases.leases[l.RunID] = c
	}
	if c.token != l.Token || l.Namespace != "" && c.namespace != l.Namespace {
		return nil, nil
	}
	return c, nil
}

// addClaimed caches a lease that was just made, of a run about which nothing was reported yet.
func (t *leaseCache) addClaimed(run *engine.Run, token engine.Token) {
	t.leases[run.ID] = &cachedLease{
		run: run.ID, token: token, namespace: run.Namespace, queue: run.Queue, kind: run.Type, worker: run.WorkerID,
		bytes: run.Bytes,
		tied:  run.Tied(), plain: true,
	}
}

// markOpen records that not all steps of the run were recorded by one insert.
func (t *leaseCache) markOpen(run engine.ID) {
	if c := t.leases[run]; c != nil {
		c.plain = false
	}
}

// countStep counts a step with its result.
func (t *leaseCache) countStep(c *cachedLease, size int) {
	c.steps++
	c.settled++
	c.bytes += int64(size)
	c.progressed = true
	if !c.dirty {
		c.dirty = true
		t.dirty = append(t.dirty, c)
	}
}

//go:embed sql/settle_lease.sql
var settleLeaseSQL string

// flushCounts writes the counts that are only cached.
func (t *tx) flushCounts() error {
	for _, c := range t.leases.dirty {
		if !c.dirty { // it has ended since
			continue
		}
		c.dirty = false
		_, err := t.conn.Exec(t.ctx, &settleLeaseSQL, idArg("run_id", c.run), num("steps", c.steps),
			num("bytes", c.bytes), num("settled", c.settled))
		if err != nil {
			t.wrote = true
			return err
		}
	}
	t.leases.dirty = t.leases.dirty[:0]
	return nil
}

// forget removes a run from the caches. Code that changes or ends a lease, or its steps, without
// the cache must call it.
func (t *tx) forget(run engine.ID) {
	delete(t.leases.leases, run)
	delete(t.recentRuns, run)
}

const (
	maxRecentRuns  = 4096     // number of cached runs
	maxRecentInput = 16 << 10 // limit on the input of a cached run, in bytes
)

// rememberRun caches a run that was just started, because most are claimed soon after: then the
// claim need not read it. Code that changes the run calls forget.
func (t *tx) rememberRun(p *engine.StartRun) {
	if needsAllColumns(&p.Run) || p.Input.Size() > maxRecentInput {
		return
	}
	if len(t.recentRuns) >= maxRecentRuns {
		clear(t.recentRuns)
	}
	run := started(p)
	t.recentRuns[run.ID] = &run
}

// started returns a run that was made by StartRuns with nothing set except its input.
func started(p *engine.StartRun) engine.Run {
	run := p.NewRun()
	run.Bytes = int64(p.Input.Size())
	return run
}

//go:embed sql/insert_lease.sql
var insertLeaseSQL string

// leaseRecent makes the lease of a run that was just claimed and about which nothing was reported
// yet.
func (t *tx) leaseRecent(run *engine.Run, slot engine.ClaimSlot, now time.Time) error {
	run.Status, run.WorkerID, run.StartedAt, run.AvailableAt = engine.RunRunning, slot.WorkerID, now, time.Time{}
	t.leases.addClaimed(run, slot.Token)
	_, err := t.direct(&insertLeaseSQL, idArg("run_id", run.ID), tokenArg("token", slot.Token),
		text("worker_id", slot.WorkerID),
		text("namespace", run.Namespace), text("task_queue", run.Queue), text("workflow_type", run.Type),
		instant("now", now),
		length("heartbeat_us", run.Timeouts.Heartbeat), num("bytes", run.Bytes), flag("tied", run.Tied()),
		text("concurrency_key", run.ConcurrencyKey))
	return err
}
