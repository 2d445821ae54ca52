package postgres

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"hash/fnv"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// gateHeads is the minimum number of due runs of a lane that pass considers: so many leave their
// lane at once if they all wait for the same key.
const gateHeads = 100

// concurrencyKey is a concurrency key of a workflow type.
type concurrencyKey struct{ kind, name string }

// head is a due run, the key of which it needs a place, and how many places of that are taken.
type head struct {
	id      engine.ID
	due     int64 // microseconds
	key     concurrencyKey
	limit   int
	held    int
	apart   bool // it waits apart
	suspect engine.Suspect
	decided bool // it was chosen or gated
}

// chosen is a run to claim, and the slot that it is for.
type chosen struct {
	run  engine.ID
	slot engine.ClaimSlot
}

// choice is what choose decided.
type choice struct {
	taken   []chosen
	waiting []engine.ID // runs whose key has no free place
	blocked bool        // a suspect was left because no worker may hold it
	limited bool        // a run was left because of a limit of the queue or its type
	kept    time.Time   // until when runs were left to workers that keep them in memory
}

// passed is the result of pass.
type passed struct {
	progress bool // runs were claimed or gated
	apart    bool // runs that wait apart are due
	blocked  bool // suspects were left because no worker may hold them
	limited  bool // runs were left because of a limit of the queue or their type
	kept     bool // runs were left to workers that keep them in memory
	missed   bool // chosen runs could not be claimed
}

// freeSlots holds how much limits and keys leave free.
type freeSlots struct {
	queue int            // leases of the queue, including those about to be made
	types map[string]int // the same by type
	keys  map[concurrencyKey]int
	// suspects counts the suspects that each worker holds; nil if no suspect is due.
	suspects map[string]*engine.Suspects
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

// pass claims or gates runs that need a place of their concurrency key, and the runs after them, in one transaction. It
// says whether it made progress.
//
// It chooses without locks how far it goes. Then it locks the workers, the limits and the keys of
// the chosen runs, counts again, and chooses again. Other transactions that count a key's places or
// free one wait for its lock (FirstGated).
func (c *claim) pass(ctx context.Context) (passed, error) {
	for attempt := 1; ; attempt++ {
		var found look
		var p passed
		err := c.store.attempt(ctx, nil, func(t *tx) (err error) {
			p, err = c.passIn(t, &found)
			return err
		})
		if err == nil {
			c.use(found)
			p.progress = p.progress || len(found.tasks) > 0
			return p, nil
		}
		if attempt == writeAttempts || !retryable(err) || !pause(ctx, attempt) {
			return passed{}, translate("claim", err)
		}
	}
}

func (c *claim) passIn(t *tx, found *look) (passed, error) {
	heads, free, err := c.heads(t)
	if err != nil {
		return passed{}, err
	}
	return c.settle(t, heads, free, found)
}

// settle claims or gates the first of these runs, none of which is locked yet.
func (c *claim) settle(t *tx, heads []head, free freeSlots, found *look) (p passed, err error) {
	first := c.choose(heads, free, c.slots)
	p.apart, p.blocked, p.limited = len(heads) > 0 && heads[0].apart, first.blocked, first.limited
	c.keptDue, p.kept = first.kept, !first.kept.IsZero()
	heads = heads[:considered(heads, &first)]
	p.missed = len(heads) > 0
	due := map[engine.ID]bool{}
	if free, err = c.locked(t, heads, found, due); err != nil || len(heads) == 0 {
		return p, err
	}
	// A run that is no longer due takes no slot: nothing would open the gate for the runs that it
	// kept out.
	heads = slices.DeleteFunc(heads, func(h head) bool { return !due[h.id] })
	slots := slices.DeleteFunc(slices.Clone(c.slots), func(g engine.ClaimSlot) bool {
		return !slices.Contains(found.online, g.WorkerID)
	})
	choice := c.choose(heads, free, slots)
	if len(choice.waiting) > 0 {
		gone, err := t.ids(gateRunsSQL, args{"run_ids": idArray(choice.waiting), "now": micros(c.p.Now)})
		if err != nil {
			return p, err
		}
		for _, id := range gone {
			t.notifyRun(id)
		}
		p.progress = len(gone) > 0
	}
	if len(choice.taken) > 0 {
		c.takeChosen(t, choice.taken, found)
	}
	return p, nil
}

// heads reads the due runs, in order, and the free slots, both without locks.
func (c *claim) heads(t *tx) (heads []head, free freeSlots, err error) {
	a := merge(c.laneArgs(), args{"heads": max(gateHeads, len(c.slots)+1), "apart": maxApart})
	free = freeSlots{types: map[string]int{}, keys: map[concurrencyKey]int{}}
	c.countQueue(t, &free)
	heads, err = collect(t, listDueSQL, a, func(row pgx.CollectableRow) (h head, err error) {
		err = row.Scan(idOf(&h.id), &h.due, &h.key.kind, &h.key.name, &h.limit, &h.held,
			&h.apart, jsonOf(&h.suspect))
		return h, err
	})
	for _, h := range heads {
		free.keys[h.key] = h.held
	}
	if err == nil && anySuspect(heads) {
		c.countSuspects(t, &free)
		err = t.send()
	}
	return heads, free, err
}

// anySuspect says whether one of the heads is a suspect.
func anySuspect(heads []head) bool {
	return slices.ContainsFunc(heads, func(h head) bool { return h.suspect.Is() })
}

//go:embed sql/held_suspects.sql
var heldSuspectsSQL string

// maxApart limits how many runs of a queue that wait apart a claim reads, the earliest first.
const maxApart = 1000

// countSuspects counts the suspects that the workers hold; it is sent with the next statements.
func (c *claim) countSuspects(t *tx, free *freeSlots) {
	free.suspects = map[string]*engine.Suspects{}
	workers := workersOf(c.slots)
	for _, w := range workers {
		free.suspects[w] = &engine.Suspects{}
	}
	var worker string
	var s engine.Suspect
	t.later(heldSuspectsSQL, args{"workers": workers, "since": micros(engine.Micros(engine.SuspectSince(c.p.Now)))},
		[]any{&worker, jsonOf(&s)}, func() { free.suspects[worker].Add(s) })
}

// suspectsKey returns the advisory lock of a worker's suspects, which a claim of suspects holds.
func suspectsKey(worker string) int64 {
	h := fnv.New64a()
	h.Write([]byte("kagzi suspects\x00" + worker))
	return int64(h.Sum64())
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
	if anySuspect(heads) {
		for _, w := range workersOf(c.slots) {
			locks = append(locks, suspectsKey(w))
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
	if anySuspect(heads) {
		c.countSuspects(t, &free)
	}
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

// choose goes through the due runs: first those that wait apart, then by age as many as must be taken by it,
// then the others. It returns the runs to claim, each for the first slot whose worker may hold it,
// and those before them whose key has no free place. It skips runs that a limit of the queue or a
// type blocks.
func (c *claim) choose(heads []head, free freeSlots, slots []engine.ClaimSlot) (out choice) {
	var apart, order []*head
	for i := range heads {
		h := &heads[i]
		h.decided = false
		if h.apart {
			apart = append(apart, h)
		} else {
			order = append(order, h)
		}
	}
	aged := slices.Clone(order)
	slices.SortFunc(aged, func(a, b *head) int {
		return cmp.Or(cmp.Compare(a.due, b.due), bytes.Compare(a.id[:], b.id[:]))
	})
	held := map[string]*engine.Suspects{}
	for worker, suspects := range free.suspects {
		held[worker] = suspects.Clone()
	}
	left := slices.Clone(slots)
	c.chooseIn(apart, &free, len(slots), held, &left, &out)
	c.chooseIn(aged, &free, min(c.byAge, len(slots)), nil, &left, &out)
	c.chooseIn(order, &free, len(slots), nil, &left, &out)
	return out
}

// chooseIn chooses in this order until that many are taken, for the slots that are left. held is
// what the workers hold, if the runs wait apart.
func (c *claim) chooseIn(order []*head, free *freeSlots, most int, held map[string]*engine.Suspects,
	left *[]engine.ClaimSlot, out *choice) {
	for _, h := range order {
		if len(out.taken) >= most {
			break
		}
		if h.decided {
			continue
		}
		if c.p.QueueLimit > 0 && free.queue >= c.p.QueueLimit {
			out.limited = true
			break
		}
		if most, limited := c.p.TypeLimits[h.key.kind]; limited && free.types[h.key.kind] >= most {
			out.limited = true
			continue
		}
		slot, until := 0, time.Time{}
		if !h.suspect.Is() {
			slot, until = c.p.Choose(h.id, time.UnixMicro(h.due).UTC(), *left)
		}
		if !until.IsZero() {
			if out.kept.IsZero() || until.Before(out.kept) {
				out.kept = until
			}
			continue
		}
		if h.suspect.Is() {
			slot = slices.IndexFunc(*left, func(g engine.ClaimSlot) bool { return held[g.WorkerID].May(h.suspect) })
			if slot < 0 {
				out.blocked = true
				continue
			}
		}
		h.decided = true
		if h.key.name != "" {
			if free.keys[h.key] >= max(h.limit, 1) {
				out.waiting = append(out.waiting, h.id)
				continue
			}
			free.keys[h.key]++
		}
		if h.suspect.Is() {
			held[(*left)[slot].WorkerID].Add(h.suspect)
		}
		out.taken = append(out.taken, chosen{h.id, (*left)[slot]})
		*left = slices.Delete(*left, slot, slot+1)
		free.queue++
		free.types[h.key.kind]++
	}
}

// considered returns the number of heads up to the last chosen one.
func considered(heads []head, c *choice) int {
	for n := len(heads); n > 0; n-- {
		id := heads[n-1].id
		if slices.Contains(c.waiting, id) || slices.ContainsFunc(c.taken, func(t chosen) bool { return t.run == id }) {
			return n
		}
	}
	return 0
}

// takeChosen adds the claim of the chosen runs to the batch, in their order.
func (c *claim) takeChosen(t *tx, taken []chosen, found *look) {
	runs, slots := make([]engine.ID, len(taken)), make([]engine.ClaimSlot, len(taken))
	for i, one := range taken {
		runs[i], slots[i] = one.run, one.slot
	}
	workers, tokens := slotArrays(slots)
	bound := claimChosenSQL.bind(args{"run_ids": idArray(runs), "workers": workers, "tokens": tokens,
		"now": micros(c.p.Now)})
	t.batch.Queue(claimChosenSQL.text, bound...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var task engine.Task
			var waits bool
			places := slices.Concat([]any{tokenOf(&task.Lease.Token)}, runPlaces(&task.Run),
				payloadPlaces(&task.Run.Input), []any{&waits})
			if err := rows.Scan(places...); err != nil {
				return err
			}
			c.complete(&task, waits, found)
			t.notifyRun(task.Run.ID)
		}
		return rows.Err()
	})
}

// Concurrency keys are advisory locks: a transaction that counts a key's places, or frees one,
// holds its lock to the end. The lock order is: worker, runs with their leases, keys. But the key
// of a run that waits for a place comes before that run.

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
