package postgres

import (
	_ "embed"
	"hash/fnv"
	"slices"

	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// Concurrency keys are advisory locks: who counts a key's leases, or frees one, has its lock until the end of the transaction. The
// order is a worker, runs with their leases, keys; but the key of a run that waits at its gate comes before that run.

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

// locksFirst asks for the transaction to be tried again, with the locks of these keys, and then of these runs, before anything else.
type locksFirst struct {
	keys []int64
	runs []engine.ID
}

func (e *locksFirst) Error() string {
	return "the keys of gated runs are to be locked before the runs, and children before their parents"
}

// lockGates locks the keys of runs that wait at their gates. Whoever opens a gate has the key's lock and wants the run; so a
// transaction that has the run must not wait for the key.
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

// keyNumber stands for a concurrency key in advisory locks. Two keys that share one by chance wait for each other, no more.
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
