package matching

import (
	"sync"

	"github.com/kagzi/kagzi/engine"
)

// maxTurns limits the turns that are kept; beyond it all start again.
const maxTurns = 10_000

// turns holds the turn of each queue, apart for each kind of poller. It outlives the groups: a worker
// that polls by single calls makes a new one each time.
type turns struct {
	mu sync.Mutex
	of map[turnKey]engine.ClaimTurn
}

type turnKey struct{ group, queue string }

func (t *turns) get(key turnKey) engine.ClaimTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[key]
}

// count counts what a claim assigned, byAge of it by age.
func (t *turns) count(key turnKey, byAge, runs int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn := t.of[key].After(byAge, runs)
	switch {
	case turn == 0:
		delete(t.of, key)
		return
	case t.of == nil || len(t.of) >= maxTurns:
		t.of = map[turnKey]engine.ClaimTurn{}
	}
	t.of[key] = turn
}
