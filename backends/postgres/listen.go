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
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/engine"
)

const (
	flushAfter    = 10 * time.Millisecond // rings for other servers are gathered for so long
	doubtAfter    = time.Second           // a commit whose answer was lost has come to its end by then
	aliveEvery    = 6 * time.Second       // a listening connection that was silent for so long is asked whether it lives
	probeTimeout  = 2 * time.Second
	pollEvery     = time.Second // without notifications: anything may have changed
	minReconnect  = time.Second
	maxReconnect  = 30 * time.Second
	recountAfter  = 5 * time.Second // how old the count of listening servers may be when something is to be rung
	listenerClass = 0x4b61677a      // of advisory locks: "Kagz"
)

// bell rings listeners in this process at once, and other servers on the same schema with notifications. It sends nothing
// while no other server listens: each holds a shared lock that the others can count, and says hello when it begins.
type bell struct {
	log    *slog.Logger
	pool   *pgxpool.Pool
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

	doubted chan struct{} // capacity one: a commit may count that rang nobody

	closed chan struct{}
	cancel context.CancelFunc
	group  sync.WaitGroup
}

func newBell(log *slog.Logger, pool *pgxpool.Pool, config *address) *bell {
	var id [6]byte
	rand.Read(id[:])
	b := &bell{
		log: log, pool: pool, config: config, sender: hex.EncodeToString(id[:]), probe: make(chan struct{}, 1),
		pending: map[engine.Notification]struct{}{}, wake: make(chan struct{}, 1), doubted: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	b.setListening(false)
	return b
}

//go:embed sql/listen_place.sql
var listenPlaceSQL string

// listening says whether notifications are heard, and since when it has been so.
type listening struct {
	on    bool
	since time.Time
}

func (b *bell) setListening(on bool) { b.listening.Store(&listening{on, time.Now()}) }

// state is whether notifications are heard, and since when it has been so.
func (b *bell) state() (on bool, since time.Time) {
	l := b.listening.Load()
	return l.on, l.since
}

func (b *bell) mode() string {
	if on, _ := b.state(); on {
		return "listen"
	}
	return "polling"
}

// start listens on conn, which is the bell's from then on, if the database lets it, and keeps trying if not. Behind a pooler it does not try.
func (b *bell) start(ctx context.Context, conn *pgx.Conn) error {
	if err := b.pool.QueryRow(ctx, listenPlaceSQL).Scan(&b.place); err != nil {
		return translate("find the schema", err)
	}
	b.channel = fmt.Sprintf("kagzi_%d", b.place)
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b.cancel = cancel
	b.group.Go(func() { b.flushPending(running) })
	b.group.Go(func() { b.settleDoubts(running) })
	if b.config.pooled() {
		conn.Close(ctx)
		b.log.Info("a pooler stands before the database, so notifications are not heard; looking every second instead")
		b.group.Go(func() {
			for running.Err() == nil {
				b.pollFor(running, pollEvery)
			}
		})
		return nil
	}
	if err := b.listenOn(ctx, conn); err != nil {
		conn = nil
		b.log.Warn("notifications do not work; looking every second instead", "error", translate("listen", err))
	}
	b.group.Go(func() { b.keepListening(running, conn) })
	return nil
}

// close sends what is still to be rung, and ends the bell.
func (b *bell) close() {
	b.cancel()
	close(b.closed)
	b.group.Wait()
}

// tell tells everybody here at once, and has other servers notified soon.
func (b *bell) tell(events []storekit.Event) {
	if len(events) == 0 {
		return
	}
	b.local.Notify(events)
	if !b.others.Load() && !b.stale() {
		return
	}
	b.mu.Lock()
	for i := range events {
		if events[i].SideEffects != nil {
			continue // each server counts what it did itself
		}
		n := events[i].Notification
		n.Registered = false
		if n.Claimed {
			n.Name, n.Claimed = "", false // no queue: nobody there need claim, only hear of the namespace
		}
		if len(b.pending) <= maxKeys {
			b.pending[n] = struct{}{}
		}
	}
	b.mu.Unlock()
	b.hasten()
}

// doubt is for a commit whose answer was lost: it may count, and rang nobody. Whoever repeats the call is told that it has counted, and rings
// nobody either. It is for rings that were lost as well.
func (b *bell) doubt() {
	select {
	case b.doubted <- struct{}{}:
	default:
	}
}

// settleDoubts rings everybody for commits in doubt and lost rings, once the database answers and has had the time to end them.
func (b *bell) settleDoubts(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.doubted:
		}
		for answers := false; !answers; answers = b.pool.Ping(ctx) == nil {
			select {
			case <-ctx.Done():
				return
			case <-time.After(doubtAfter):
			}
		}
		b.tell(storekit.Events(engine.Notification{Kind: engine.NotifyAll}))
	}
}

// flushPending sends rings that have been gathered for a moment.
func (b *bell) flushPending(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			b.flush()
			return
		case <-b.wake:
		}
		select {
		case <-ctx.Done():
		case <-time.After(flushAfter):
		}
		b.flush()
	}
}

// flush sends all pending rings. In place of those that cannot be sent, everybody is rung once the database answers again: who waits at another
// server for something that has happened here would otherwise learn of it when it next looks by itself.
func (b *bell) flush() {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	if b.stale() && b.pends() {
		b.count(ctx)
	}
	b.mu.Lock()
	rings := slices.Collect(maps.Keys(b.pending))
	clear(b.pending)
	b.mu.Unlock()
	if len(rings) == 0 || !b.others.Load() {
		return
	}
	if err := b.notify(ctx, encodeNotifications(b.sender, rings)); err != nil {
		b.log.Warn("other servers could not be notified; they will be when the database answers", "error", translate("notify", err))
		b.doubt()
	}
}

//go:embed sql/notify.sql
var notifySQL string

func (b *bell) notify(ctx context.Context, payloads []string) error {
	_, err := b.pool.Exec(ctx, notifySQL, args{"channel": b.channel, "payloads": payloads})
	return err
}

//go:embed sql/count_listeners.sql
var countListenersSQL string

// count asks how many servers listen. When that fails there may be others.
func (b *bell) count(ctx context.Context) {
	var n int
	err := b.pool.QueryRow(ctx, countListenersSQL, args{"class": int32(listenerClass), "place": b.lockPlace()}).Scan(&n)
	own := 0
	if on, _ := b.state(); on {
		own = 1
	}
	if err != nil || n > own {
		b.met()
	} else {
		b.others.Store(false)
	}
	now := time.Now()
	b.counted.Store(&now)
}

// met says that another server listens. It may have begun to a while before this one knew, which dropped its rings meanwhile.
func (b *bell) met() {
	b.mu.Lock()
	missed := !b.others.Swap(true) && b.counted.Load() != nil
	if missed {
		b.pending[engine.Notification{Kind: engine.NotifyAll}] = struct{}{}
	}
	b.mu.Unlock()
	if missed {
		b.hasten()
	}
}

func (b *bell) pends() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.pending) > 0
}

// hasten has what is pending sent soon.
func (b *bell) hasten() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// stale says that others may have begun to listen since they were counted, behind a pooler unheard.
func (b *bell) stale() bool {
	at := b.counted.Load()
	return at == nil || time.Since(*at) >= recountAfter
}

// lockPlace is the schema's number as advisory locks take it, with a sign.
func (b *bell) lockPlace() int32 { return int32(uint32(b.place)) }

//go:embed sql/hold_listener.sql
var holdListenerSQL string

// listen opens another connection that listens; nil when that fails, which was logged when it began.
func (b *bell) listen(ctx context.Context) *pgx.Conn {
	conn, err := b.config.dial(ctx)
	if err != nil || b.listenOn(ctx, conn) != nil {
		return nil
	}
	return conn
}

// listenOn listens on conn, and proves that notifications come through. Where they do not, conn is closed.
func (b *bell) listenOn(ctx context.Context, conn *pgx.Conn) error {
	if err := b.subscribe(ctx, conn); err != nil {
		conn.Close(context.WithoutCancel(ctx))
		return err
	}
	b.setListening(true)
	b.count(ctx)
	return nil
}

func (b *bell) subscribe(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{b.channel}.Sanitize()); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, holdListenerSQL, args{"class": int32(listenerClass), "place": b.lockPlace()}); err != nil {
		return err
	}
	if err := b.notify(ctx, []string{b.sender + "\n" + hello}); err != nil {
		return err
	}
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if b.heard(n.Payload) {
			return nil
		}
	}
}

// heard passes a notification on, and says whether it was our own hello.
func (b *bell) heard(payload string) (own bool) {
	sender, notifications, greeting := decodeNotifications(payload)
	if sender == b.sender {
		return greeting
	}
	b.met()
	if greeting { // it may have been killed a moment ago, and what it had not sent yet with it
		notifications = append(notifications, engine.Notification{Kind: engine.NotifyAll})
	}
	b.local.Notify(storekit.Events(notifications...))
	return false
}

// keepListening hears notifications for ever. After each gap anything may have changed.
func (b *bell) keepListening(ctx context.Context, conn *pgx.Conn) {
	wait := minReconnect
	for ctx.Err() == nil {
		if conn != nil {
			wait = minReconnect
			err := b.hear(ctx, conn)
			b.setListening(false)
			conn.Close(context.WithoutCancel(ctx))
			if ctx.Err() != nil {
				return
			}
			b.log.Warn("the connection that listens is lost; connecting again", "error", translate("listen", err))
		}
		b.pollFor(ctx, wait)
		wait = min(2*wait, maxReconnect)
		conn = b.listen(ctx)
		if conn != nil {
			b.log.Info("listening again")
			b.local.Notify(storekit.Events(engine.Notification{Kind: engine.NotifyAll}))
		}
	}
}

// hear passes notifications on until the connection fails. One that has been silent is asked whether it lives: a connection
// whose other end is gone stays silent for ever.
func (b *bell) hear(ctx context.Context, conn *pgx.Conn) error {
	for {
		silent, cancel := context.WithTimeout(ctx, aliveEvery)
		n, err := conn.WaitForNotification(silent)
		expired := silent.Err() != nil
		cancel()
		switch {
		case err == nil:
			b.heard(n.Payload)
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

// pollFor waits, and rings NotifyAll every second meanwhile and in the end, for nobody else will.
func (b *bell) pollFor(ctx context.Context, wait time.Duration) {
	for wait > 0 {
		step := min(wait, pollEvery)
		select {
		case <-ctx.Done():
			return
		case <-time.After(step):
		}
		wait -= step
		b.local.Notify(storekit.Events(engine.Notification{Kind: engine.NotifyAll}))
	}
}
