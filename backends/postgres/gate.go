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

// gateHeads is how many due runs of a lane a closer look considers at least: so many leave their
// lane at once when they all wait for the same key.
const gateHeads = 100

// concurrencyKey is a key of a workflow type.
type concurrencyKey struct{ kind, name string }

// head is a due run, and how many leases its key has.
type head struct {
	id      engine.ID
	due     int64 // microseconds
	key     concurrencyKey
	limit   int
	held    int
	decided bool // it was chosen, or waits
}

// room is what limits and keys leave free.
type room struct {
	queue int            // leases of the queue, with those that are about to be
	types map[string]int // likewise
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

// pass hands out, or gates, what has a concurrency key, and what comes after it, in one
// transaction. It says whether it came any further.
//
// It chooses without locks how far it goes, then locks the workers, the limits and the keys in
// between, counts anew, and chooses again: whoever else counts a key's leases or frees one waits
// for its lock (FirstGated).
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

// settle hands out, or gates, the first of these runs, which nobody has locked.
func (c *claim) settle(t *tx, heads []head, free room, found *look) (gated int, err error) {
	taken, waiting := c.choose(heads, free, len(c.slots))
	heads = heads[:considered(heads, taken, waiting)]
	due := map[engine.ID]bool{}
	if free, err = c.locked(t, heads, found, due); err != nil || len(heads) == 0 {
		return 0, err
	}
	// One that is due no longer takes no slot: nobody would open the gate behind which it kept the others.
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

// heads is what is due, in order, and what is free, both without locks.
func (c *claim) heads(t *tx) (heads []head, free room, err error) {
	a := merge(c.meeting(), args{"heads": max(gateHeads, len(c.slots)+1)})
	free = room{types: map[string]int{}, keys: map[concurrencyKey]int{}}
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

// countQueue counts what limits are about, with what is sent next.
func (c *claim) countQueue(t *tx, free *room) {
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

// locked locks what decides about these runs, counts it, and notes which of them are due then.
func (c *claim) locked(t *tx, heads []head, found *look, due map[engine.ID]bool) (room, error) {
	free := room{types: map[string]int{}, keys: map[concurrencyKey]int{}}
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

// choose goes through what is due, first by age as far as runs are to be taken by it: the runs that
// are to be taken, at most as many as there are slots, and those before them whose key has no slot.
// What a limit of the queue or a type holds back is passed over.
func (c *claim) choose(heads []head, free room, slots int) (taken, waiting []engine.ID) {
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

// chooseIn chooses in this order until so many are taken.
func (c *claim) chooseIn(order []*head, free *room, slots int, taken, waiting *[]engine.ID) {
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

// considered is how many of the heads there are up to the last that was chosen.
func considered(heads []head, taken, waiting []engine.ID) int {
	for n := len(heads); n > 0; n-- {
		if id := heads[n-1].id; slices.Contains(taken, id) || slices.Contains(waiting, id) {
			return n
		}
	}
	return 0
}

// takeChosen adds to the batch the claim of what was chosen, in its order, for the slots in theirs.
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

// Concurrency keys are advisory locks: who counts a key's leases, or frees one, has its lock until
// the end of the transaction. The order is a worker, runs with their leases, keys; but the key of a
// run that waits at its gate comes before that run.

//go:embed sql/lock_keys.sql
var lockKeysSQL string

// lockKeys waits for the keys' locks, with what is read next.
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

// locksFirst asks for the transaction to be tried again, with the locks of these keys, and then of
// these runs, before anything else.
type locksFirst struct {
	keys []int64
	runs []engine.ID
}

func (e *locksFirst) Error() string {
	return "the keys of gated runs are to be locked before the runs, and children before their parents"
}

// lockGates locks the keys of runs that wait at their gates. Whoever opens a gate has the key's
// lock and wants the run; so a transaction that has the run must not wait for the key.
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

// keyNumber stands for a concurrency key in advisory locks. Two keys that share one by chance wait
// for each other, no more.
func keyNumber(namespace, workflowType, key string) int64 {
	h := fnv.New64a()
	h.Write([]byte("kagzi key\x00" + namespace + "\x00" + workflowType + "\x00" + key))
	return int64(h.Sum64())
}

//go:embed sql/first_gated.sql
var firstGatedSQL string

// FirstGated locks the key, so that no claim gates a run of it between this look and the commit.
func (t *tx) FirstGated(namespace, workflowType, key string) ([]engine.ID, error) {
	if err := t.lockKeys([]int64{keyNumber(namespace, workflowType, key)}); err != nil {
		return nil, err
	}
	return t.ids(firstGatedSQL, args{"namespace": namespace, "workflow_type": workflowType, "concurrency_key": key})
}
