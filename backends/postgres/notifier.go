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
	flushAfter   = 10 * time.Millisecond // notifications for other servers are gathered for so long
	unknownAfter = time.Second           // a commit whose answer was lost has come to its end by then
	// a listening connection that was silent for so long is asked whether it lives
	aliveEvery    = 6 * time.Second
	probeTimeout  = 2 * time.Second
	pollEvery     = time.Second // without notifications: anything may have changed
	minReconnect  = time.Second
	maxReconnect  = 30 * time.Second
	recountAfter  = 5 * time.Second // how old the count of listening servers may be when something is to be sent
	listenerClass = 0x4b61677a      // of advisory locks: "Kagz"
)

// notifier notifies listeners in this process at once, and other servers on the same schema with
// NOTIFY. It sends nothing while no other server listens: each holds a shared lock that the others
// can count, and says hello when it begins.
type notifier struct {
	log    *slog.Logger
	pool   *pool
	config *address
	sender string // tells our own notifications
	local  storekit.Listeners

	place   int64 // of the schema, in notifications and locks; 0 until it is known
	channel string

	listening atomic.Pointer[listening]
	others    atomic.Bool               // another server listens, as far as is known
	counted   atomic.Pointer[time.Time] // when others was asked for; nil: never
	probe     chan struct{}             // capacity one: our own hello has come back

	mu      sync.Mutex
	pending map[engine.Notification]struct{} // for other servers
	wake    chan struct{}                    // capacity one

	unknown chan struct{} // capacity one: a commit may count that notified nobody

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

// listening says whether notifications are heard, and since when it has been so.
type listening struct {
	on    bool
	since time.Time
}

func (n *notifier) setListening(on bool) { n.listening.Store(&listening{on, time.Now()}) }

// state is whether notifications are heard, and since when it has been so.
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

// start listens on conn, which is the notifier's from then on, if the database lets it, and keeps
// trying if not. Behind a pooler it does not try.
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
		n.log.Info("a pooler stands before the database, so notifications are not heard; looking every second instead")
		n.group.Go(func() {
			for running.Err() == nil {
				n.pollFor(running, pollEvery)
			}
		})
		return nil
	}
	if err := n.listenOn(ctx, conn); err != nil {
		conn = nil
		n.log.Warn("notifications do not work; looking every second instead", "error", translate("listen", err))
	}
	n.group.Go(func() { n.keepListening(running, conn) })
	return nil
}

// close sends what is still pending, and ends the notifier.
func (n *notifier) close() {
	n.cancel()
	close(n.closed)
	n.group.Wait()
}

// notify tells everybody here at once, and has other servers notified soon.
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
			continue // each server counts what it did itself
		}
		what := events[i].Notification
		what.Registered = false
		if what.Claimed {
			what.Name, what.Claimed = "", false // no queue: nobody there need claim, only hear of the namespace
		}
		if len(n.pending) <= maxKeys {
			n.pending[what] = struct{}{}
		}
	}
	n.mu.Unlock()
	n.hasten()
}

// commitUnknown is for a commit whose answer was lost: it may count, and notified nobody. A caller
// that repeats the call is told that it has counted, and notifies nobody either. It is for lost
// notifications, too.
func (n *notifier) commitUnknown() {
	select {
	case n.unknown <- struct{}{}:
	default:
	}
}

// settleUnknown notifies everybody because of unknown commits and lost notifications, once the
// database answers and has had the time to end them.
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

// flush sends all pending notifications. In place of those that cannot be sent, everybody is
// notified once the database answers again: who waits at another server for something that has
// happened here would otherwise learn of it when it next looks by itself.
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
		n.log.Warn("other servers could not be notified; they will be when the database answers", "error",
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

// count asks how many servers listen. When that fails there may be others.
func (n *notifier) count(ctx context.Context) {
	var listeners int
	err := n.pool.QueryRow(ctx, countListenersSQL,
		args{"class": int32(listenerClass), "place": n.lockPlace()}).Scan(&listeners)
	own := 0
	if on, _ := n.state(); on {
		own = 1
	}
	if err != nil || listeners > own {
		n.met()
	} else {
		n.others.Store(false)
	}
	now := time.Now()
	n.counted.Store(&now)
}

// met says that another server listens. It may have begun to a while before this one knew, which
// dropped its notifications meanwhile.
func (n *notifier) met() {
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

// hasten has what is pending sent soon.
func (n *notifier) hasten() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// stale says that others may have begun to listen since they were counted, behind a pooler unheard.
func (n *notifier) stale() bool {
	at := n.counted.Load()
	return at == nil || time.Since(*at) >= recountAfter
}

// lockPlace is the schema's number as advisory locks take it, with a sign.
func (n *notifier) lockPlace() int32 { return int32(uint32(n.place)) }

//go:embed sql/hold_listener.sql
var holdListenerSQL string

// listen opens another connection that listens; nil when that fails, which was logged when it began.
func (n *notifier) listen(ctx context.Context) *pgx.Conn {
	conn, err := n.config.dial(ctx)
	if err != nil || n.listenOn(ctx, conn) != nil {
		return nil
	}
	return conn
}

// listenOn listens on conn, and proves that notifications come through. Where they do not, conn is closed.
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
	n.met()
	if greeting { // it may have been killed a moment ago, and what it had not sent yet with it
		notifications = append(notifications, engine.Notification{Kind: engine.NotifyAll})
	}
	n.local.Notify(storekit.Events(notifications...))
	return false
}

// keepListening hears notifications for ever. After each gap anything may have changed.
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
			n.log.Warn("the connection that listens is lost; connecting again", "error", translate("listen", err))
		}
		n.pollFor(ctx, wait)
		wait = min(2*wait, maxReconnect)
		conn = n.listen(ctx)
		if conn != nil {
			n.log.Info("listening again")
			n.local.Notify(storekit.Events(engine.Notification{Kind: engine.NotifyAll}))
		}
	}
}

// hear passes notifications on until the connection fails. One that has been silent is asked
// whether it lives: a connection whose other end is gone stays silent for ever.
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

// pollFor waits, and notifies NotifyAll every second meanwhile and in the end, for nobody else will.
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
