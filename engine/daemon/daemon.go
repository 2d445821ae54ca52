package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/certs"
	"github.com/kagzi/kagzi/engine/coordinator"
	"github.com/kagzi/kagzi/engine/daemon/internal/parts"
	"github.com/kagzi/kagzi/engine/daemon/internal/platform"
	"github.com/kagzi/kagzi/engine/daemon/internal/tracing"
	"github.com/kagzi/kagzi/engine/daemon/internal/web"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server"
	"github.com/kagzi/kagzi/engine/server/rest"
)

// stopLimit limits how long a stop may take; tests make it shorter.
var stopLimit = 30 * time.Second

const (
	// netInterval is how often the coordinator checks everything without a notification, if several
	// servers share a database and notifications between them can be lost.
	netInterval = 5 * time.Minute
)

// Backends are the functions that reach a database by its URL; main sets them.
type Backends struct {
	Open    func(ctx context.Context, url string, o engine.OpenOptions) (engine.Store, error)
	Migrate func(ctx context.Context, url string) error
	Status  func(ctx context.Context, url string) (engine.SchemaStatus, error)
	Check   func(ctx context.Context, url string) ([]engine.Finding, error)
	// Accept accepts what another program wrote to the database, unless there are findings, and
	// returns where it keeps the old file.
	Accept func(ctx context.Context, url string) (kept string, findings []engine.Finding, err error)
	// Copy moves a database to another one. Release abandons such a copy; with force also a
	// complete one.
	Copy    func(ctx context.Context, p engine.CopyParams) (engine.CopyReport, error)
	Release func(ctx context.Context, url string, force bool) error
	// Holder returns the text that the server holding the database's lock left in it; empty: none.
	Holder func(url string) (string, error)
	// Backup makes file, a backup of the database, without a server or next to one; Receive makes
	// one of what fill writes; Verify reads one.
	Backup  func(ctx context.Context, url, file string) (engine.Backup, error)
	Receive func(ctx context.Context, file string, fill func(io.Writer) error) (engine.Backup, error)
	Verify  func(ctx context.Context, file string) (engine.Backup, []engine.Finding, error)
	Restore func(ctx context.Context, p engine.RestoreParams) (engine.Restoration, error)
	// Service returns the service that is installed on this machine; nil: none is.
	Service func(ctx context.Context) (Service, bool)
	Remote  Remote
	// Agents returns the handler of /mcp, which calls the server by a connection; with writes its tools
	// may change things. nil: there is none.
	Agents func(conn grpc.ClientConnInterface, writes bool) http.Handler
	// Page returns the handler of the web page; nil: there is none.
	Page func(Page) http.Handler
}

// Page is what the web page needs of a server.
type Page struct {
	Conn     grpc.ClientConnInterface // calls the server
	Base     string                   // path of the page without a slash at its end; empty: the root
	ReadOnly bool                     // offer no action
	Sessions Sessions                 // nil: nobody logs in
	// Secure reports whether the browser's side of a request uses TLS; a proxy may be in between.
	Secure func(*http.Request) bool
}

// Sessions are logins of the web page. Contexts are those of its requests.
type Sessions interface {
	// Login changes an API key into the secret of a session, for a cookie that lasts until expires.
	Login(ctx context.Context, key string, r *http.Request) (token string, expires time.Time, err error)
	// Identify returns a context whose calls are made in a session, or an error if that is over.
	Identify(ctx context.Context, token string) (context.Context, error)
	// Logout ends a session.
	Logout(ctx context.Context, token string) error
}

// Ready describes a server once it serves.
type Ready struct {
	Address  string // host:port as bound
	Client   string // the same, for a client on this machine
	TLS      bool   // the address uses TLS
	CA       string // file of the CA that signed its certificate, if next to it; empty: none
	Keyed    bool   // calls need a key
	HTTP     string // host:port of the HTTP API, metrics and health, for this machine; empty: none
	AGQ      string // host:port of AGQ's protocol, for this machine; empty: none
	HTTPS    bool   // HTTP uses TLS
	Base     string // path before all others on HTTP; empty: none
	Web      bool   // the web page is served there
	Database engine.Description
	Version  string
}

// Run runs a server. It calls ready once it serves, and stops gracefully with a nil error when ctx
// ends. An error with a method ExitCode() int sets the exit code of the process. After a failure of
// the store Run returns at once and waits for nothing.
func Run(ctx context.Context, c Config, b Backends, ready func(Ready)) error {
	return run(ctx, c, b, nil, ready)
}

// run is Run; with r the server reloads its settings on request.
func run(ctx context.Context, c Config, b Backends, r *reloading, ready func(Ready)) error {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	events := &server.Events{}
	c.Log = slog.New(events.Handler(c.Log.Handler()))
	if err := c.check(); err != nil {
		return err
	}
	at, err := c.addresses(ctx, systemResolver)
	if err == nil {
		err = c.checkEncryption(&at)
	}
	if err != nil {
		return err
	}
	keeper, err := c.keepCertificates()
	if err != nil {
		return err
	}
	url, err := c.privateDatabase()
	if err != nil {
		return err
	}
	for _, w := range c.placeWarnings() {
		c.Log.Warn(w)
	}
	clock, err := c.newTestClock(os.Getenv(testClockVariable), url)
	if err != nil {
		return err
	}
	store, err := b.Open(ctx, url, engine.OpenOptions{Serving: true, Log: c.Log, Ahead: clock.aheadOf()})
	if err != nil {
		return coded(ctx, quietIfStopped(ctx, err)) // a service manager should not restart after a wrong setting
	}
	p := &process{opened: opened{database: url}, log: c.Log, events: events, store: store, backends: b, certs: keeper,
		parts: parts.New()}
	p.config.Store(&c)
	about, err := p.start(ctx, at)
	if err != nil {
		return errors.Join(coded(ctx, quietIfStopped(ctx, err)), p.stop())
	}
	if clock != nil {
		go clock.follow(os.Stdin, os.Stdout, p.store.Now, p.notifyAll)
	}
	if r != nil {
		p.parts.Start("reload", func(ctx context.Context) error { return r.run(ctx, p) })
	}
	return p.serve(ctx, func() { ready(about) })
}

// addresses resolves the addresses to listen on.
func (c *Config) addresses(ctx context.Context, resolve resolver) (at addresses, err error) {
	if at.listen, err = listenAddress(ctx, "--listen", c.Listen, resolve); err == nil && c.HTTP != "" {
		at.http, err = listenAddress(ctx, "--http", c.HTTP, resolve)
	}
	if err == nil && c.AGQ != "" {
		at.agq, err = listenAddress(ctx, "--agq", c.AGQ, resolve)
	}
	return at, err
}

// quietIfStopped turns the error of an interrupted start into a graceful stop.
func quietIfStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || engine.KindOf(err) == engine.KindUnavailable) {
		return nil
	}
	return err
}

// process is a running server.
type process struct {
	config   atomic.Pointer[Config] // the current settings; never changed in place
	opened   opened
	log      *slog.Logger
	events   *server.Events
	store    engine.Store
	backends Backends
	certs    *certs.Keeper // nil: plaintext
	parts    *parts.Parts
	listener *readyListener
	// notifyAll makes all parts look again, as after a gap in the notifications.
	notifyAll func()
}

// start opens the listeners, after everything else that can fail, and starts all parts.
func (p *process) start(ctx context.Context, at addresses) (Ready, error) {
	c := p.config.Load()
	description, err := p.store.Describe(ctx)
	if err != nil {
		return Ready{}, err
	}
	hasKey, err := c.checkKeys(ctx, p.store, p.opened.database, &at)
	if err != nil {
		return Ready{}, err
	}
	warnings := c.warnings(&at, hasKey)
	for _, w := range warnings {
		p.log.Warn(w)
	}
	copies, err := p.newBackups(description)
	if err != nil {
		return Ready{}, err
	}
	options, err := p.serverOptions(ctx, &at, warnings)
	if err != nil {
		return Ready{}, err
	}
	doors, err := p.openListeners(ctx, &at)
	if err != nil {
		return Ready{}, err
	}
	p.startParts(options, copies, netFor(description), doors, &at)
	return Ready{
		Address: p.opened.listen, Client: dialable(p.opened.listen), TLS: p.certs != nil, CA: authorityBeside(p.certs),
		Keyed: p.keyed(ctx), HTTP: dialable(p.opened.http), AGQ: dialable(p.opened.agq), HTTPS: p.webEncrypted(&at),
		Base: c.HTTPBase, Web: c.Web && p.backends.Page != nil && p.opened.http != "",
		Database: description, Version: c.Version,
	}, nil
}

// keyed reports whether calls need a key, if known.
func (p *process) keyed(ctx context.Context) bool {
	keys, err := p.store.Keyring(ctx)
	return err == nil && len(keys) > 0
}

// doors are the listeners beside that of gRPC; nil: not served.
type doors struct{ http, agq net.Listener }

// openListeners listens for calls, and for the other doors.
func (p *process) openListeners(ctx context.Context, at *addresses) (open doors, err error) {
	listener, err := listen(ctx, "--listen", at.listen.address)
	if err != nil {
		return open, err
	}
	p.opened.listen = listener.Addr().String()
	p.listener = &readyListener{Listener: listener, open: make(chan struct{})}
	if open.http, err = p.listenHTTP(ctx, at.http.address, p.webEncrypted(at)); err != nil {
		return open, errors.Join(err, listener.Close())
	}
	if open.http != nil {
		p.opened.http = open.http.Addr().String()
	}
	if at.agq.address != "" {
		if open.agq, err = listen(ctx, "--agq", at.agq.address); err != nil {
			if open.http != nil {
				err = errors.Join(err, open.http.Close())
			}
			return open, errors.Join(err, listener.Close())
		}
		p.opened.agq = open.agq.Addr().String()
	}
	p.tellHolder(p.opened.listen)
	return open, nil
}

// startParts creates the parts of a server, connects them and starts them.
func (p *process) startParts(options server.Options, copies *backups, safetyNet time.Duration, open doors,
	at *addresses) {
	c := p.config.Load()
	matcher := matching.New(p.store, p.log)
	options.Backup = copies.send
	var upkeep *coordinator.Coordinator // the server and the coordinator notify each other
	options.Facts = func() []server.Fact {
		return slices.Concat(looksOf(upkeep.Looks()), copies.facts(), factsOfTLS(p.certs),
			settingsOf(p.config.Load(), p.opened))
	}
	srv := server.New(p.store, matcher, options)
	copies.made = srv.BackupMade
	upkeep = coordinator.New(p.store, coordinator.Options{
		Interval: c.CoordinatorInterval, BatchSize: c.CoordinatorBatchSize, WorkerLease: c.WorkerLease,
		HeartbeatInterval: c.HeartbeatInterval, Retention: c.Retention, AuditRetention: c.AuditRetention,
		RequestRetention: c.RequestRetention,
		CatchupRate:      c.CoordinatorCatchupRate, Net: safetyNet, Log: p.log, Observer: srv,
	})
	matcher.Observe(srv)
	if clock, err := platform.NewClock(); err == nil && clock != nil {
		matcher.KeepTime(clock)
	}
	if open.http != nil {
		p.parts.Start("HTTP", func(ctx context.Context) error {
			o := web.Options{Version: c.Version, Log: p.log, Gate: rest.GateOptions{
				Loopback: !at.http.exposed, Hosts: c.HTTPHosts, Origins: c.HTTPOrigins},
				Base: c.HTTPBase, Proxies: c.TrustedProxies}
			if p.backends.Agents != nil {
				o.Agents = func(conn grpc.ClientConnInterface) http.Handler {
					return p.backends.Agents(conn, c.AgentWrites)
				}
			}
			if p.backends.Page != nil && c.Web {
				o.Page = p.page
			}
			return web.Serve(ctx, open.http, srv, o)
		})
	}
	p.parts.Start("matcher", matcher.Run)
	p.parts.Start("server", func(ctx context.Context) error { return srv.Run(ctx, p.listener) })
	p.startAGQ(open.agq, srv, &at.agq, safetyNet > 0)
	p.parts.Start("coordinator", upkeep.Run)
	p.parts.Start("backups", copies.run)
	notify := func(r engine.Notification) {
		matcher.Notify(r)
		srv.Notify(r)
		upkeep.Notify(r)
	}
	p.notifyAll = func() { notify(engine.Notification{Kind: engine.NotifyAll}) }
	p.parts.Start("notifications", func(ctx context.Context) error { return p.store.Listen(ctx, notify, srv) })
}

// serverOptions returns the server's options. It may start a part of its own: the tracer.
func (p *process) serverOptions(ctx context.Context, at *addresses, warnings []string) (server.Options, error) {
	c := p.config.Load()
	options := server.Options{
		Log: p.log, Version: c.Version, HeartbeatInterval: c.HeartbeatInterval, WorkerLease: c.WorkerLease,
		PollTimeout: c.PollTimeout, DrainTimeout: c.DrainTimeout, AllowUnleased: c.AllowUnleased,
		AutoNamespaces: c.AutoNamespaces,
		NamespaceRate:  c.NamespaceRate, LogDropped: c.LogDropped,
		Events: p.events, Warnings: warnings, NeedKey: len(at.exposed()) > 0 && !c.Insecure,
	}
	if p.certs != nil {
		options.TLS = p.certs.RPC()
	}
	spans, err := tracing.New(ctx, c.Version, p.log)
	if err != nil {
		return server.Options{}, err
	}
	if spans != nil {
		options.Tracer = spans.Tracer("github.com/kagzi/kagzi/engine/server")
		p.parts.Start("tracer", func(ctx context.Context) error { return tracing.Flush(ctx, spans) })
	}
	return options, nil
}

// netFor returns the coordinator's safety-net interval: none if no notification can be lost.
func netFor(d engine.Description) time.Duration {
	if d.Notifications == "in-process" {
		return 0
	}
	return netInterval
}

// tellHolder writes the server's address into the lock of a store that admits one process only.
func (p *process) tellHolder(address string) {
	if err := setHolder(p.store, "serving on "+address); err != nil {
		p.log.Warn(
			"cannot write the server's address to the database lock; other commands cannot find this server by it",
			"error", err)
	}
}

// setHolder writes text into the lock of a store that admits one process only.
func setHolder(store engine.Store, text string) error {
	if store, ok := store.(interface{ SetHolder(string) error }); ok {
		return store.SetHolder(text)
	}
	return nil
}

// serve waits until the process should end and returns why.
func (p *process) serve(ctx context.Context, ready func()) error {
	open := p.listener.open
	for {
		select {
		case <-open:
			open = nil
			ready()
		case <-ctx.Done():
			p.log.Info("stopping")
			err := p.stop()
			if err == nil {
				p.log.Info("stopped")
			}
			return err
		case <-p.parts.Ended:
			return p.stop()
		case <-p.store.Fatal():
			return p.fail()
		}
	}
}

// fail ends everything at once: after a store failure no answer may be trusted.
func (p *process) fail() error {
	err := fatal(p.store.Failure())
	p.log.Error("store failed; the process exits at once", "error", err)
	return err
}

// stop stops the parts in reverse order, then the store.
func (p *process) stop() error {
	stopped := make(chan error, 1)
	go func() { stopped <- errors.Join(p.parts.Stop(), p.store.Close()) }()
	select {
	case err := <-stopped:
		return err
	case <-p.store.Fatal():
		return p.fail()
	case <-time.After(stopLimit):
		p.log.Error("not stopped; the process exits with its parts still running", "waiting_for", p.parts.WaitingFor(),
			"goroutines", stacks())
		return fmt.Errorf("not stopped within %s: still waiting for the %s", stopLimit, p.parts.WaitingFor())
	}
}

// maxStacks limits the text of stacks, so that it has room in the log.
const maxStacks = 256 << 10

// stacks returns the stacks of all goroutines.
func stacks() string {
	text := make([]byte, maxStacks)
	return string(text[:runtime.Stack(text, true)])
}

// readyListener reports when the server starts to accept connections.
type readyListener struct {
	net.Listener
	once sync.Once
	open chan struct{}
}

func (d *readyListener) Accept() (net.Conn, error) {
	d.once.Do(func() { close(d.open) })
	return d.Listener.Accept()
}
