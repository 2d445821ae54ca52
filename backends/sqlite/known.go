package sqlite

import (
	_ "embed"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// known is what the writer remembers of the rows that nearly every call needs and that hardly ever change: the namespaces
// and the lanes, and how many leases a queue has. Only the writer makes them, so what it remembers is all there is.
type known struct {
	stale      bool            // a transaction was rolled back, and with it perhaps what is remembered
	namespaces map[string]bool // that are there; false: disabled
	lanes      map[laneKey]int64
	queues     map[queueKey][]lane
	running    map[queueKey]map[string]int // leases by workflow type; nil: nobody has asked yet
	requests   bool                        // some start was answered with an earlier run for its request
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

	ahead int  // of a claim at work: heads that it has not decided about yet
	more  bool // of a claim at work: others follow these
}

//go:embed sql/known_namespaces.sql
var knownNamespacesSQL string

//go:embed sql/list_lanes.sql
var listLanesSQL string

//go:embed sql/any_request.sql
var anyRequestSQL string

func (k *known) load(t *tx) error {
	t.tally = tally{leases: map[engine.ID]*counted{}}
	t.fresh = map[engine.ID]*engine.Run{}
	*k = known{namespaces: map[string]bool{}, lanes: map[laneKey]int64{}, queues: map[queueKey][]lane{}, stale: true}
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
	k.stale = err != nil
	return err
}

func (k *known) add(key laneKey, id int64) error {
	l := lane{id: id, kind: key.kind, priority: key.priority}
	var err error
	decode(key.requirements, &l.requirements, &err)
	k.lanes[key] = id
	k.queues[key.queueKey] = append(k.queues[key.queueKey], l)
	return err
}

// useNamespace makes it, if it is new.
func (t *tx) useNamespace(name string, now time.Time) error {
	if _, known := t.known.namespaces[name]; known {
		return nil
	}
	now = engine.Micros(now)
	return t.InsertNamespace(&engine.Namespace{Name: name, ID: storelogic.NamespaceID(name), Enabled: true, CreatedAt: now, UpdatedAt: now})
}

// disabled says that the namespace is there and switched off.
func (k *known) disabled(namespace string) bool {
	enabled, known := k.namespaces[namespace]
	return known && !enabled
}

//go:embed sql/insert_lane.sql
var insertLaneSQL string

// lane is the id of the run's lane, which is made if it is new.
func (t *tx) lane(run *engine.Run, requirements string) (int64, error) {
	key := laneKey{queueKey{run.Namespace, run.Queue}, run.Type, requirements, run.Priority}
	if id, ok := t.known.lanes[key]; ok {
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
	return id, t.known.add(key, id)
}

//go:embed sql/count_leases.sql
var countLeasesSQL string

// running is how many leases a queue has, by workflow type.
func (t *tx) running(q queueKey) (map[string]int, error) {
	if t.known.running == nil {
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
		t.known.running = counts
	}
	return t.known.running[q], nil
}

// leased notes that there are so many leases more of a queue and a type: fewer, when they have ended.
func (k *known) leased(q queueKey, kind string, more int) {
	if k.running == nil {
		return
	}
	if k.running[q] == nil {
		k.running[q] = map[string]int{}
	}
	k.running[q][kind] += more
}
