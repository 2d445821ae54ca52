package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/internal/storekit"
	"github.com/kagzi/kagzi/engine"
)

// marked returns the URL with its own application name, which identifies the backends of one test.
func marked(t *testing.T) (url, name string) {
	t.Helper()
	name = "kagzi " + engine.NewToken().Wire()
	return lentURL(t) + "&application_name=" + strings.ReplaceAll(name, " ", "%20"), name
}

// killBackends ends the connections of that name, and returns how many there were.
func killBackends(t *testing.T, admin *pgx.Conn, name, query string) (killed int) {
	t.Helper()
	err := admin.QueryRow(context.Background(),
		`select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = $1 and query ilike $2`,
		name, query).Scan(&killed)
	if err != nil {
		t.Fatal(err)
	}
	return killed
}

func adminConnection(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), strings.Split(url, "&application_name")[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func TestKilledConnectionsLoseNothingThatWasAcknowledged(t *testing.T) {
	url, name := marked(t)
	s, admin := openAt(t, url), adminConnection(t, url)
	register(t, s, "w1")
	start(t, s, 8)
	claimed, err := s.Claim(t.Context(), claimParams(s, "w1", 8))
	if err != nil || len(claimed.Tasks) != 8 {
		t.Fatalf("Claim: %d tasks, %v", len(claimed.Tasks), err)
	}
	var acknowledged sync.Map
	var writes, refused atomic.Int64
	stop := make(chan struct{})
	var group sync.WaitGroup
	for _, task := range claimed.Tasks {
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				p := engine.CompleteStepParams{Lease: task.Lease, Step: engine.StepRef{Name: fmt.Sprintf("step-%d", i)},
					ID: engine.NewID(s.Now()), Output: engine.Payload{Data: []byte(fmt.Sprint(i))}, Now: s.Now()}
				for {
					step, err := s.CompleteStep(t.Context(), p)
					if err == nil {
						acknowledged.Store(step.ID, string(step.Output.Data))
						writes.Add(1)
						break
					}
					if !errors.Is(err, engine.ErrUnavailable) {
						t.Errorf("CompleteStep: %v, want no error or ErrUnavailable", err)
						return
					}
					refused.Add(1)
					p.ID = engine.NewID(s.Now()) // as a caller does who repeats the call
				}
			}
		})
	}
	for killed := 0; killed < 40; {
		killed += killBackends(t, admin, name, "%")
		before := writes.Load()
		for deadline := time.Now().Add(10 * time.Second); writes.Load() < before+20; {
			if time.Now().After(deadline) {
				t.Fatalf("the store did not recover: %d writes, %d refused", writes.Load(), refused.Load())
			}
			if err := admin.Ping(t.Context()); err != nil { // lets the writers run
				t.Fatal(err)
			}
		}
	}
	close(stop)
	group.Wait()
	t.Logf("%d writes were acknowledged, %d refused", writes.Load(), refused.Load())
	acknowledged.Range(func(id, output any) bool {
		step, err := s.GetStep(t.Context(), "default", id.(engine.ID))
		if err != nil || string(step.Output.Data) != output {
			t.Errorf("an acknowledged step is %q (%v), want %q", step.Output.Data, err, output)
		}
		return !t.Failed()
	})
	expectSound(t, url)
}

func TestALostListenerComesBackAndNotifiesEverybody(t *testing.T) {
	url, name := marked(t)
	s, admin := openAt(t, url), adminConnection(t, url)
	notifications := listenTo(t, s)
	if killed := killBackends(t, admin, name, "%pg_advisory_lock_shared%"); killed != 1 {
		t.Fatalf("killed %d listening connections, want 1", killed)
	}
	awaitNotification(t, notifications, engine.Notification{Kind: engine.NotifyAll}) // no notifications arrive
	for deadline := time.Now().Add(20 * time.Second); s.notifier.mode() != "listen"; {
		if time.Now().After(deadline) {
			t.Fatalf("notifications = %q, want listen", s.notifier.mode())
		}
		if err := admin.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	awaitNotification(t, notifications, engine.Notification{Kind: engine.NotifyAll}) // for what was missed since then
	other := openAt(t, url)
	start(t, other, 1)
	awaitNotification(t, notifications, engine.Notification{
		Kind: engine.NotifyQueue, Namespace: "default", Name: "orders"})
}

func TestFailedNotificationsBecomeNotifyAll(t *testing.T) {
	url := lentURL(t)
	s, other := openAt(t, url), openAt(t, url)
	notifications := listenTo(t, other)
	acquaint(t, s, notifications)
	// more than a Postgres notification may hold
	s.notifier.notify(storekit.Events(engine.Notification{
		Kind: engine.NotifyQueue, Namespace: "default", Name: strings.Repeat("x", 10_000)}))
	awaitNotification(t, notifications, engine.Notification{Kind: engine.NotifyAll})
}

func TestACommitWhoseAnswerIsLostNotifiesEverybodyAfterwards(t *testing.T) {
	url, name := marked(t)
	s, admin, watch := openAt(t, url), adminConnection(t, url), adminConnection(t, url)
	register(t, s, "w1")
	start(t, s, 1)
	claimed, err := s.Claim(t.Context(), claimParams(s, "w1", 1))
	if err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("Claim: %d tasks, %v", len(claimed.Tasks), err)
	}
	lease := claimed.Tasks[0].Lease
	notifications := listenTo(t, s)
	for table, do := range map[string]func() error{ // the commit's round trip waits for it
		"leases": func() error { // in a group
			_, err := s.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: lease, Now: s.Now()})
			return err
		},
		"audit": func() error { // alone
			return s.NoteRefusal(t.Context(), engine.AuditEvent{
				ID: engine.NewID(s.Now()), At: s.Now(), Namespace: "default", Method: "CancelWorkflow"})
		},
	} {
		lock, err := admin.Begin(t.Context())
		if err == nil {
			_, err = lock.Exec(t.Context(), "lock table "+table+" in access exclusive mode")
		}
		if err != nil {
			t.Fatal(err)
		}
		written := make(chan error, 1)
		go func() { written <- do() }()
		for killed := 0; killed == 0; {
			// once it waits for the lock; inside a transaction, sessions that begin later would not
			// be visible
			if err := watch.QueryRow(t.Context(), `
				select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock'`, name).Scan(&killed); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-written; !errors.Is(err, engine.ErrUnavailable) {
			t.Errorf("the commit that waits for %s: %v, want ErrUnavailable", table, err)
		}
		if err := lock.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		awaitNotification(t, notifications, engine.Notification{Kind: engine.NotifyAll})
	}
}

func TestMissingDatabaseIsUnavailableWithoutSecret(t *testing.T) {
	s := openAt(t, lentURL(t))
	s.pool.Close()
	_, err := s.StartRuns(t.Context(), engine.StartRunsParams{Runs: []engine.StartRun{newStart(s)}})
	if !errors.Is(err, engine.ErrUnavailable) {
		t.Fatalf("StartRuns: %v, want ErrUnavailable", err)
	}
	if err := s.Health(t.Context()); !errors.Is(err, engine.ErrUnavailable) {
		t.Fatalf("Health: %v, want ErrUnavailable", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = Status(ctx, "postgres://kagzi:hush-hush@localhost:1/kagzi?connect_timeout=1")
	if !errors.Is(err, engine.ErrUnavailable) || strings.Contains(err.Error(), "hush") {
		t.Fatalf("Status: %v, want ErrUnavailable without the password", err)
	}
	if _, err = Status(ctx, "postgres://kagzi:hush-hush@localhost:port/kagzi"); err == nil ||
		strings.Contains(err.Error(), "hush") {
		t.Fatalf("Status: %v, want an error without the password", err)
	}
}

// expectSound fails the test if Check finds anything.
func expectSound(t testing.TB, url string) {
	t.Helper()
	findings, err := Check(context.Background(), url)
	expectNoFindings(t, findings, err)
}

func expectNoFindings(t testing.TB, findings []engine.Finding, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("Check: %v", err)
	}
	for _, f := range findings {
		t.Errorf("%s %s", f.Subject, f.Text)
	}
}
