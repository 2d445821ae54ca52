package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kagzi/kagzi/engine"
)

const (
	writeConnections = 14
	viewConnections  = 5 // with the one that listens 20 in all
	openTimeout      = 30 * time.Second
	oldestVersion    = 140000
)

// setting is one parameter of a session.
type setting struct{ name, value string }

var commonSettings = []setting{
	{"synchronous_commit", "on"},
	{"lock_timeout", "2s"},
	{"idle_in_transaction_session_timeout", "10s"},
	{"jit", "off"},
}

// readCommitted is of every session: whoever has waited for a lock is to see what its last holder has written.
var readCommitted = setting{"default_transaction_isolation", "read committed"}

// sessionSettings are of every session that no pooler shares out. One may be idle for as long as
// nothing happens: the one that listens is then.
var sessionSettings = []setting{readCommitted, {"idle_session_timeout", "0"}}

// writeSettings hold a hot statement to its plan, whatever the statistics say at the moment: its
// tables swing between empty and huge. Every statement of a write finds its rows by index, and
// which one does not turn on how deep the indexes of a small table happen to be, which is what
// operators would cost there.
var writeSettings = append([]setting{
	{"statement_timeout", "5s"},
	{"plan_cache_mode", "force_generic_plan"},
	{"enable_seqscan", "off"},
	{"enable_hashjoin", "off"},
	{"enable_mergejoin", "off"},
	{"enable_bitmapscan", "off"},
	{"cpu_operator_cost", "0.000001"},
}, commonSettings...)

// viewSettings have lists planned for the filters that they are given.
var viewSettings = append([]setting{
	{"statement_timeout", "30s"},
	{"plan_cache_mode", "force_custom_plan"},
	{"default_transaction_read_only", "on"},
}, commonSettings...)

//go:embed sql/set_session.sql
var setSessionSQL string

// parseURL reads the address; its errors name no password.
func parseURL(url string) (*address, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, engine.Invalid("db", "is not a valid postgres:// address")
	}
	c := config.ConnConfig
	if strings.Contains(c.Host, "@") { // what stands before it is the end of a password, and is to be in no log
		return nil,
			engine.Invalid("db", "has more than one @ before its host: write one that is part of the password as %%40")
	}
	for _, name := range slices.Sorted(maps.Keys(c.RuntimeParams)) {
		if strings.HasPrefix(name, "ssl") {
			// no session can set one that the database has: a misspelt sslmode would leave the connection unencrypted
			return nil,
				engine.Invalid("db",
					"has a parameter %q, which is not known; want one of sslmode, sslrootcert, sslcert, sslkey, sslpassword and sslsni", name)
		}
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "kagzi"
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 5 * time.Second
	}
	a := &address{Config: config}
	mode := poolMode(c.RuntimeParams[poolModeName])
	delete(c.RuntimeParams, poolModeName) // which is for us, and not the server's
	return a, a.setMode(mode)
}

func newPool(ctx context.Context, base *address, settings []setting, size int32) (*pgxpool.Pool, error) {
	config := base.Copy()
	config.MaxConns, config.MinConns, config.MinIdleConns = size, 0, 0
	config.MaxConnLifetime = time.Hour
	config.MaxConnIdleTime = 5 * time.Minute
	config.HealthCheckPeriod = time.Minute
	config.PingTimeout = 2 * time.Second
	if !base.pooled() {
		config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			return applySettings(ctx, conn, settings)
		}
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// applySettings is for a session that no pooler shares out.
func applySettings(ctx context.Context, conn *pgx.Conn, settings []setting) error {
	_, err := conn.Exec(ctx, setSessionSQL, settingArgs(slices.Concat(settings, sessionSettings)))
	return err
}

// describeDatabase is host/database, for people.
func describeDatabase(config *address) string {
	c := config.ConnConfig
	host := c.Host
	if !strings.HasPrefix(host, "/") && c.Port != 5432 {
		host = net.JoinHostPort(host, strconv.Itoa(int(c.Port)))
	}
	return host + "/" + c.Database
}

// prepare waits for the database, refuses one that would lose acknowledged writes, and brings its
// schema up to date. The connection that it did this with is left for listening: to make one costs
// the database a process.
func prepare(ctx context.Context, config *address, o engine.OpenOptions) (*pgx.Conn, error) {
	conn, err := connect(ctx, config, o)
	if err != nil {
		return nil, err
	}
	if err := prepareOn(ctx, conn, o); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return conn, nil
}

func prepareOn(ctx context.Context, conn *pgx.Conn, o engine.OpenOptions) error {
	if err := checkServer(ctx, conn, o); err != nil {
		return err
	}
	if err := refuseMoved(ctx, conn); err != nil {
		return err
	}
	if o.KeepSchema {
		return requireSchema(ctx, conn)
	}
	return migrate(ctx, conn)
}

// connect tries until the database is up. What will not pass by waiting, such as a wrong password, ends it at once.
func connect(ctx context.Context, config *address, o engine.OpenOptions) (*pgx.Conn, error) {
	deadline := time.Now().Add(openTimeout)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		conn, err := config.dial(ctx)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if final := config.refusal(err); final != nil {
			return nil, final
		}
		if time.Now().Add(pause).After(deadline) {
			return nil, config.unreached(err)
		}
		o.Log.Warn("the database does not answer yet; trying again", "database", describeDatabase(config), "why",
			why(err), "in", pause)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// refusal is why the database turned us away for good, nil when it may let us in later.
func (a *address) refusal(err error) error {
	if err := refusedParameter(err); err != nil {
		return err
	}
	switch state := sqlState(err); {
	case strings.HasPrefix(state, "28"):
		return fmt.Errorf("the database %s refuses the user %q or its password", describeDatabase(a), a.ConnConfig.User)
	case state == "3D000":
		return fmt.Errorf("the server of %s has no database of this name; make one, such as with: createdb %s",
			describeDatabase(a), a.ConnConfig.Database)
	case state == codeBadValue, state == codeUndefined, state == codeFixed, state == codeForbidden:
		e, _ := errors.AsType[*pgconn.PgError](err)
		// which names a parameter of the address, or the database
		return fmt.Errorf("the database %s refuses the connection: %s", describeDatabase(a), e.Message)
	}
	return nil
}

// unreached is what who named the database learns when no connection to it came about: where it is
// and why, which no caller of a store is told.
func (a *address) unreached(err error) error {
	if final := a.refusal(err); final != nil {
		return final
	}
	return unavailable("the database %s does not answer: %s", describeDatabase(a), why(err))
}

// why is the reason for which no connection came about, without the address, the user and all else
// that the driver says around it.
func why(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return translateState("connect", e).Error()
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		return e.Err.Error()
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return "no answer in time"
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

//go:embed sql/server_settings.sql
var serverSettingsSQL string

// checkServer refuses a server that is too old or that acknowledges what it may lose.
func checkServer(ctx context.Context, conn *pgx.Conn, o engine.OpenOptions) error {
	var version int
	var fsync, syncCommit, fullPages, isolation string
	if err := conn.QueryRow(ctx, serverSettingsSQL).Scan(
		&version, &fsync, &syncCommit, &fullPages, &isolation); err != nil {
		return translate("read the server's settings", err)
	}
	if version < oldestVersion {
		return fmt.Errorf("PostgreSQL 14 or later is needed, this is %d", version/10000)
	}
	if isolation != readCommitted.value {
		return fmt.Errorf(
			"the database has %s = %s, which cannot be changed through the pooler before it: set it to %s for the database's user"+
				" (alter role … set %s = '%s'), or give the address of the database itself",
			readCommitted.name, isolation, readCommitted.value, readCommitted.name, readCommitted.value)
	}
	var unsafe []string
	for _, s := range []setting{{"fsync", fsync}, {"synchronous_commit", syncCommit}, {"full_page_writes", fullPages}} {
		if s.value == "off" {
			unsafe = append(unsafe, s.name+"=off")
		}
	}
	if len(unsafe) == 0 {
		return nil
	}
	if os.Getenv("KAGZI_ALLOW_UNSAFE_DB") != "1" {
		return fmt.Errorf(
			"the database runs with %s and may lose acknowledged writes; turn it on, or set KAGZI_ALLOW_UNSAFE_DB=1 to start anyway",
			strings.Join(unsafe, ", "))
	}
	o.Log.Warn("the database may lose acknowledged writes", "settings", strings.Join(unsafe, ", "))
	return nil
}

// A pooler in transaction mode, such as PgBouncer, gives a session of the database to a connection
// for one transaction only. What a session would keep is lost then: prepared statements,
// parameters, LISTEN and the locks that are not a transaction's. Behind one the store sends each
// statement whole, sets parameters for each transaction that writes, and looks every second instead
// of being notified.

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

// dialPlain makes one connection, and finds out about the mode if that is not known. A pooler
// answers the connection itself, with a number of its own in the place of the process that serves
// it. One that keeps sessions whole looks the same, and is taken for one that does not: the address
// can say better.
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

// refusedParameter is the error for a parameter of the address that a pooler does not pass on,
// which does not pass by waiting; nil for other errors.
func refusedParameter(err error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return nil
	}
	_, name, ok := strings.Cut(e.Message, "unsupported startup parameter: ")
	if !ok {
		return nil
	}
	return fmt.Errorf(
		"the pooler before the database does not pass on %s: leave it out of the address and set it for the database's user"+
			" (alter role … set %s = …), or give the address of the database itself", name, name)
}

//go:embed sql/set_local.sql
var setLocalText string

var setLocalSQL = hot(setLocalText)

// localSettings are the writing pool's, for one transaction. The time of a statement that is sent
// whole begins before its arguments are there, and a pooler passes on megabytes slowly.
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
