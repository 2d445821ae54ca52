package postgres

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"hash/fnv"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// gateHeads is the minimum number of due runs of a lane that pass considers: so many leave their
// lane at once if they all wait for the same key.
const gateHeads = 100

// concurrencyKey is a concurrency key of a workflow type.
type concurrencyKey struct{ kind, name string }

// head is a due run, and how many leases its key has.
type head struct {
	id      engine.ID
	due     int64 // microseconds
	key     concurrencyKey
	limit   int
	held    int
	decided bool // it was chosen or gated
}

// freeSlots holds how much limits and keys leave free.
type freeSlots struct {
	queue int            // leases of the queue, including those about to be made
	types map[string]int // the same by type
	keys  map[concurrencyKey]int
}

//go:embed sql/list_due.sql
var listDueSQL string

//go:embed sql/count_queue.sql
var countQueueSQL string

//go:embed sql/count_keys.sql
var countKeysSQL string

//go:embed sql/lock_online.sql
var lockOnlineSQL string

//go:embed sql/still_due.sql
var stillDueSQL string

//go:embed sql/gate_runs.sql
var gateRunsSQL string

//go:embed sql/claim_chosen.sql
var claimChosenText string

var claimChosenSQL = hot(runColumns.Expand(claimChosenText))

// pass claims or gates runs with a concurrency key, and the runs after them, in one transaction. It
// says whether it made progress.
//
// It chooses without locks how far it goes. Then it locks the workers, the limits and the keys of
// the chosen runs, counts again, and chooses again. Other transactions that count a key's leases or
// free one wait for its lock (FirstGated).
func (c *claim) pass(ctx context.Context) (bool, error) {
	for attempt := 1; ; attempt++ {
		var found look
		gated := 0
		err := c.store.attempt(ctx, nil, func(t *tx) (err error) {
			gated, err = c.passIn(t, &found)
			return err
		})
		if err == nil {
			c.use(found)
			return gated > 0 || len(found.tasks) > 0, nil
		}
		if attempt == writeAttempts || !retryable(err) || !pause(ctx, attempt) {
			return false, translate("claim", err)
		}
	}
}

func (c *claim) passIn(t *tx, found *look) (gated int, err error) {
	heads, free, err := c.heads(t)
	if err != nil {
		return 0, err
	}
	return c.settle(t, heads, free, found)
}

// settle claims or gates the first of these runs, none of which is locked yet.
func (c *claim) settle(t *tx, heads []head, free freeSlots, found *look) (gated int, err error) {
	taken, waiting := c.choose(heads, free, len(c.slots))
	heads = heads[:considered(heads, taken, waiting)]
	due := map[engine.ID]bool{}
	if free, err = c.locked(t, heads, found, due); err != nil || len(heads) == 0 {
		return 0, err
	}
	// A run that is no longer due takes no slot: nothing would open the gate for the runs that it
	// kept out.
	heads = slices.DeleteFunc(heads, func(h head) bool { return !due[h.id] })
	slots := slices.DeleteFunc(slices.Clone(c.slots), func(g engine.ClaimSlot) bool {
		return !slices.Contains(found.online, g.WorkerID)
	})
	taken, waiting = c.choose(heads, free, len(slots))
	if len(waiting) > 0 {
		gone, err := t.ids(gateRunsSQL, args{"run_ids": idArray(waiting), "now": micros(c.p.Now)})
		if err != nil {
			return 0, err
		}
		for _, id := range gone {
			t.notifyRun(id)
		}
		gated = len(gone)
	}
	if len(taken) > 0 {
		c.takeChosen(t, taken, slots, found)
	}
	return gated, nil
}

// heads reads the due runs, in order, and the free slots, both without locks.
func (c *claim) heads(t *tx) (heads []head, free freeSlots, err error) {
	a := merge(c.laneArgs(), args{"heads": max(gateHeads, len(c.slots)+1)})
	free = freeSlots{types: map[string]int{}, keys: map[concurrencyKey]int{}}
	c.countQueue(t, &free)
	heads, err = collect(t, listDueSQL, a, func(row pgx.CollectableRow) (h head, err error) {
		err = row.Scan(idOf(&h.id), &h.due, &h.key.kind, &h.key.name, &h.limit, &h.held)
		return h, err
	})
	for _, h := range heads {
		free.keys[h.key] = h.held
	}
	return heads, free, err
}

// countQueue counts the leases that limits apply to; it is sent with the next statements.
func (c *claim) countQueue(t *tx, free *freeSlots) {
	if !c.limited() {
		return
	}
	var kind string
	var n int
	t.later(countQueueSQL, args{"namespace": c.p.Namespace, "task_queue": c.p.Queue}, []any{&kind, &n}, func() {
		free.types[kind] = n
		free.queue += n
	})
}

// locked locks the limits and keys of these runs, counts again, and records which of the runs are
// still due.
func (c *claim) locked(t *tx, heads []head, found *look, due map[engine.ID]bool) (freeSlots, error) {
	free := freeSlots{types: map[string]int{}, keys: map[concurrencyKey]int{}}
	var locks []int64
	if c.limited() {
		locks = append(locks, limitKey(c.p.Namespace, c.p.Queue))
	}
	var kinds, names []string
	var ids []engine.ID
	for _, h := range heads {
		ids = append(ids, h.id)
		if _, listed := free.keys[h.key]; h.key.name != "" && !listed {
			free.keys[h.key] = 0
			kinds, names = append(kinds, h.key.kind), append(names, h.key.name)
			locks = append(locks, keyNumber(c.p.Namespace, h.key.kind, h.key.name))
		}
	}
	workers, _ := slotArrays(c.slots)
	var worker string
	t.later(lockOnlineSQL, args{"workers": workers}, []any{&worker}, func() {
		found.online = append(found.online, worker)
	})
	if err := t.lockKeys(locks); err != nil {
		return free, err
	}
	c.countQueue(t, &free)
	var id engine.ID
	t.later(stillDueSQL, args{"run_ids": idArray(ids), "now": micros(c.p.Now)}, []any{idOf(&id)}, func() {
		due[id] = true
	})
	var key concurrencyKey
	var n int
	err := t.read(countKeysSQL, args{"namespace": c.p.Namespace, "types": kinds, "keys": names},
		[]any{&key.kind, &key.name, &n}, func() {
			free.keys[key] = n
		})
	return free, err
}

// choose goes through the due runs, first by age for as many as must be taken by it. It returns the
// runs to claim, at most as many as there are slots, and those before them whose key has no free
// slot. It skips runs that a limit of the queue or a type blocks.
func (c *claim) choose(heads []head, free freeSlots, slots int) (taken, waiting []engine.ID) {
	order := make([]*head, len(heads))
	for i := range heads {
		heads[i].decided = false
		order[i] = &heads[i]
	}
	aged := slices.Clone(order)
	slices.SortFunc(aged, func(a, b *head) int {
		return cmp.Or(cmp.Compare(a.due, b.due), bytes.Compare(a.id[:], b.id[:]))
	})
	c.chooseIn(aged, &free, min(c.byAge, slots), &taken, &waiting)
	c.chooseIn(order, &free, slots, &taken, &waiting)
	return taken, waiting
}

// chooseIn chooses in this order until that many are taken.
func (c *claim) chooseIn(order []*head, free *freeSlots, slots int, taken, waiting *[]engine.ID) {
	for _, h := range order {
		if len(*taken) == slots || c.p.QueueLimit > 0 && free.queue >= c.p.QueueLimit {
			break
		}
		if h.decided {
			continue
		}
		if most, limited := c.p.TypeLimits[h.key.kind]; limited && free.types[h.key.kind] >= most {
			continue
		}
		h.decided = true
		if h.key.name != "" {
			if free.keys[h.key] >= max(h.limit, 1) {
				*waiting = append(*waiting, h.id)
				continue
			}
			free.keys[h.key]++
		}
		*taken = append(*taken, h.id)
		free.queue++
		free.types[h.key.kind]++
	}
}

// considered returns the number of heads up to the last chosen one.
func considered(heads []head, taken, waiting []engine.ID) int {
	for n := len(heads); n > 0; n-- {
		if id := heads[n-1].id; slices.Contains(taken, id) || slices.Contains(waiting, id) {
			return n
		}
	}
	return 0
}

// takeChosen adds the claim of the chosen runs to the batch, in their order, for the slots in
// theirs.
func (c *claim) takeChosen(t *tx, chosen []engine.ID, slots []engine.ClaimSlot, found *look) {
	workers, tokens := slotArrays(slots)
	bound := claimChosenSQL.bind(args{"run_ids": idArray(chosen), "workers": workers, "tokens": tokens,
		"now": micros(c.p.Now)})
	t.batch.Queue(claimChosenSQL.text, bound...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var task engine.Task
			places := slices.Concat([]any{tokenOf(&task.Lease.Token)}, runPlaces(&task.Run),
				payloadPlaces(&task.Run.Input))
			if err := rows.Scan(places...); err != nil {
				return err
			}
			c.complete(&task)
			t.notifyRun(task.Run.ID)
			found.tasks = append(found.tasks, task)
		}
		return rows.Err()
	})
}

// Concurrency keys are advisory locks: a transaction that counts a key's leases, or frees one,
// holds its lock to the end. The lock order is: worker, runs with their leases, keys. But the key
// of a run that waits for a slot comes before that run.

//go:embed sql/lock_keys.sql
var lockKeysSQL string

// lockKeys waits for the locks of the keys; it is sent with the next read.
func (t *tx) lockKeys(keys []int64) error {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key int64) bool { return t.keys[key] })
	if len(keys) == 0 {
		return nil
	}
	slices.Sort(keys)
	t.has(keys)
	return t.queue(lockKeysSQL, args{"keys": slices.Compact(keys)})
}

func (t *tx) has(keys []int64) {
	if t.keys == nil {
		t.keys = map[int64]bool{}
	}
	for _, key := range keys {
		t.keys[key] = true
	}
}

//go:embed sql/try_lock_keys.sql
var tryLockKeysSQL string

// locksFirst is an error: the transaction must be retried and first take the locks of these keys,
// and then of these runs.
type locksFirst struct {
	keys []int64
	runs []engine.ID
}

func (e *locksFirst) Error() string {
	return "the keys of gated runs are to be locked before the runs, and children before their parents"
}

// lockGates locks the keys of gated runs. A transaction that opens a gate holds the key's lock and
// wants the run, so one that holds the run must not wait for the key.
func (t *tx) lockGates(runs []*storelogic.Run) error {
	var keys []int64
	for _, run := range runs {
		if run.Gated && !t.keys[keyOf(run)] {
			keys = append(keys, keyOf(run))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	all, got := true, false
	err := t.read(tryLockKeysSQL, args{"keys": keys}, []any{&got}, func() { all = all && got })
	if err == nil && !all {
		err = &locksFirst{keys: keys}
	}
	t.has(keys)
	return err
}

func keyOf(run *storelogic.Run) int64 { return keyNumber(run.Namespace, run.Type, run.ConcurrencyKey) }

// keyNumber returns the advisory lock of a concurrency key. If two keys share one by chance, they
// only wait for each other.
func keyNumber(namespace, workflowType, key string) int64 {
	h := fnv.New64a()
	h.Write([]byte("kagzi key\x00" + namespace + "\x00" + workflowType + "\x00" + key))
	return int64(h.Sum64())
}

//go:embed sql/first_gated.sql
var firstGatedSQL string

// FirstGated locks the key, so that no claim gates a run of it between this read and the commit.
func (t *tx) FirstGated(namespace, workflowType, key string) ([]engine.ID, error) {
	if err := t.lockKeys([]int64{keyNumber(namespace, workflowType, key)}); err != nil {
		return nil, err
	}
	return t.ids(firstGatedSQL, args{"namespace": namespace, "workflow_type": workflowType, "concurrency_key": key})
}
