package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/engine"
)

// goSources returns the package's own code, without tests.
func goSources(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// rivals returns two stores on one database, as two servers have them.
func rivals(t *testing.T) (a, b *Store) {
	t.Helper()
	url := lentURL(t)
	return openAt(t, url), openAt(t, url)
}

func register(t *testing.T, s *Store, id string) {
	t.Helper()
	_, err := s.RegisterWorker(t.Context(), engine.RegisterWorkerParams{
		Worker: engine.Worker{ID: id, Namespace: "default", InstanceID: id, Queues: []string{"orders"},
			Types: []string{"order"}, MaxConcurrent: 100},
		Chosen: true, Now: s.Now(),
	})
	if err != nil {
		t.Fatalf("RegisterWorker: %v", err)
	}
}

func newStart(s *Store) engine.StartRun {
	now := s.Now()
	return engine.StartRun{Run: engine.Run{ID: engine.NewID(now), Namespace: "default", Queue: "orders", Type: "order",
		CreatedAt: now, AvailableAt: now, Input: engine.Payload{Data: []byte("input")}}}
}

func start(t *testing.T, s *Store, n int) {
	t.Helper()
	starts := make([]engine.StartRun, n)
	for i := range starts {
		starts[i] = newStart(s)
	}
	if _, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: starts}); err != nil {
		t.Fatalf("StartRuns: %v", err)
	}
}

func claimParams(s *Store, worker string, n int) engine.ClaimParams {
	p := engine.ClaimParams{Namespace: "default", Queue: "orders", Types: []string{"order"},
		HistoryBytes: engine.HistoryBytes, Now: s.Now()}
	for range n {
		p.Slots = append(p.Slots, engine.ClaimSlot{WorkerID: worker, Token: engine.NewToken()})
	}
	return p
}

func TestTwoServersNeverClaimTheSameRunAndLeaveNone(t *testing.T) {
	a, b := rivals(t)
	const runs = 200
	register(t, a, "wa")
	register(t, b, "wb")
	start(t, a, runs)
	var mu sync.Mutex
	holders := map[engine.ID]string{}
	var group sync.WaitGroup
	for i := range 8 {
		s, worker := a, "wa"
		if i%2 == 1 {
			s, worker = b, "wb"
		}
		group.Go(func() {
			for {
				claimed, err := s.Claim(t.Context(), claimParams(s, worker, 7))
				if err != nil {
					t.Errorf("Claim: %v", err)
					return
				}
				mu.Lock()
				for _, task := range claimed.Tasks {
					if other, taken := holders[task.Run.ID]; taken {
						t.Errorf("run %s is held by %s and %s", task.Run.ID, other, worker)
					}
					holders[task.Run.ID] = worker
				}
				all := len(holders) == runs
				mu.Unlock()
				if all || len(claimed.Tasks) == 0 && claimed.NextDue.IsZero() {
					return
				}
			}
		})
	}
	group.Wait()
	if len(holders) != runs {
		t.Fatalf("claimed %d runs, want %d", len(holders), runs)
	}
}

func TestALimitHoldsAcrossServers(t *testing.T) {
	a, b := rivals(t)
	register(t, a, "wa")
	register(t, b, "wb")
	const limit, rounds = 5, 15
	for round := range rounds {
		queue := fmt.Sprintf("queue-%d", round)
		starts := make([]engine.StartRun, 50)
		for i := range starts {
			starts[i] = newStart(a)
			starts[i].Queue, starts[i].Type = queue, []string{"a", "b"}[i%2]
		}
		if _, err := a.StartRuns(t.Context(), engine.StartRunsParams{Runs: starts}); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for i := range 12 {
			s, worker := a, "wa"
			if i%2 == 1 {
				s, worker = b, "wb"
			}
			group.Go(func() {
				p := claimParams(s, worker, 2)
				// Of different types, because claims of the same runs block each other in any case.
				p.Queue, p.QueueLimit, p.Types = queue, limit, []string{[]string{"a", "b"}[i%2]}
				if _, err := s.Claim(t.Context(), p); err != nil {
					t.Errorf("Claim: %v", err)
				}
			})
		}
		group.Wait()
		depths, err := a.GetQueueDepth(t.Context(), "default", queue, a.Now())
		if err != nil || len(depths) != 1 {
			t.Fatalf("QueueDepths: %v, %v", depths, err)
		}
		if depths[0].Running != limit {
			t.Fatalf("running = %d in round %d, want %d", depths[0].Running, round, limit)
		}
	}
}

func TestDeregisteredWorkerGetsNoLeaseElsewhere(t *testing.T) {
	a, b := rivals(t)
	for i := range 20 {
		worker := fmt.Sprintf("w%d", i)
		register(t, a, worker)
		start(t, a, 3)
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := b.Claim(t.Context(), claimParams(b, worker, 3)); err != nil {
				t.Errorf("Claim: %v", err)
			}
		})
		group.Go(func() {
			_, err := a.ForceOfflineWorker(t.Context(),
				engine.OfflineWorkerParams{WorkerID: worker, Reason: engine.OfflineForced, Now: a.Now()})
			if err != nil {
				t.Errorf("OfflineWorker: %v", err)
			}
		})
		group.Wait()
		held, err := a.HeldBy(t.Context(), worker)
		if err != nil || len(held) > 0 {
			t.Fatalf("an OFFLINE worker holds %d leases, want none (%v)", len(held), err)
		}
	}
}

func TestRacingStartsOfOneExternalIDAcrossServersMakeOneRun(t *testing.T) {
	a, b := rivals(t)
	for i := range 10 {
		answers := make([]engine.Started, 8)
		var group sync.WaitGroup
		for j := range answers {
			s := []*Store{a, b}[j%2]
			group.Go(func() {
				run := newStart(s)
				run.ExternalID, run.RequestID = fmt.Sprintf("ext-%d", i), fmt.Sprintf("request-%d-%d", i, j)
				got, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{run}})
				if err != nil {
					t.Errorf("StartRuns: %v", err)
					return
				}
				answers[j] = got[0]
			})
		}
		group.Wait()
		made := 0
		for _, answer := range answers {
			if answer.Err != nil || answer.RunID != answers[0].RunID {
				t.Fatalf("answers differ: %+v", answers)
			}
			if !answer.Existed {
				made++
			}
		}
		if made != 1 {
			t.Fatalf("%d starts made a run, want 1: %+v", made, answers)
		}
	}
}

// meanwhile changes something in a transaction of s. Before the commit it starts late on another
// store, which either waits for the commit or does not notice. It returns late's answer.
func meanwhile[A any](t *testing.T, s *Store, change func(*tx) error, late func() (A, error)) (answer A, err error) {
	t.Helper()
	watch := adminConnection(t, s.pool.Config().ConnString())
	done, begun := make(chan error, 1), false
	_, slow := write(s, "change something, slowly", func(x *tx) (none struct{}, err error) {
		if err := change(x); err != nil || begun {
			return none, err
		}
		begun = true
		go func() {
			var err error
			answer, err = late()
			done <- err
		}()
		for waits := false; !waits && len(done) == 0; {
			err := watch.QueryRow(t.Context(),
				"select exists (select from pg_locks where not granted and $1 = any(pg_blocking_pids(pid)))",
				int32(x.conn.Conn().PgConn().PID())).Scan(&waits)
			if err != nil {
				return none, err
			}
		}
		return none, nil
	})
	if slow != nil {
		t.Fatal(slow)
	}
	err = <-done
	return answer, err
}

// listenTo collects notifications until the test ends.
func listenTo(t *testing.T, s *Store) <-chan engine.Notification { return listenWith(t, s, nil) }

// handlers counts the failure handlers that a store reports.
type handlers struct{ atomic.Int64 }

func (h *handlers) RunEnded(engine.ID, *engine.Ending) {}

func (h *handlers) SideEffects(e *engine.SideEffects) { h.Add(int64(e.Handlers)) }

func listenWith(t *testing.T, s *Store, o engine.Outcomes) <-chan engine.Notification {
	t.Helper()
	notifications := make(chan engine.Notification, 10_000)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Listen(ctx, func(r engine.Notification) {
			notifications <- r
		}, o); !errors.Is(err, context.Canceled) {
			t.Errorf("Listen: %v", err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	awaitNotification(t, notifications, engine.Notification{Kind: engine.NotifyAll})
	return notifications
}

func awaitNotification(t *testing.T, notifications <-chan engine.Notification, want engine.Notification) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case got := <-notifications:
			if got == want {
				return
			}
		case <-deadline:
			t.Fatalf("no notification %+v", want)
		}
	}
}

func TestRegisteredFlagIsNotSentToOthers(t *testing.T) {
	a, b := rivals(t)
	here, elsewhere := listenTo(t, a), listenTo(t, b)
	acquaint(t, a, elsewhere)
	register(t, a, "w1")
	awaitNotification(t, here, engine.Notification{Kind: engine.NotifyWorker, Name: "w1", Registered: true})
	awaitNotification(t, elsewhere, engine.Notification{Kind: engine.NotifyWorker, Name: "w1"})
}

func TestNotificationsReachOtherServerOnce(t *testing.T) {
	a, b := rivals(t)
	for _, s := range []*Store{a, b} {
		if d, err := s.Describe(t.Context()); err != nil || d.Notifications != "listen" {
			t.Fatalf("notifications = %q (%v), want listen", d.Notifications, err)
		}
	}
	here, there := listenTo(t, a), listenTo(t, b)
	acquaint(t, a, there)
	start(t, a, 1)
	queue := engine.Notification{Kind: engine.NotifyQueue, Namespace: "default", Name: "orders"}
	awaitNotification(t, there, queue)
	awaitNotification(t, here, queue)
	// The marker from b arrives at a after everything that a sent itself; a's own notification
	// would arrive before.
	marker := engine.Notification{Kind: engine.NotifyRun, ID: engine.NewID(time.Now())}
	b.notifier.notify(storekit.Events(marker))
	for got := range here {
		if got == queue {
			t.Fatalf("a got its own notification again")
		}
		if got == marker {
			return
		}
	}
}

func TestWhatAServerDoesAsideIsCountedByItAlone(t *testing.T) {
	a, b := rivals(t)
	var atA, atB handlers
	here, there := listenWith(t, a, &atA), listenWith(t, b, &atB)
	acquaint(t, a, there)
	late := newStart(a)
	late.DeadlineAt, late.OnFailureWorkflow = a.Now(), "mourn"
	if _, err := a.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{late}}); err != nil {
		t.Fatal(err)
	}
	if expired, err := a.EndExpired(t.Context(), engine.EndExpiredParams{Now: a.Now(), Limit: 1}); err != nil ||
		len(expired.TimedOut) != 1 {
		t.Fatalf("EndExpired = %+v, %v, want one that timed out", expired, err)
	}
	marker := engine.Notification{Kind: engine.NotifyRun, ID: engine.NewID(time.Now())}
	a.notifier.notify(storekit.Events(marker))
	hints := func(notifications <-chan engine.Notification) (all int) {
		for got := range notifications {
			switch {
			case got == marker:
				return all
			case got.Kind == engine.NotifyAll:
				all++
			}
		}
		return all
	}
	if hints(here); atA.Load() != 1 {
		t.Errorf("the server counted %d handlers, want 1", atA.Load())
	}
	if all := hints(there); atB.Load() > 0 || all > 0 {
		t.Errorf("another counted %d handlers, and had %d hints that anything may have changed; want none",
			atB.Load(), all)
	}
}

func TestAServerThatBeginsToListenHasOthersLook(t *testing.T) {
	url := lentURL(t)
	a := openAt(t, url)
	notifications := listenTo(t, a)
	openAt(t, url) // another server was killed before it had sent its last notifications
	awaitNotification(t, notifications, engine.Notification{Kind: engine.NotifyAll})
}

// acquaint returns when the server has learned of the other one, whose notifications these are, and
// the NotifyAll that it then sent has arrived.
func acquaint(t *testing.T, s *Store, notifications <-chan engine.Notification) {
	t.Helper()
	mark := engine.Notification{Kind: engine.NotifyQueue, Namespace: "default", Name: "mark"}
	deadline := time.After(20 * time.Second)
	for heard := false; !heard; {
		s.notifier.notify(storekit.Events(mark))
		select {
		case r := <-notifications:
			heard = r == mark
		case <-deadline:
			t.Fatal("nobody sent the mark")
		}
	}
	s.notifier.flush()
}

// What a server sends before it knows of another is lost to that one, which has read the database
// before.
func TestAServerThatLearnsLateOfAnotherHasItLook(t *testing.T) {
	url := lentURL(t)
	a, b := openAt(t, url), openAt(t, url)
	notifications := listenTo(t, b)
	acquaint(t, a, notifications)
	for what, learns := range map[string]func(){
		"by its hello":     func() { a.notifier.heard("another\n" + hello) },
		"by counting them": func() { a.notifier.count(t.Context()) },
	} {
		now := time.Now()
		a.notifier.flush()
		a.notifier.counted.Store(&now)
		a.notifier.others.Store(false)
		a.notifier.notify(storekit.Events(engine.Notification{
			Kind: engine.NotifyQueue, Namespace: "default", Name: "orders"}))
		a.notifier.flush()
		if a.notifier.hasPending() || a.notifier.others.Load() {
			t.Fatalf("%s: a server that knows of no other has notifications for it", what)
		}
		learns()
		awaitNotification(t, notifications, engine.Notification{Kind: engine.NotifyAll})
	}
}

func TestAServerAloneSendsNoNotifications(t *testing.T) {
	s := openAt(t, lentURL(t))
	start(t, s, 1)
	s.notifier.flush()
	if s.notifier.others.Load() {
		t.Fatalf("a server alone believes that others listen")
	}
	s.notifier.mu.Lock()
	defer s.notifier.mu.Unlock()
	if n := len(s.notifier.pending); n > 0 {
		t.Fatalf("%d notifications wait for servers that are not there", n)
	}
}

func TestNotificationsAreReadAsTheyWereWritten(t *testing.T) {
	id := engine.NewID(time.Now())
	notifications := []engine.Notification{
		{Kind: engine.NotifyQueue, Namespace: "default", Name: "a/b:c.d"},
		{Kind: engine.NotifySlot, Namespace: "x", Name: "y"},
		{Kind: engine.NotifyRun, ID: id}, {Kind: engine.NotifyWorker, Name: "w_1"}, {Kind: engine.NotifyTimer},
		{Kind: engine.NotifyEnd, ID: id}, {Kind: engine.NotifySchedule, Namespace: "default", Name: id.String()},
		{Kind: engine.NotifyNamespace, Name: "team"},
		{Kind: engine.NotifyKeys},
	}
	var got []engine.Notification
	for _, payload := range encodeNotifications("me", notifications) {
		sender, part, _ := decodeNotifications(payload)
		if sender != "me" {
			t.Fatalf("sender = %q, want me", sender)
		}
		got = append(got, part...)
	}
	if fmt.Sprint(got) != fmt.Sprint(notifications) {
		t.Fatalf("notifications = %v, want %v", got, notifications)
	}
	many := make([]engine.Notification, maxKeys+1)
	if _, got, _ := decodeNotifications(encodeNotifications("me", many)[0]); len(got) != 1 ||
		got[0].Kind != engine.NotifyAll {
		t.Fatalf("too many notifications became %v, want NotifyAll", got)
	}
	if _, got, _ := decodeNotifications("me\nz what a newer server sends"); len(got) != 1 ||
		got[0].Kind != engine.NotifyAll {
		t.Fatalf("an unknown notification became %v, want NotifyAll", got)
	}
	long := make([]engine.Notification, 400)
	for i := range long {
		long[i] = engine.Notification{Kind: engine.NotifyQueue, Namespace: "default",
			Name: strings.Repeat("q", 200) + fmt.Sprint(i)}
	}
	for _, payload := range encodeNotifications("me", long) {
		if len(payload) > maxPayload {
			t.Fatalf("a payload has %d bytes, at most %d fit", len(payload), maxPayload)
		}
	}
}
