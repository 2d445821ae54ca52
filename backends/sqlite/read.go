package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"sync"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
	"github.com/kagzi/kagzi/engine"
)

// session is a connection within a transaction.
type session struct {
	conn *sqlite3.Conn
	ctx  context.Context
}

func (s session) query(text *string, each func(*row) error, args ...arg) error {
	return s.conn.Query(s.ctx, text, eachRow(each), args...)
}

// found is query for a statement that returns at most one row.
func (s session) found(text *string, one func(*row) error, args ...arg) (found bool, err error) {
	err = s.conn.Query(s.ctx, text, func(r *sqlite3.Row) error {
		found = true
		return one((*row)(r))
	}, args...)
	return found, err
}

// read calls do on a snapshot of the database. The caller owns what do returns. If somebody else
// may begin to change the file, do may be called more than once.
func read[V any](ctx context.Context, s *Store, verb string, do func(session) (V, error)) (V, error) {
	ctx, cancel := context.WithTimeout(ctx, readDeadline)
	defer cancel()
	var none V
	var doubt error
	for range maxAttempts {
		out, moved, err := readOnce(ctx, s, verb, do)
		if !moved {
			return out, err
		}
		doubt = err
	}
	if doubt != nil {
		return none, doubt
	}
	return none, dbfile.ErrMoving
}

// readOnce is read with one connection. moved means that the file was changed or, with an error,
// may have been changed so that the answer is in doubt: a server that starts or stops makes and
// deletes files that a read-only store may be opening.
func readOnce[V any](ctx context.Context, s *Store, verb string, do func(session) (V, error)) (out V, moved bool,
	err error) {
	var c *dbfile.Reader
	select {
	case <-s.closed:
		return out, false, dbfile.ErrClosed
	default:
	}
	select {
	case c = <-s.readers:
	case <-s.closed:
		return out, false, dbfile.ErrClosed
	case <-ctx.Done():
		return out, false, dbfile.Translate(verb, ctx.Err())
	}
	sound := false // a connection that failed is not used again
	defer func() {
		if !sound && c != nil {
			c.Close()
			c = nil
		}
		s.readers <- c
	}()
	if c, err = s.connected(ctx, c); err != nil {
		return out, s.readOnly() && ctx.Err() == nil, s.failedRead(verb, err)
	}
	value, err := snapshot(ctx, c.Conn, do)
	if s.readOnly() && !c.Current(s.path) {
		return out, true, nil
	}
	moved = s.readOnly() && err != nil && !dbfile.IsRefusal(err) && ctx.Err() == nil
	if sound = err == nil || dbfile.IsRefusal(err); sound {
		if unsynced := s.seenIsDurable(ctx, verb); unsynced != nil {
			return out, false, unsynced
		}
	}
	if err != nil {
		return out, moved, s.failedRead(verb, err)
	}
	return value, false, nil
}

// connected returns c, or a new connection if there is none or it cannot be used any more.
func (s *Store) connected(ctx context.Context, c *dbfile.Reader) (*dbfile.Reader, error) {
	switch {
	case s.readOnly():
		return s.currentReader(ctx, c)
	case c == nil:
		return dbfile.OpenReader(s.path)
	}
	return c, nil
}

// snapshot calls do in its own transaction. After an error of the engine the connection can be used
// again.
func snapshot[V any](ctx context.Context, c *sqlite3.Conn, do func(session) (V, error)) (value V, err error) {
	if err := c.BeginRead(ctx); err != nil {
		return value, err
	}
	value, err = do(session{conn: c, ctx: ctx})
	if ending := c.Commit(context.WithoutCancel(ctx)); ending != nil && (err == nil || dbfile.IsRefusal(err)) {
		err = ending
	}
	return value, err
}

func (s *Store) failedRead(verb string, err error) error {
	if s.readOnly() {
		return dbfile.TranslateReadOnly(verb, err)
	}
	if failure := dbfile.AsFatal(err, true); failure != nil {
		s.die(failure)
	}
	return dbfile.Translate(verb, err)
}

// listing holds the statements of a paged list.
type listing[V any] struct {
	forth, back, count *string // the next page, the previous page, and the length of the whole list
	read               func(*row) (V, error)
	check              func(session) error // nil: nothing to check first
	filter             []arg               // arguments of all three statements
	place              []arg               // arguments of the pages
}

// spanArgs returns the bounds of a page of a list that is ordered by id.
func spanArgs(above, below engine.ID) []arg {
	return []arg{blob("above", above[:]), blob("below", below[:])}
}

// list reads a page.
func list[V any](ctx context.Context, s *Store, verb string, p engine.Page, l listing[V]) ([]V,
	engine.PageInfo, error) {
	type page struct {
		items []V
		info  engine.PageInfo
	}
	out, err := read(ctx, s, verb, func(r session) (out page, err error) {
		if l.check != nil {
			if err := l.check(r); err != nil {
				return out, err
			}
		}
		statement := l.forth
		if p.Before != nil {
			statement = l.back
		}
		err = r.query(statement, func(r *row) error {
			item, err := l.read(r)
			out.items = append(out.items, item)
			return err
		}, slices.Concat(l.filter, l.place, []arg{num("limit", p.Limit+1)})...)
		if err == nil && p.Count {
			err = r.query(l.count, func(r *row) error {
				out.info.Total = r.num()
				return nil
			}, l.filter...)
		}
		out.items = engine.Cut(out.items, &p, &out.info)
		return out, err
	})
	return out.items, out.info, err
}

// maxLoads limits how many runs are read at once, because runs may have payloads of megabytes.
const maxLoads = 64

// loads groups concurrent calls of GetRun. When many runs end in one commit, all callers that wait
// for them ask at once, and one statement for all costs little more than one for a single run. No
// caller waits for company: if nobody is reading, it reads at once.
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

// lead adds a call to the queue, and says whether the caller must read for all in it; otherwise
// another caller is reading and will continue.
func (w *loads) lead(l *load) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	lead := !w.reading
	w.reading, w.waiting = true, append(w.waiting, l)
	return lead
}

// pass ends the reading, unless more calls are waiting.
func (w *loads) pass() (on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reading = len(w.waiting) > 0
	return w.reading
}

// take returns the next calls to read for.
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

// lead reads for the waiting calls. Calls that come meanwhile are left to another goroutine, so
// that the caller gets its own answer soon.
func (s *Store) lead() {
	defer func() {
		if s.loads.pass() {
			go s.lead()
		}
	}()
	s.loadGroup(s.loads.take())
}

// errBrokenOff is returned to calls whose read did not finish because of a bug.
var errBrokenOff = errors.New("the read failed")

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

// loadAll reads a group. If that fails, it reads each run by itself, so that an error about one run
// does not affect the others.
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
		case err != nil || given[l.id]: // each caller owns what it is given
			l.run, l.err = s.getRun(context.Background(), l.namespace, l.id)
		case !found || run.Namespace != l.namespace:
			l.err = engine.RunNotFound(l.id)
		default:
			l.err = nil
			l.run, given[l.id] = run, true
		}
	}
}
