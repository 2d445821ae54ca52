package postgres

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/engine"
)

const (
	flushAfter   = 10 * time.Millisecond // how long notifications for other servers are gathered
	unknownAfter = time.Second           // after that time a commit whose answer was lost has ended
	// a listening connection that was silent for that long is checked
	aliveEvery    = 6 * time.Second
	probeTimeout  = 2 * time.Second
	pollEvery     = time.Second // without notifications: how often NotifyAll is sent
	minReconnect  = time.Second
	maxReconnect  = 30 * time.Second
	recountAfter  = 5 * time.Second // maximum age of the count of listening servers when something is sent
	listenerClass = 0x4b61677a      // class of our advisory locks: "Kagz"
)

// notifier notifies listeners in this process at once, and other servers on the same schema with
// NOTIFY. It sends nothing while no other server listens: each server holds a shared lock that the
// others can count, and sends a hello when it begins to listen.
type notifier struct {
	log    *slog.Logger
	pool   *pool
	config *address
	sender string // identifies our own notifications
	local  storekit.Listeners

	place   int64 // number of the schema in notifications and locks; 0 until it is known
	channel string

	listening atomic.Pointer[listening]
	others    atomic.Bool               // another server listens, as far as is known
	counted   atomic.Pointer[time.Time] // when others was last determined; nil: never
	probe     chan struct{}             // capacity one: our own hello has arrived

	mu      sync.Mutex
	pending map[engine.Notification]struct{} // for other servers
	wake    chan struct{}                    // capacity one

	unknown chan struct{} // capacity one: a commit may have taken effect without notifications

	closed chan struct{}
	cancel context.CancelFunc
	group  sync.WaitGroup
}

func newNotifier(log *slog.Logger, pool *pool, config *address) *notifier {
	var id [6]byte
	rand.Read(id[:])
	n := &notifier{
		log: log, pool: pool, config: config, sender: hex.EncodeToString(id[:]), probe: make(chan struct{}, 1),
		pending: map[engine.Notification]struct{}{}, wake: make(chan struct{}, 1), unknown: make(chan struct{}, 1),
		closed: make(chan struct{}),
	}
	n.setListening(false)
	return n
}

//go:embed sql/listen_place.sql
var listenPlaceSQL string

// listening says whether notifications arrive, and since when.
type listening struct {
	on    bool
	since time.Time
}

func (n *notifier) setListening(on bool) { n.listening.Store(&listening{on, time.Now()}) }

// state returns whether notifications arrive, and since when.
func (n *notifier) state() (on bool, since time.Time) {
	l := n.listening.Load()
	return l.on, l.since
}

func (n *notifier) mode() string {
	if on, _ := n.state(); on {
		return "listen"
	}
	return "polling"
}

// start listens on conn, which belongs to the notifier from then on. If the database does not allow
// it, it keeps trying. Behind a pooler it does not try.
func (n *notifier) start(ctx context.Context, conn *pgx.Conn) error {
	if err := n.pool.QueryRow(ctx, listenPlaceSQL).Scan(&n.place); err != nil {
		return translate("find the schema", err)
	}
	n.channel = fmt.Sprintf("kagzi_%d", n.place)
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n.cancel = cancel
	n.group.Go(func() { n.flushPending(running) })
	n.group.Go(func() { n.settleUnknown(running) })
	if n.config.pooled() {
		conn.Close(ctx)
		n.log.Info("the database is behind a pooler, so notifications do not work; polling every second instead")
		n.group.Go(func() {
			for running.Err() == nil {
				n.pollFor(running, pollEvery)
			}
		})
		return nil
	}
	if err := n.listenOn(ctx, conn); err != nil {
		conn = nil
		n.log.Warn("notifications do not work; polling every second instead", "error", translate("listen", err))
	}
	n.group.Go(func() { n.keepListening(running, conn) })
	return nil
}

// close sends pending notifications and stops the notifier.
func (n *notifier) close() {
	n.cancel()
	close(n.closed)
	n.group.Wait()
}

// notify notifies local listeners at once, and other servers soon.
func (n *notifier) notify(events []storekit.Event) {
	if len(events) == 0 {
		return
	}
	n.local.Notify(events)
	if !n.others.Load() && !n.stale() {
		return
	}
	n.mu.Lock()
	for i := range events {
		if events[i].SideEffects != nil {
			continue // each server counts its own
		}
		what := events[i].Notification
		what.Registered = false
		if what.Claimed {
			// no queue: other servers need not claim, they only learn of the namespace
			what.Name, what.Claimed = "", false
		}
		if len(n.pending) <= maxKeys {
			n.pending[what] = struct{}{}
		}
	}
	n.mu.Unlock()
	n.hasten()
}

// commitUnknown is called for a commit whose answer was lost: it may have taken effect, and
// notified nobody. A caller that repeats the call is told that it took effect, without
// notifications. It is also called for lost notifications.
func (n *notifier) commitUnknown() {
	select {
	case n.unknown <- struct{}{}:
	default:
	}
}

// settleUnknown sends NotifyAll for unknown commits and lost notifications, once the database
// answers and had time to end them.
func (n *notifier) settleUnknown(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.unknown:
		}
		for answers := false; !answers; answers = n.pool.Ping(ctx) == nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(unknownAfter):
			}
		}
		n.notify(storekit.Events(engine.Notification{Kind: engine.NotifyAll}))
	}
}

// flushPending sends notifications that have been gathered for a moment.
func (n *notifier) flushPending(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			n.flush()
			return
		case <-n.wake:
		}
		select {
		case <-ctx.Done():
		case <-time.After(flushAfter):
		}
		n.flush()
	}
}

// flush sends all pending notifications. If that fails, NotifyAll is sent instead once the database
// answers again; otherwise listeners at other servers would learn of the change only by their next
// poll.
func (n *notifier) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	if n.stale() && n.hasPending() {
		n.count(ctx)
	}
	n.mu.Lock()
	notifications := slices.Collect(maps.Keys(n.pending))
	clear(n.pending)
	n.mu.Unlock()
	if len(notifications) == 0 || !n.others.Load() {
		return
	}
	if err := n.send(ctx, encodeNotifications(n.sender, notifications)); err != nil {
		n.log.Warn("cannot notify other servers; notifying them once the database answers", "error",
			translate("notify", err))
		n.commitUnknown()
	}
}

//go:embed sql/notify.sql
var notifySQL string

func (n *notifier) send(ctx context.Context, payloads []string) error {
	_, err := n.pool.Exec(ctx, notifySQL, args{"channel": n.channel, "payloads": payloads})
	return err
}

//go:embed sql/count_listeners.sql
var countListenersSQL string

// count asks how many servers listen. If that fails, it assumes that there are others.
func (n *notifier) count(ctx context.Context) {
	var listeners int
	err := n.pool.QueryRow(ctx, countListenersSQL,
		args{"class": int32(listenerClass), "place": n.lockPlace()}).Scan(&listeners)
	own := 0
	if on, _ := n.state(); on {
		own = 1
	}
	if err != nil || listeners > own {
		n.foundOther()
	} else {
		n.others.Store(false)
	}
	now := time.Now()
	n.counted.Store(&now)
}

// foundOther records that another server listens. That one may have begun before this server knew,
// which dropped its notifications meanwhile.
func (n *notifier) foundOther() {
	n.mu.Lock()
	missed := !n.others.Swap(true) && n.counted.Load() != nil
	if missed {
		n.pending[engine.Notification{Kind: engine.NotifyAll}] = struct{}{}
	}
	n.mu.Unlock()
	if missed {
		n.hasten()
	}
}

func (n *notifier) hasPending() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.pending) > 0
}

// hasten sends pending notifications soon.
func (n *notifier) hasten() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// stale says whether others may have begun to listen since they were counted, behind a pooler,
// where this server hears nothing.
func (n *notifier) stale() bool {
	at := n.counted.Load()
	return at == nil || time.Since(*at) >= recountAfter
}

// lockPlace returns the schema's number as the signed number of an advisory lock.
func (n *notifier) lockPlace() int32 { return int32(uint32(n.place)) }

//go:embed sql/hold_listener.sql
var holdListenerSQL string

// listen opens another connection that listens; nil if that fails. The first failure was logged.
func (n *notifier) listen(ctx context.Context) *pgx.Conn {
	conn, err := n.config.dial(ctx)
	if err != nil || n.listenOn(ctx, conn) != nil {
		return nil
	}
	return conn
}

// listenOn listens on conn, and checks that notifications arrive. If they do not, it closes conn.
func (n *notifier) listenOn(ctx context.Context, conn *pgx.Conn) error {
	if err := n.subscribe(ctx, conn); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return err
	}
	n.setListening(true)
	n.count(ctx)
	return nil
}

func (n *notifier) subscribe(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{n.channel}.Sanitize()); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, holdListenerSQL,
		args{"class": int32(listenerClass), "place": n.lockPlace()}); err != nil {
		return err
	}
	if err := n.send(ctx, []string{n.sender + "\n" + hello}); err != nil {
		return err
	}
	for {
		got, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if n.heard(got.Payload) {
			return nil
		}
	}
}

// heard passes a notification on, and says whether it was our own hello.
func (n *notifier) heard(payload string) (own bool) {
	sender, notifications, greeting := decodeNotifications(payload)
	if sender == n.sender {
		return greeting
	}
	n.foundOther()
	if greeting { // a server that was killed a moment ago may not have sent its last notifications
		notifications = append(notifications, engine.Notification{Kind: engine.NotifyAll})
	}
	n.local.Notify(storekit.Events(notifications...))
	return false
}

// keepListening receives notifications until the notifier is closed. After each gap it sends
// NotifyAll.
func (n *notifier) keepListening(ctx context.Context, conn *pgx.Conn) {
	wait := minReconnect
	for ctx.Err() == nil {
		if conn != nil {
			wait = minReconnect
			err := n.hear(ctx, conn)
			n.setListening(false)
			conn.Close(context.WithoutCancel(ctx))
			if ctx.Err() != nil {
				return
			}
			n.log.Warn("lost the connection for notifications; reconnecting", "error", translate("listen", err))
		}
		n.pollFor(ctx, wait)
		wait = min(2*wait, maxReconnect)
		conn = n.listen(ctx)
		if conn != nil {
			n.log.Info("receiving notifications again")
			n.local.Notify(storekit.Events(engine.Notification{Kind: engine.NotifyAll}))
		}
	}
}

// hear passes notifications on until the connection fails. A silent connection is checked, because
// one whose other end is gone stays silent for ever.
func (n *notifier) hear(ctx context.Context, conn *pgx.Conn) error {
	for {
		silent, cancel := context.WithTimeout(ctx, aliveEvery)
		got, err := conn.WaitForNotification(silent)
		expired := silent.Err() != nil
		cancel()
		switch {
		case err == nil:
			n.heard(got.Payload)
		case ctx.Err() != nil:
			return ctx.Err()
		case expired && !conn.IsClosed():
			alive, cancel := context.WithTimeout(ctx, probeTimeout)
			err := conn.Ping(alive)
			cancel()
			if err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// pollFor waits, and meanwhile sends NotifyAll every second and once at the end.
func (n *notifier) pollFor(ctx context.Context, wait time.Duration) {
	for wait > 0 {
		step := min(wait, pollEvery)
		select {
		case <-ctx.Done():
			return
		case <-time.After(step):
		}
		wait -= step
		n.local.Notify(storekit.Events(engine.Notification{Kind: engine.NotifyAll}))
	}
}
