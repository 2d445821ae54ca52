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
	viewConnections  = 5 // together with the listening one, 20
	leastConnections = 3 // one to write, one to read, one that listens
	openTimeout      = 30 * time.Second
	oldestVersion    = 140000
)

// parseURL parses the address; its errors contain no password.
func parseURL(url string) (*address, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, engine.Invalid("db", "is not a valid postgres:// address")
	}
	c := config.ConnConfig
	if strings.Contains(c.Host, "@") { // the text before it is the end of a password, and must not be logged
		return nil,
			engine.Invalid("db", "has more than one @ before its host: write one that is part of the password as %%40")
	}
	for _, name := range slices.Sorted(maps.Keys(c.RuntimeParams)) {
		if strings.HasPrefix(name, "ssl") {
			// no session parameter of the database: a misspelled sslmode would leave the connection
			// unencrypted
			return nil,
				engine.Invalid("db",
					"has a parameter %q, which is not known; want one of sslmode, sslrootcert, sslcert, sslkey, sslpassword and sslsni", name)
		}
	}
	switch mode := c.DefaultQueryExecMode; mode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol: // they guess the types of values from Go's
		return nil, engine.Invalid("db", "has default_query_exec_mode=%s, which does not work here; leave it out, "+
			"and behind a pooler write %s=transaction", strings.ReplaceAll(mode.String(), " ", "_"), poolModeName)
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "kagzi"
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 5 * time.Second
	}
	a := &address{Config: config, writes: writeConnections, views: viewConnections, place: place{
		byPath: c.RuntimeParams["search_path"] != "" || strings.Contains(c.RuntimeParams["options"], "search_path")}}
	var named bool
	if a.named, named = c.RuntimeParams[schemaName]; named && a.named == "" {
		return nil, engine.Invalid("db", schemaName+" is empty; want the name of a schema, or leave it out")
	}
	if err := a.setPools(url); err != nil {
		return nil, err
	}
	mode := poolMode(c.RuntimeParams[poolModeName])
	delete(c.RuntimeParams, poolModeName) // for this program, not for the server
	delete(c.RuntimeParams, schemaName)   // for this program, not for the server
	if a.named != "" {
		delete(c.RuntimeParams, "search_path") // schema= wins over it
	}
	return a, a.setMode(mode)
}

// setPools divides the allowed connections: of 20, or of pool_max_conns, one listens and a quarter
// of the others read.
func (a *address) setPools(url string) error {
	plain, err := pgconn.ParseConfig(url)
	if err != nil {
		return engine.Invalid("db", "is not a valid postgres:// address")
	}
	has := func(name string) bool { return plain.RuntimeParams[name] != "" }
	if has("pool_max_conns") {
		if a.MaxConns < leastConnections {
			return engine.Invalid("db",
				"has pool_max_conns=%d; want at least %d: one connection to write, one to read and one that listens",
				a.MaxConns, leastConnections)
		}
		a.views = max(1, (a.MaxConns-1)/4)
		a.writes = a.MaxConns - 1 - a.views
	}
	for _, name := range []string{"pool_min_conns", "pool_min_idle_conns"} {
		if has(name) {
			return engine.Invalid("db",
				"has %s, which has no effect: connections are opened when they are needed; leave it out", name)
		}
	}
	for name, set := range map[string]func(){
		"pool_max_conn_lifetime":   func() { a.MaxConnLifetime = time.Hour },
		"pool_max_conn_idle_time":  func() { a.MaxConnIdleTime = 5 * time.Minute },
		"pool_health_check_period": func() { a.HealthCheckPeriod = time.Minute },
		"pool_ping_timeout":        func() { a.PingTimeout = 2 * time.Second },
	} {
		if !has(name) {
			set()
		}
	}
	return nil
}

// newPool makes the pool of one kind of connections; local holds what each transaction sets behind
// a pooler.
func newPool(ctx context.Context, base *address, settings, local []setting, size int32) (*pool, error) {
	config := base.Copy()
	config.MaxConns, config.MinConns, config.MinIdleConns = size, 0, 0
	p := &pool{permits: make(chan struct{}, size)}
	for range size {
		p.permits <- struct{}{}
	}
	if base.pooled() {
		p.local = slices.Concat(local, base.place.settings())
	} else {
		all := slices.Concat(settings, base.place.settings())
		config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			return applySettings(ctx, conn, all)
		}
	}
	var err error
	p.Pool, err = pgxpool.NewWithConfig(ctx, config)
	return p, err
}

// applySettings sets parameters of a session that no pooler shares.
func applySettings(ctx context.Context, conn *pgx.Conn, settings []setting) error {
	_, err := conn.Exec(ctx, setSessionSQL, settingArgs(slices.Concat(settings, sessionSettings)))
	return err
}

// describeDatabase returns host/database, for people.
func describeDatabase(config *address) string {
	c := config.ConnConfig
	host := c.Host
	if !strings.HasPrefix(host, "/") && c.Port != 5432 {
		host = net.JoinHostPort(host, strconv.Itoa(int(c.Port)))
	}
	return host + "/" + c.Database
}

// prepare waits for the database, refuses one that would lose acknowledged writes, and migrates its
// schema. It returns the connection for listening, because making another one costs the database a
// process.
func prepare(ctx context.Context, config *address, o engine.OpenOptions) (*pgx.Conn, []string, error) {
	conn, err := connect(ctx, config, o)
	if err != nil {
		return nil, nil, err
	}
	err = config.prepareOn(ctx, conn, o)
	var warnings []string
	if err == nil {
		warnings, err = config.warnings(ctx, conn)
	}
	if err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, nil, err
	}
	for _, text := range warnings {
		o.Log.Warn("the database should be changed", "database", describeDatabase(config), "why", text)
	}
	return conn, warnings, nil
}

func (a *address) prepareOn(ctx context.Context, conn *pgx.Conn, o engine.OpenOptions) error {
	if err := checkServer(ctx, conn, o); err != nil {
		return err
	}
	if err := a.pin(ctx, conn); err != nil {
		return err
	}
	err := a.within(ctx, conn, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if err := refuseMoved(ctx, tx); err != nil {
			return err
		}
		if o.KeepSchema {
			return a.requireSchema(ctx, tx)
		}
		return nil
	})
	if err != nil || o.KeepSchema {
		return err
	}
	return a.migrate(ctx, conn, o.Log)
}

// warnings returns what an operator should change about a database that is served all the same.
func (a *address) warnings(ctx context.Context, q querier) (list []string, err error) {
	encoding, err := encodingWarning(ctx, q)
	for _, text := range []string{a.ambiguity(), encoding} {
		if text != "" {
			list = append(list, text)
		}
	}
	return list, err
}

// pin finds the schema and sets it for the session, unless a pooler shares the session.
func (a *address) pin(ctx context.Context, conn *pgx.Conn) error {
	if err := a.place.find(ctx, conn); err != nil || a.pooled() || a.schema == "" {
		return err
	}
	return translate("set the schema", applySettings(ctx, conn, a.place.settings()))
}

// within calls do in a transaction that uses the schema, on a connection outside the pools.
func (a *address) within(ctx context.Context, conn *pgx.Conn, options pgx.TxOptions, do func(tx pgx.Tx) error) error {
	var foreign error // not from the database
	err := pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error {
		local := settingArgs(slices.Concat(plainSettings, a.place.settings()))
		if _, err := tx.Exec(ctx, setLocalSQL.text, setLocalSQL.bind(local)...); err != nil {
			return err
		}
		foreign = do(tx)
		return foreign
	})
	if err != nil && foreign == nil {
		return translate("use the database", err)
	}
	return err
}

// connect retries until the database is up. Errors that a retry cannot solve, such as a wrong
// password, end it at once.
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
		o.Log.Warn("the database does not answer yet; retrying", "database", describeDatabase(config), "why",
			why(err), "in", pause)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// refusal returns why the database refuses this client for good; nil if a later attempt may
// succeed.
func (a *address) refusal(err error) error {
	if err := refusedParameter(err); err != nil {
		return err
	}
	switch state := sqlState(err); {
	case strings.HasPrefix(state, "28"):
		return fmt.Errorf("the database %s refuses the user %q or its password", describeDatabase(a), a.ConnConfig.User)
	case state == "3D000":
		return fmt.Errorf(
			"the server of %s has no database of this name; create it, for example with: createdb --encoding UTF8 --template template0 %s",
			describeDatabase(a), a.ConnConfig.Database)
	case state == codeBadValue, state == codeUndefined, state == codeFixed, state == codeForbidden:
		e, _ := errors.AsType[*pgconn.PgError](err)
		// it names a parameter of the address, or the database
		return fmt.Errorf("the database %s refuses the connection: %s", describeDatabase(a), e.Message)
	}
	return nil
}

// unreached returns the error for the operator who named the database: where it is, and why it
// cannot be reached. Clients of a store do not get these details.
func (a *address) unreached(err error) error {
	if final := a.refusal(err); final != nil {
		return final
	}
	return unavailable("the database %s does not answer: %s", describeDatabase(a), why(err))
}

// why returns the reason for a failed connection, without the address, the user and the driver's
// other text.
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

// checkServer refuses a server that is too old, or that acknowledges writes that it may lose.
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
			"the database runs with %s and may lose acknowledged writes; fix that, or set KAGZI_ALLOW_UNSAFE_DB=1 to accept it",
			strings.Join(unsafe, ", "))
	}
	o.Log.Warn("the database may lose acknowledged writes", "settings", strings.Join(unsafe, ", "))
	return nil
}

// A pooler in transaction mode, such as PgBouncer, lends a session of the database to a connection
// for one transaction only. Whatever a session would keep is lost: prepared statements, parameters,
// LISTEN, session locks. Behind one the store sends each statement as a whole, in a transaction
// that sets its parameters, including the schema (pool.go), and polls every second instead of being
// notified.

// poolMode is PgBouncer's word for how long a connection keeps a session of the database.
type poolMode string

const (
	poolUnknown     poolMode = "" // to be detected
	poolSession     poolMode = "session"
	poolTransaction poolMode = "transaction"
)

// poolModeName is the parameter of the address that makes detection unnecessary.
const poolModeName = "pool_mode"

// address says where the database is, and whether a pooler is in front of it.
type address struct {
	*pgxpool.Config
	place
	mode          poolMode
	writes, views int32 // maximum connections of each pool
}

// pooled says whether sessions are shared; the mode must be known.
func (a *address) pooled() bool { return a.mode == poolTransaction }

// setMode configures later connections for the mode.
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

// dial makes one connection with the settings that every session needs.
func (a *address) dial(ctx context.Context) (*pgx.Conn, error) {
	conn, err := a.dialPlain(ctx)
	if err != nil || a.pooled() {
		return conn, err
	}
	if err := applySettings(ctx, conn, slices.Concat(plainSettings, a.place.settings())); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return conn, nil
}

// dialPlain makes one connection, and detects the mode if it is not known. A pooler answers the
// connection itself, with its own number in place of the server process's. A pooler that keeps
// sessions whole looks the same and is treated as one that does not, unless the address says
// otherwise.
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

// refusedParameter returns the error for a parameter of the address that a pooler does not pass on,
// which a retry cannot solve; nil for other errors.
func refusedParameter(err error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return nil
	}
	_, name, ok := strings.Cut(e.Message, "unsupported startup parameter: ")
	if !ok {
		return nil
	}
	instead := ""
	if name == "search_path" {
		instead = ", or name the schema with ?schema="
	}
	return fmt.Errorf(
		"the pooler before the database does not pass on %s: leave it out of the address and set it for the database's user"+
			" (alter role … set %s = …)%s, or give the address of the database itself", name, name, instead)
}
