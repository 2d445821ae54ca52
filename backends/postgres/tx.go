package postgres

import (
	"context"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/backends/internal/storelogic"
	"github.com/kagzi/kagzi/engine"
)

// args holds the named parameters of a statement: all of them, and no others.
type args = pgx.StrictNamedArgs

const (
	maxQueued = 500 // limit of statements that are sent together
	// approximate limit of their payloads, because they must be carried out within writeTimeout
	maxQueuedBytes = 4 << 20
)

// tx is a transaction, with what to notify and cache once it is committed. It saves round trips:
// statements without an answer, and its begin, are only queued, and are sent with the next read or
// with the commit. An error of a statement ends the transaction.
//
// It is a storelogic.Tx, whose methods have no context.
type tx struct {
	store  *Store
	conn   *session
	batch  *pgx.Batch
	bytes  int // approximate size of the payloads in batch
	events []storekit.Event
	lanes  map[laneKey]int64   // lanes that it made or found
	spaces map[string]struct{} // namespaces that it made or found
	loaded map[engine.ID]*storelogic.Run
	stored map[engine.ID]stored
	keys   map[int64]bool // keys whose locks it holds
	calls  int            // number of calls that it carries out
	due    []dueRun       // runs that it makes due, now or later
	// elsewhere means that no statement may be sent, because an operation of a group asks for what
	// the group does not have (group_tx.go)
	elsewhere bool
}

var _ storelogic.Tx = (*tx)(nil)

// Notify takes effect after the commit.
func (t *tx) Notify(n engine.Notification) {
	t.events = append(t.events, storekit.Event{Notification: n})
}

func (t *tx) ReportSideEffects(e *engine.SideEffects) {
	t.events = append(t.events, storekit.Event{SideEffects: e})
}

func (t *tx) notifyRun(id engine.ID) { t.Notify(engine.Notification{Kind: engine.NotifyRun, ID: id}) }

func (t *tx) notifyQueue(namespace, queue string) {
	t.Notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: namespace, Name: queue})
}

func (t *tx) notifyWorker(id string) {
	t.Notify(engine.Notification{Kind: engine.NotifyWorker, Name: id})
}

func (t *tx) notifyRegistered(id string) {
	t.Notify(engine.Notification{Kind: engine.NotifyWorker, Name: id, Registered: true})
}

// queue queues a statement to run before the next read.
func (t *tx) queue(sql string, a args) error {
	t.batch.Queue(sql, a)
	return t.sendFull()
}

// queueHot is queue for a hot statement.
func (t *tx) queueHot(s statement, a args) error {
	t.batch.Queue(s.text, s.bind(a)...)
	return t.sendFull()
}

func (t *tx) sendFull() error {
	if t.elsewhere {
		return t.send()
	}
	if t.batch.Len() < maxQueued && t.bytes < maxQueuedBytes {
		return nil
	}
	return t.send()
}

// later queues a statement. When it is sent, each of its rows is scanned into places, and then take
// is called.
func (t *tx) later(sql string, a args, places []any, take func()) {
	t.batch.Queue(sql, a).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, places, func() error {
			take()
			return nil
		})
		return err
	})
}

// read is later, but sends the statement at once with everything queued.
func (t *tx) read(sql string, a args, places []any, take func()) error {
	t.later(sql, a, places, take)
	return t.send()
}

// found is read for a statement that returns at most one row.
func (t *tx) found(sql string, a args, places ...any) (bool, error) {
	found := false
	err := t.read(sql, a, places, func() { found = true })
	return found, err
}

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(sql string, a args) (touched int64, err error) {
	t.batch.Queue(sql, a).Exec(func(tag pgconn.CommandTag) error {
		touched = tag.RowsAffected()
		return nil
	})
	err = t.send()
	return touched, err
}

// send sends the queued statements. A transaction in progress ends only if the database is silent,
// not because it takes long: a retry would take as long.
func (t *tx) send() error {
	batch := t.batch
	t.batch, t.bytes = &pgx.Batch{}, 0
	if t.elsewhere {
		return errElsewhere
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	return t.conn.SendBatch(ctx, batch).Close()
}

// commit sends what is still queued, and commits.
func (t *tx) commit() error {
	var done string
	t.batch.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		done = tag.String()
		return nil
	})
	if err := t.send(); err != nil {
		return err
	}
	if done != "COMMIT" {
		return pgx.ErrTxCommitRollback
	}
	return nil
}

// rollback ends a failed transaction, if it has begun, so that its connection can be used again.
func (t *tx) rollback() { rollback(t.conn) }

func rollback(s *session) {
	if c := s.Conn(); !c.IsClosed() && c.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
		defer cancel()
		// Without an answer the connection is closed, which has the same effect.
		_, _ = c.Exec(ctx, "rollback")
	}
}

// collect reads all rows of a statement.
func collect[V any](t *tx, sql string, a args, scan pgx.RowToFunc[V]) (all []V, err error) {
	t.batch.Queue(sql, a).Query(func(rows pgx.Rows) (err error) {
		all, err = pgx.CollectRows(rows, scan)
		return err
	})
	err = t.send()
	return all, err
}

// statement is a hot statement; its named parameters are converted to positions once instead of at
// every call.
type statement struct {
	text  string
	names []string // in the order of their positions
}

var parameterName = regexp.MustCompile(`@[a-z_]+`)

// hot prepares a statement. An error in its text is a bug, because the text is part of the program.
func hot(named string) statement {
	names := args{}
	for _, name := range parameterName.FindAllString(named, -1) {
		names[name[1:]] = name[1:]
	}
	text, positions, err := names.RewriteQuery(context.Background(), nil, named, nil)
	if err != nil {
		panic(fmt.Sprintf("statement with named parameters: %v", err))
	}
	s := statement{text: text}
	for _, name := range positions {
		s.names = append(s.names, name.(string))
	}
	return s
}

// bind returns the arguments in the order of their positions. A missing or unknown name is a bug,
// which any call shows.
func (s statement) bind(a args) []any {
	bound := make([]any, len(s.names))
	for i, name := range s.names {
		value, ok := a[name]
		if !ok {
			panic("statement without argument " + name)
		}
		bound[i] = value
	}
	if len(a) != len(s.names) {
		panic("statement with an argument that it does not name")
	}
	return bound
}

// columns turns rows, which have the same names, into the arrays of a statement about several rows.
func columns(rows ...args) args {
	all := make(args, len(rows[0]))
	for name := range rows[0] {
		column := make([]any, len(rows))
		for i, row := range rows {
			column[i] = row[name]
		}
		all[name] = column
	}
	return all
}

// queueRows queues a statement about several rows, unless there are none.
func (t *tx) queueRows(s statement, rows ...args) error {
	if len(rows) == 0 {
		return nil
	}
	return t.queueHot(s, columns(rows...))
}

var _ pgx.QueryRewriter = args{}
