package postgres

import (
	"context"
	_ "embed"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

// maxLoads bounds what is read at once: runs may have payloads of megabytes.
const maxLoads = 64

// loads is who wants whole runs. When many runs end in one commit, those who wait for them all ask at once; one statement for all costs little
// more than one for a single run. Nobody waits for company: whoever finds nobody reading reads at once.
type loads struct {
	mu      sync.Mutex
	waiting []*load
	reading bool
}

// load is one call of GetRun.
type load struct {
	namespace string
	id        engine.ID
	run       engine.Run
	err       error
	done      chan struct{} // closed when it was read
}

// take is those who are to be read for next. Nobody: the reading is over.
func (w *loads) take() []*load {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.waiting), maxLoads)
	group := w.waiting[:n:n]
	if w.waiting = w.waiting[n:]; len(w.waiting) == 0 {
		w.waiting = nil
	}
	w.reading = n > 0
	return group
}

// GetRun is the run with its payloads.
func (s *Store) GetRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error) {
	l := &load{namespace: namespace, id: id, done: make(chan struct{})}
	err := s.view(ctx, "read a run", func(ctx context.Context) error {
		s.load(l)
		select {
		case <-l.done:
			return l.err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return engine.Run{}, err
	}
	return l.run, nil
}

// load has the run read, by whoever reads already, or else by the store, for as long as there is somebody to read for.
func (s *Store) load(l *load) {
	s.loads.mu.Lock()
	defer s.loads.mu.Unlock()
	s.loads.waiting = append(s.loads.waiting, l)
	if s.loads.reading {
		return
	}
	s.loads.reading = true
	s.background.Go(func() {
		for group := s.loads.take(); len(group) > 0; group = s.loads.take() {
			s.loadGroup(group)
		}
	})
}

//go:embed sql/get_whole_runs.sql
var getWholeRunsText string

var getWholeRunsSQL = hot(runColumns.Expand(getWholeRunsText))

// loadGroup reads a group in one round trip, with the plan that never changes.
func (s *Store) loadGroup(group []*load) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	wanted := make(map[engine.ID][]*load, len(group))
	ids := make([][16]byte, 0, len(group))
	for _, l := range group {
		if wanted[l.id] == nil {
			ids = append(ids, l.id)
		}
		wanted[l.id] = append(wanted[l.id], l)
		l.err = engine.RunNotFound(l.id)
	}
	rows, err := s.pool.Query(ctx, getWholeRunsSQL.text, getWholeRunsSQL.bind(args{"run_ids": ids})...)
	if err == nil {
		_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (none struct{}, err error) {
			var id engine.ID
			if err := row.Scan(append([]any{idOf(&id)}, make([]any, len(row.FieldDescriptions())-1)...)...); err != nil {
				return none, err
			}
			for _, l := range wanted[id] { // each reads a run of its own, for what is returned is the caller's
				places := slices.Concat(runPlaces(&l.run), payloadPlaces(&l.run.Input), payloadPlaces(&l.run.Output))
				if err := row.Scan(places...); err != nil {
					return none, err
				}
				if l.run.Namespace == l.namespace {
					l.err = nil
				}
			}
			return none, nil
		})
	}
	for _, l := range group {
		if err != nil {
			l.err = err
		}
		close(l.done)
	}
}
