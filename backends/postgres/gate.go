package postgres

import (
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
	id    engine.ID
	key   concurrencyKey
	limit int
	held  int
	// suspect says of which loss the run is a suspect
	suspect engine.Suspect
}

// chosen is a run that is to be taken, and for which slot.
type chosen struct {
	run  engine.ID
	slot engine.ClaimSlot
}

// choice is what choose has come to.
type choice struct {
	taken   []chosen
	waiting []engine.ID // for a slot of their key
	blocked bool        // a suspect was left, as no worker may hold it too
}

// passed is what a closer look has come to.
type passed struct {
	further bool // runs were taken, or are gated now
	blocked bool // suspects were left, as no worker may hold them too
	missed  bool // what was chosen could not be taken
}

// room is what limits and keys leave free.
type room struct {
	queue int            // leases of the queue, with those that are about to be
	types map[string]int // likewise
	keys  map[concurrencyKey]int
	hands map[string]*engine.Suspects // what workers hold; nil: no suspect is due
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
func (c *claim) pass(ctx context.Context) (passed, error) {
	for attempt := 1; ; attempt++ {
		var found look
		var p passed
		err := c.store.attempt(ctx, nil, func(t *tx) (err error) {
			found = look{}
			p, err = c.passIn(t, &found)
			return err
		})
		if err == nil {
			c.use(found)
			p.further = p.further || len(found.tasks) > 0
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

// settle hands out, or gates, the first of these runs, which nobody has locked.
func (c *claim) settle(t *tx, heads []head, free room, found *look) (p passed, err error) {
	first := c.choose(heads, free, c.slots)
	p.blocked = first.blocked
	heads = heads[:considered(heads, &first)]
	p.missed = len(heads) > 0
	due := map[engine.ID]bool{}
	if free, err = c.locked(t, heads, found, due); err != nil || len(heads) == 0 {
		return p, err
	}
	// One that is due no longer takes no slot: nobody would open the gate behind which it kept the others.
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
		p.further = len(gone) > 0
	}
	if len(choice.taken) > 0 {
		c.takeChosen(t, choice.taken, found)
	}
	return p, nil
}

// heads is what is due, in order, and what is free, both without locks.
func (c *claim) heads(t *tx) (heads []head, free room, err error) {
	a := merge(c.meeting(), args{"heads": max(gateHeads, len(c.slots)+1), "suspects": maxSuspects,
		"starved_since": micros(c.p.Now.Add(-engine.StarvationAfter))})
	free = room{types: map[string]int{}, keys: map[concurrencyKey]int{}}
	c.countQueue(t, &free)
	heads, err = collect(t, listDueSQL, a, func(row pgx.CollectableRow) (h head, err error) {
		err = row.Scan(idOf(&h.id), &h.key.kind, &h.key.name, &h.limit, &h.held, jsonOf(&h.suspect))
		return h, err
	})
	for _, h := range heads {
		free.keys[h.key] = h.held
	}
	if err == nil && len(heads) > 0 && heads[0].suspect.Is() {
		c.countSuspects(t, &free)
		err = t.send()
	}
	return heads, free, err
}

//go:embed sql/held_suspects.sql
var heldSuspectsSQL string

// maxSuspects is how many suspects of a queue a claim looks at, the first that are due.
const maxSuspects = 1000

// countSuspects counts the suspects that the workers hold, with what is sent next.
func (c *claim) countSuspects(t *tx, free *room) {
	free.hands = map[string]*engine.Suspects{}
	workers := workersOf(c.slots)
	for _, w := range workers {
		free.hands[w] = &engine.Suspects{}
	}
	var worker string
	var s engine.Suspect
	t.later(heldSuspectsSQL, args{"workers": workers, "since": micros(engine.Micros(engine.SuspectSince(c.p.Now)))},
		[]any{&worker, jsonOf(&s)}, func() { free.hands[worker].Add(s) })
}

// suspectsKey stands for the suspects of a worker in advisory locks: who counts them has its lock.
func suspectsKey(worker string) int64 {
	h := fnv.New64a()
	h.Write([]byte("kagzi suspects\x00" + worker))
	return int64(h.Sum64())
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
	suspects := len(heads) > 0 && heads[0].suspect.Is()
	if suspects {
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
	if suspects {
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

// choose goes through what is due: the runs that are to be taken, each for the first slot whose
// worker may hold it, and those before them whose key has no slot. What a limit of the queue or a
// type holds back is passed over.
func (c *claim) choose(heads []head, free room, slots []engine.ClaimSlot) (out choice) {
	slots = slices.Clone(slots)
	hands := map[string]*engine.Suspects{}
	for worker, hand := range free.hands {
		hands[worker] = hand.Clone()
	}
	for _, h := range heads {
		if len(slots) == 0 || c.p.QueueLimit > 0 && free.queue >= c.p.QueueLimit {
			break
		}
		if most, limited := c.p.TypeLimits[h.key.kind]; limited && free.types[h.key.kind] >= most {
			continue
		}
		slot := 0
		if h.suspect.Is() {
			slot = slices.IndexFunc(slots, func(g engine.ClaimSlot) bool { return hands[g.WorkerID].May(h.suspect) })
			if slot < 0 {
				out.blocked = true
				continue
			}
		}
		if h.key.name != "" {
			if free.keys[h.key] >= max(h.limit, 1) {
				out.waiting = append(out.waiting, h.id)
				continue
			}
			free.keys[h.key]++
		}
		if h.suspect.Is() {
			hands[slots[slot].WorkerID].Add(h.suspect)
		}
		out.taken = append(out.taken, chosen{h.id, slots[slot]})
		slots = slices.Delete(slots, slot, slot+1)
		free.queue++
		free.types[h.key.kind]++
	}
	return out
}

// considered is how many of the heads there are up to the last that was chosen.
func considered(heads []head, c *choice) int {
	for n := len(heads); n > 0; n-- {
		id := heads[n-1].id
		if slices.Contains(c.waiting, id) || slices.ContainsFunc(c.taken, func(t chosen) bool { return t.run == id }) {
			return n
		}
	}
	return 0
}

// takeChosen adds to the batch the claim of what was chosen.
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
