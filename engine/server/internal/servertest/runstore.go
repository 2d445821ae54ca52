package servertest

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// RunStore is a store with runs of the namespace "default". It counts what is read.
type RunStore struct {
	StubStore
	mu     sync.Mutex
	Runs   map[engine.ID]engine.Run
	Broken error
	reads  []string
}

func (a *RunStore) Add(run engine.Run) engine.ID {
	a.mu.Lock()
	defer a.mu.Unlock()
	run.Namespace = "default"
	a.Runs[run.ID] = run
	return run.ID
}

func (a *RunStore) GetRun(_ context.Context, namespace string, id engine.ID) (engine.Run, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reads = append(a.reads, "one")
	run, there := a.Runs[id]
	switch {
	case a.Broken != nil:
		return engine.Run{}, a.Broken
	case !there || namespace != "default":
		return engine.Run{}, engine.RunNotFound(id)
	}
	return run, nil
}

func (a *RunStore) GetRuns(_ context.Context, namespace string, ids []engine.ID) (runs []engine.Run, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reads = append(a.reads, fmt.Sprint(len(ids)))
	for _, id := range ids {
		if run, there := a.Runs[id]; there && namespace == "default" {
			runs = append(runs, engine.Run{ID: run.ID, Status: run.Status})
		}
	}
	return runs, a.Broken
}

// LatestOfChain is the run that has this FirstRunID.
func (a *RunStore) LatestOfChain(_ context.Context, _ string, first engine.ID) (latest engine.ID, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, run := range a.Runs {
		if run.FirstRunID == first && !first.IsZero() {
			latest = id
		}
	}
	return latest, a.Broken
}

func (a *RunStore) StartRuns(_ context.Context, p engine.StartRunsParams) (started []engine.Started, err error) {
	for _, start := range p.Runs {
		started = append(started, engine.Started{RunID: a.Add(start.Run)})
	}
	return started, nil
}

// Asked returns what was read since its last call.
func (a *RunStore) Asked() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := strings.Join(a.reads, " ")
	a.reads = nil
	return asked
}

func Want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// NthID returns the id of a run by its number.
func NthID(n int) (id engine.ID) {
	binary.BigEndian.PutUint32(id[12:], uint32(n)+1)
	return id
}
