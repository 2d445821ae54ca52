package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kagzi/kagzi/engine"
)

// A pooler in transaction mode, such as PgBouncer, gives a session of the database to a connection for one transaction only. What a session
// would keep is lost then: prepared statements, parameters, LISTEN and the locks that are not a transaction's. Behind one the store sends each statement whole,
// sets parameters for each transaction that writes, and looks every second instead of being notified.

// poolMode says how long a connection keeps a session of the database, in PgBouncer's words.
type poolMode string

const (
	poolUnknown     poolMode = "" // to be found out
	poolSession     poolMode = "session"
	poolTransaction poolMode = "transaction"
)

// poolModeName is the parameter of the address that spares finding out.
const poolModeName = "pool_mode"

// address is where the database is, and what stands before it.
type address struct {
	*pgxpool.Config
	mode poolMode
}

// pooled says that sessions are shared, of an address whose mode is known.
func (a *address) pooled() bool { return a.mode == poolTransaction }

// setMode has every connection from now on speak as the mode wants it.
func (a *address) setMode(mode poolMode) error {
	switch mode {
	case poolUnknown, poolSession:
	case poolTransaction:
		a.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	default:
		return engine.Invalid("db", poolModeName+" is session or transaction")
	}
	a.mode = mode
	return nil
}

//go:embed sql/read_backend.sql
var readBackendSQL string

// dial makes one connection, with the settings that every session needs.
func (a *address) dial(ctx context.Context) (*pgx.Conn, error) {
	conn, err := a.dialPlain(ctx)
	if err != nil || a.pooled() {
		return conn, err
	}
	if err := applySettings(ctx, conn, nil); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return conn, nil
}

// dialPlain makes one connection, and finds out about the mode if that is not known. A pooler answers the connection itself, with a number of its
// own in the place of the process that serves it. One that keeps sessions whole looks the same, and is taken for one that does not: the
// address can say better.
func (a *address) dialPlain(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, a.ConnConfig.Copy())
	if err != nil || a.mode != poolUnknown {
		return conn, err
	}
	var backend uint32
	if err := conn.QueryRow(ctx, readBackendSQL, pgx.QueryExecModeExec).Scan(&backend); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	if backend == conn.PgConn().PID() {
		return conn, a.setMode(poolSession)
	}
	conn.Close(context.WithoutCancel(ctx))
	if err := a.setMode(poolTransaction); err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, a.ConnConfig.Copy())
}

// refusedParameter is the error for a parameter of the address that a pooler does not pass on, which no waiting will mend; nil for other errors.
func refusedParameter(err error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return nil
	}
	_, name, ok := strings.Cut(e.Message, "unsupported startup parameter: ")
	if !ok {
		return nil
	}
	return fmt.Errorf("the pooler before the database does not pass on %s: leave it out of the address and set it for the database's user"+
		" (alter role … set %s = …), or give the address of the database itself", name, name)
}

//go:embed sql/set_local.sql
var setLocalText string

var setLocalSQL = hot(setLocalText)

// localSettings are the writing pool's, for one transaction. The time of a statement that is sent whole begins before its arguments are there,
// and a pooler passes on megabytes slowly.
var localSettings = append(slices.Clone(writeSettings), setting{"statement_timeout", "10s"})

// newBatch is for statements of one transaction, with the parameters that the writing pool's sessions would have.
func (s *Store) newBatch() *pgx.Batch {
	batch := &pgx.Batch{}
	s.queueSettings(batch)
	return batch
}

// queueSettings is for a transaction that has just begun.
func (s *Store) queueSettings(batch *pgx.Batch) {
	if s.pooled {
		batch.Queue(setLocalSQL.text, setLocalSQL.bind(settingArgs(localSettings))...)
	}
}

func settingArgs(settings []setting) args {
	names, values := make([]string, len(settings)), make([]string, len(settings))
	for i, s := range settings {
		names[i], values[i] = s.name, s.value
	}
	return args{"names": names, "values": values}
}
