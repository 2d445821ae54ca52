package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"sync"

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

// lead puts a call in the line, and says whether the caller is to read for all who stand in it; otherwise somebody reads already, and will go on.
func (w *loads) lead(l *load) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	lead := !w.reading
	w.reading, w.waiting = true, append(w.waiting, l)
	return lead
}

// pass ends the reading, unless others wait by now.
func (w *loads) pass() (on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reading = len(w.waiting) > 0
	return w.reading
}

// take is those who are to be read for next.
func (w *loads) take() []*load {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.waiting), maxLoads)
	group := w.waiting[:n:n]
	if w.waiting = w.waiting[n:]; len(w.waiting) == 0 {
		w.waiting = nil
	}
	return group
}

// lead reads for those who stand in line. Whoever came meanwhile is not the caller's to read for, so that it gets its own answer soon.
func (s *Store) lead() {
	defer func() {
		if s.loads.pass() {
			go s.lead()
		}
	}()
	s.loadGroup(s.loads.take())
}

// errBrokenOff is what those get for whom a read has not come to its end, because of a defect.
var errBrokenOff = errors.New("the read broke off")

func (s *Store) loadGroup(group []*load) {
	for _, l := range group {
		l.err = errBrokenOff
		defer close(l.done)
	}
	if len(group) == 1 {
		l := group[0]
		l.run, l.err = s.getRun(context.Background(), l.namespace, l.id)
		return
	}
	s.loadAll(group)
}

//go:embed sql/get_whole_runs.sql
var getWholeRunsText string

var getWholeRunsSQL = runColumns.Expand(getWholeRunsText)

// loadAll reads a group. Should that fail, each is read by itself, so that what is wrong with one run is nobody else's affair.
func (s *Store) loadAll(group []*load) {
	ids := make([]engine.ID, len(group))
	for i, l := range group {
		ids[i] = l.id
	}
	runs, err := read(context.Background(), s, "GetRun", func(r session) (map[engine.ID]engine.Run, error) {
		runs := make(map[engine.ID]engine.Run, len(ids))
		err := r.query(&getWholeRunsSQL, func(r *row) error {
			run, err := readWholeRun(r)
			runs[run.ID] = run
			return err
		}, text("run_ids", encodeIDs(ids)))
		return runs, err
	})
	given := make(map[engine.ID]bool, len(ids))
	for _, l := range group {
		run, found := runs[l.id]
		switch {
		case err != nil || given[l.id]: // what is returned is nobody's but the caller's
			l.run, l.err = s.getRun(context.Background(), l.namespace, l.id)
		case !found || run.Namespace != l.namespace:
			l.err = engine.RunNotFound(l.id)
		default:
			l.err = nil
			l.run, given[l.id] = run, true
		}
	}
}
