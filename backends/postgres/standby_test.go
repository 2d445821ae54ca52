package postgres

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/engine"
)

// onStandby is a store whose commits can be made to wait for a standby that does not exist.
type onStandby struct {
	*Store
	admin *pgx.Conn
}

// set changes a setting of the whole server.
func (s *onStandby) set(t *testing.T, statement string) {
	t.Helper()
	for _, text := range []string{statement, "select pg_reload_conf()"} {
		if _, err := s.admin.Exec(context.Background(), text); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *onStandby) giveUp(t *testing.T) { s.set(t, "alter system reset synchronous_standby_names") }

// takeAway makes all commits from now on wait.
func (s *onStandby) takeAway(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { s.giveUp(t) })
	s.set(t, "alter system set synchronous_standby_names = 'nobody'")
	for { // the server got the setting a moment ago
		run := newStart(s.Store)
		if first := beginning(func() error { return startOne(s.Store, run) }); s.cutShort(t, first) {
			return
		}
	}
}

func startOne(s *Store, p engine.StartRun) error {
	_, err := s.StartRuns(context.Background(), engine.StartRunsParams{Runs: []engine.StartRun{p}})
	return err
}

// beginning calls do and sends its error to answered.
func beginning(do func() error) (answered chan error) {
	answered = make(chan error, 1)
	go func() { answered <- do() }()
	return answered
}

// waits returns the process whose commit waits for the standby; 0: the call was answered without
// that.
func (s *onStandby) waits(t *testing.T, answered chan error) (pid int) {
	t.Helper()
	for pid == 0 {
		select {
		case err := <-answered:
			if err != nil {
				t.Fatal(err)
			}
			return 0
		default:
		}
		err := s.admin.QueryRow(t.Context(),
			"select coalesce(max(pid), 0) from pg_stat_activity where wait_event = 'SyncRep'").Scan(&pid)
		if err != nil {
			t.Fatal(err)
		}
	}
	return pid
}

// cutShort ends the wait of a commit, which then counts on this server; false: it was answered
// without waiting.
func (s *onStandby) cutShort(t *testing.T, answered chan error) bool {
	t.Helper()
	pid := s.waits(t, answered)
	if pid == 0 {
		return false
	}
	if _, err := s.admin.Exec(t.Context(), "select pg_terminate_backend($1)", pid); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; !errors.Is(err, engine.ErrUnavailable) {
		t.Fatalf("call whose wait was cut short = %v, want unavailable", err)
	}
	return true
}

func TestRepeatedCallWaitsForStandby(t *testing.T) {
	if os.Getenv("KAGZI_TEST_POSTGRES") != "" {
		t.Skip("NOT TESTED: it changes the settings of its server")
	}
	for name, prepare := range map[string]func(t *testing.T, s *Store, l engine.Lease) func() error{
		"a start by its request": func(_ *testing.T, s *Store, _ engine.Lease) func() error {
			p := newStart(s)
			p.RequestID = "once"
			return func() error {
				p.ID = engine.NewID(s.Now()) // as a caller does who repeats the call
				return startOne(s, p)
			}
		},
		"a start by its external id": func(_ *testing.T, s *Store, _ engine.Lease) func() error {
			p := newStart(s)
			p.ExternalID = "once"
			return func() error {
				p.ID = engine.NewID(s.Now())
				return startOne(s, p)
			}
		},
		"a step": func(t *testing.T, s *Store, l engine.Lease) func() error {
			p := engine.CompleteStepParams{Lease: l, Step: engine.StepRef{Name: "pay"}, ID: engine.NewID(s.Now()),
				Now: s.Now()}
			return func() error {
				_, err := s.CompleteStep(context.Background(), p)
				return err
			}
		},
		"an end": func(t *testing.T, s *Store, l engine.Lease) func() error {
			return func() error {
				_, err := s.CompleteRun(context.Background(), engine.CompleteRunParams{Lease: l, Now: s.Now()})
				return err
			}
		},
		"a signal": func(t *testing.T, s *Store, l engine.Lease) func() error {
			p := engine.SignalRunParams{Namespace: "default", RunID: l.RunID, Name: "approve", SignalID: "once",
				Now: s.Now()}
			return func() error {
				_, err := s.SignalRun(context.Background(), p)
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := pgtest.DurableURL(t)
			s := &onStandby{openAt(t, url), adminConnection(t, url)}
			register(t, s.Store, "w1")
			start(t, s.Store, 1)
			claimed, err := s.Claim(t.Context(), claimParams(s.Store, "w1", 1))
			if err != nil || len(claimed.Tasks) != 1 {
				t.Fatalf("Claim: %d tasks, %v", len(claimed.Tasks), err)
			}
			call := prepare(t, s.Store, claimed.Tasks[0].Lease)
			s.takeAway(t)
			if !s.cutShort(t, beginning(call)) {
				t.Fatal("it is acknowledged, and no standby has it")
			}
			again := beginning(call)
			if s.waits(t, again) == 0 {
				t.Fatal("it is acknowledged when it is repeated, and no standby has it")
			}
			s.giveUp(t)
			if err := <-again; err != nil {
				t.Errorf("repeated, and without a standby to wait for = %v", err)
			}
		})
	}
}
