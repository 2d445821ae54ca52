package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/daemon/internal/parts"
)

// embedded returns the backends of a server on SQLite; wrap may replace the store.
func embedded(wrap func(engine.Store) engine.Store) Backends {
	return Backends{Open: func(ctx context.Context, url string, o engine.OpenOptions) (engine.Store, error) {
		s, err := sqlite.Open(ctx, strings.TrimPrefix(url, "sqlite:"), o)
		if err != nil {
			return nil, err
		}
		if wrap != nil {
			return wrap(s), nil
		}
		return s, nil
	}}
}

func testConfig(t *testing.T) Config {
	c := Defaults()
	c.DataDir, c.Listen, c.HTTP, c.Version = filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", "127.0.0.1:0", "v1.2.3"
	return c
}

// served is a server that runs until the end of the test, or stop.
type served struct {
	Ready
	stop context.CancelFunc
	done chan error // capacity 1
}

func serve(t *testing.T, c Config, b Backends) *served {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := &served{stop: stop, done: make(chan error, 1)}
	ready := make(chan Ready, 1)
	var group sync.WaitGroup
	group.Go(func() { s.done <- Run(ctx, c, b, func(r Ready) { ready <- r }) })
	t.Cleanup(func() { stop(); group.Wait() })
	select {
	case s.Ready = <-ready:
	case err := <-s.done:
		t.Fatalf("the server ended before it was ready: %v", err)
	}
	return s
}

// unreached fails the test when called.
func unreached(t *testing.T) func(Ready) {
	return func(Ready) { t.Error("ready was called") }
}

func healthOf(t *testing.T, address string) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err == nil && answer.Status != healthpb.HealthCheckResponse_SERVING {
		err = errors.New(answer.Status.String())
	}
	return err
}

func TestAServerServesAndStopsGracefully(t *testing.T) {
	c := testConfig(t)
	s := serve(t, c, embedded(nil))
	if _, port, err := net.SplitHostPort(s.Address); err != nil || port == "0" || s.Address != s.Client {
		t.Errorf("address = %q, client %q, want both the port that was chosen", s.Address, s.Client)
	}
	if s.Database.Backend != "sqlite" || s.Version != "v1.2.3" {
		t.Errorf("ready = %+v, want sqlite and v1.2.3", s.Ready)
	}
	if err := healthOf(t, s.Address); err != nil {
		t.Errorf("health: %v", err)
	}
	s.stop()
	if err := <-s.done; err != nil {
		t.Fatalf("Run = %v, want nil after a stop", err)
	}
	if conn, err := net.Dial("tcp", s.Address); err == nil {
		conn.Close()
		t.Error("the port still answers after the stop")
	}
	again := serve(t, c, embedded(nil)) // the database was released
	if err := healthOf(t, again.Address); err != nil {
		t.Errorf("health after the second start: %v", err)
	}
}

func TestASecondServerOnTheSameFileIsRefusedAtOnce(t *testing.T) {
	c := testConfig(t)
	first := serve(t, c, embedded(nil))
	var err error
	synctest.Test(t, func(t *testing.T) { // the bubble's clock advances to what is waited for
		begun := time.Now()
		err = Run(t.Context(), c, embedded(nil), unreached(t))
		if took := time.Since(begun); took > time.Second {
			t.Errorf("refused after %v, want at most 1s", took)
		}
	})
	if err == nil || codeOf(err) != 6 || !mentions(err, first.Address) {
		t.Errorf("error %v with code %d, want one that names %s, with 6", err, codeOf(err), first.Address)
	}
	if err := healthOf(t, first.Address); err != nil {
		t.Errorf("the first server: %v", err)
	}
}

func TestAStartThatTheDatabaseRefusesEndsWithTheCodeOfItsReason(t *testing.T) {
	for _, c := range []struct {
		name        string
		err         error
		interrupted bool
		code        int // 0: no error
	}{
		{name: "a newer program has used it", err: &engine.Error{
			Kind: engine.KindPrecondition, Message: "run that one"}, code: 6},
		{name: "it does not answer", err: &engine.Error{
			Kind: engine.KindUnavailable, Message: "connection refused"}, code: 7},
		{name: "its URL is wrong", err: engine.Invalid("db", "is no URL"), code: 64},
		{name: "it failed", err: errors.New("no such table"), code: 1},
		{name: "it did not answer until the stop",
			err: &engine.Error{Kind: engine.KindUnavailable, Message: "connection refused"}, interrupted: true},
		{name: "it was let be for the stop", err: context.Canceled, interrupted: true},
		{name: "it is in use, as the stop came", err: &engine.Error{Kind: engine.KindPrecondition, Message: "in use"},
			interrupted: true, code: 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			b := Backends{Open: func(context.Context, string, engine.OpenOptions) (engine.Store, error) {
				if c.interrupted {
					interrupt()
				}
				return nil, c.err
			}}
			err := Run(ctx, testConfig(t), b, unreached(t))
			if c.code == 0 && err == nil {
				return
			}
			if err == nil || codeOf(err) != c.code {
				t.Errorf("Run = %v with code %d, want %d", err, codeOf(err), c.code)
			}
		})
	}
}

func TestATakenPortSaysWhichFlagToChange(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	c := testConfig(t)
	c.Listen = taken.Addr().String()
	err = Run(t.Context(), c, embedded(nil), unreached(t))
	if err == nil || codeOf(err) != 1 || !mentions(err, c.Listen, "--listen") {
		t.Fatalf("error %v with code %d, want one that names %s and --listen, with 1", err, codeOf(err), c.Listen)
	}
	c.Listen = "127.0.0.1:0"
	serve(t, c, embedded(nil)) // the database was released
}

func TestAStartThatFailsLeavesNothingOpen(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "no value")
	c := testConfig(t)
	fail := func() {
		t.Helper()
		if err := Run(t.Context(), c, embedded(nil), unreached(t)); err == nil || !mentions(err, "traces") {
			t.Fatalf("error %v, want one about traces", err)
		}
	}
	fail() // the first time may open things that stay open
	before, ignored := openFiles(), goleak.IgnoreCurrent()
	for range slackFiles {
		fail()
	}
	if err := goleak.Find(ignored); err != nil {
		t.Error(err)
	}
	if after := openFiles(); after > before+slackFiles {
		t.Errorf("%d files are open, want %d", after, before)
	}
}

func TestUnsafeSettingsAreRefusedBeforeAnythingIsOpened(t *testing.T) {
	never := Backends{Open: func(context.Context, string, engine.OpenOptions) (engine.Store, error) {
		t.Error("the store was opened")
		return nil, errors.New("opened")
	}}
	c := testConfig(t)
	c.Listen = "0.0.0.0:0"
	if err := Run(t.Context(), c, never, unreached(t)); codeOf(err) != 78 {
		t.Errorf("error %v with code %d, want 78", err, codeOf(err))
	}
	if names, _ := filepath.Glob(c.DataDir); len(names) != 0 {
		t.Error("the data directory was made")
	}
	c = testConfig(t)
	c.WorkerLease = c.HeartbeatInterval
	if err := Run(t.Context(), c, never, unreached(t)); codeOf(err) != 64 {
		t.Errorf("error %v with code %d, want 64", err, codeOf(err))
	}
}

func TestInsecureWarnsAtEveryStart(t *testing.T) {
	var log bytes.Buffer
	c := testConfig(t)
	c.Listen, c.Insecure, c.Log = "0.0.0.0:0", true, slog.New(slog.NewTextHandler(&log, nil))
	s := serve(t, c, embedded(nil))
	if !strings.HasPrefix(s.Client, "127.0.0.1:") {
		t.Errorf("clients are sent to %s, want loopback", s.Client)
	}
	s.stop()
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
	if text := log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "--insecure") {
		t.Errorf("log = %s, want a warning about --insecure", text)
	}
}

// brokenStore fails on request of the test.
type brokenStore struct {
	engine.Store
	fatal   chan struct{}
	failure error
	listen  func(context.Context) error
}

func (s *brokenStore) Fatal() <-chan struct{} { return s.fatal }
func (s *brokenStore) Failure() error         { return s.failure }

func (s *brokenStore) Listen(ctx context.Context, notify func(engine.Notification), o engine.Outcomes) error {
	if s.listen != nil {
		return s.listen(ctx)
	}
	return s.Store.Listen(ctx, notify, o)
}

func TestAFailedStoreEndsTheProcessAtOnceWithItsCode(t *testing.T) {
	for want, failure := range map[int]error{
		70: errors.New("sync: input/output error"),
		71: &exitError{code: 71, err: errors.New("the file is damaged")},
	} {
		broken := &brokenStore{fatal: make(chan struct{}), failure: failure}
		s := serve(t, testConfig(t), embedded(func(inner engine.Store) engine.Store {
			broken.Store = inner
			return broken
		}))
		t.Cleanup(func() { _ = broken.Store.Close() }) // the end of a real process would do this
		close(broken.fatal)
		if err := <-s.done; codeOf(err) != want || !mentions(err, failure.Error()) {
			t.Errorf("Run = %v with code %d, want %v with %d", err, codeOf(err), failure, want)
		}
	}
}

func TestAPartThatEndsByItselfEndsTheServer(t *testing.T) {
	begun, fail := make(chan struct{}), make(chan struct{})
	s := serve(t, testConfig(t), embedded(func(inner engine.Store) engine.Store {
		return &brokenStore{Store: inner, listen: func(context.Context) error {
			close(begun)
			<-fail
			return errors.New("no more events")
		}}
	}))
	<-begun
	close(fail)
	if err := <-s.done; err == nil || !mentions(err, "notifications: no more events") {
		t.Fatalf("Run = %v, want the error of the part", err)
	}
}

func TestAnInterruptedStartIsAStop(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	slow := Backends{Open: func(ctx context.Context, _ string, _ engine.OpenOptions) (engine.Store, error) {
		stop()
		return nil, context.Cause(ctx)
	}}
	if err := Run(ctx, testConfig(t), slow, unreached(t)); err != nil {
		t.Fatalf("Run = %v, want nil", err)
	}
}

func TestAStopTakesNoLongerThanItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := &process{log: slog.New(slog.DiscardHandler), store: closable{}, parts: parts.New()}
		p.parts.Start("first", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		p.parts.Start("stuck", func(context.Context) error { <-release; return nil })
		p.parts.Start("last", func(ctx context.Context) error { <-ctx.Done(); return nil })
		begun := time.Now()
		err := p.stop()
		if took := time.Since(begun); took != 30*time.Second || err == nil || !mentions(err, "30s", "stuck") {
			t.Errorf("stop = %v after %v, want an error that names the part after 30s", err, took)
		}
		close(release)
	})
}

func TestPartsStopInReverseAndEachKeepsItsContextUntilItsTurn(t *testing.T) {
	var mu sync.Mutex
	var order []string
	p := parts.New()
	for _, name := range []string{"a", "b", "c"} {
		p.Start(name, func(ctx context.Context) error {
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
			return ctx.Err()
		})
	}
	if err := p.Stop(); err != nil || strings.Join(order, "") != "cba" {
		t.Errorf("stopped %v, %v, want c, b, a", order, err)
	}
}

// closable is a store that can only be closed.
type closable struct{ engine.Store }

func (closable) Close() error           { return nil }
func (closable) Fatal() <-chan struct{} { return nil }

func TestTheAnnouncementNamesAddressDatabaseVersionAndTheNextCommand(t *testing.T) {
	var out bytes.Buffer
	announce(&out, Ready{
		Address: "0.0.0.0:1234", Client: "127.0.0.1:1234", Version: "v1",
		Database: engine.Description{Backend: "sqlite", Database: "/data/\x1b[31mk.db"},
	})
	want :=
		"kagzi server is ready\n  address   0.0.0.0:1234\n  database  sqlite /data/\\x1b[31mk.db\n  version   v1\n" +
			"  next      kagzi workflow list --address 127.0.0.1:1234\n"
	if out.String() != want {
		t.Errorf("announcement:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestTheNextCommandOfTheAnnouncementReachesTheServer(t *testing.T) {
	for _, c := range []struct {
		ready Ready
		want  string
	}{
		{Ready{}, " a:1\n"},
		{Ready{Keyed: true}, " a:1 --api-key-file FILE\n"},
		{Ready{TLS: true}, " a:1 --tls\n"},
		{Ready{TLS: true, CA: "/the tls/ca.crt", Keyed: true},
			" a:1 --tls-ca " + word("/the tls/ca.crt") + " --api-key-file FILE\n"},
	} {
		var out bytes.Buffer
		c.ready.Client = "a:1"
		announce(&out, c.ready)
		if want := "  next      kagzi workflow list --address" + c.want; !strings.HasSuffix(out.String(), want) {
			t.Errorf("announcement:\n%s\nwant at its end %q", out.String(), want)
		}
	}
}

func TestAnAuthorityThatDidNotSignTheCertificateIsNotNamed(t *testing.T) {
	c := encrypted(t)
	c.Log = slog.New(slog.DiscardHandler)
	keeper, err := c.keepCertificates()
	if err != nil {
		t.Fatal(err)
	}
	if got := authorityBeside(keeper); got != c.ClientCA {
		t.Errorf("the authority is %q, want %q", got, c.ClientCA)
	}
	text, err := os.ReadFile(team(t).ClientCA)
	if err == nil {
		err = os.WriteFile(c.ClientCA, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := authorityBeside(keeper); got != "" || authorityBeside(nil) != "" {
		t.Errorf("of another authority and without TLS: %q, want nothing", got)
	}
}

func TestDatabaseCommandsPrintWhatTheyFind(t *testing.T) {
	statuses := []engine.SchemaStatus{{Applied: 1, Newest: 3, Pending: []string{"0002_b", "0003_c"}},
		{Applied: 3, Newest: 3}}
	var findings []engine.Finding
	b := Backends{
		Status: func(context.Context, string) (engine.SchemaStatus, error) { return statuses[0], nil },
		Migrate: func(context.Context, string) error {
			statuses = statuses[1:]
			return nil
		},
		Check: func(context.Context, string) ([]engine.Finding, error) { return findings, nil },
	}
	moved := engine.SchemaStatus{Applied: 3, Newest: 3}
	moved.Refuse(engine.StandingMoved, `{"to":"box\u001b","done":true}`)
	const movedText = `this database was moved to box\x1b: start the server on that one; if no server has run on it yet, ` + "`kagzi db copy --release URL --force` undoes the move"
	missing, newer := engine.SchemaStatus{Newest: 3, Pending: []string{"0001_a"}, Missing: true},
		engine.SchemaStatus{Applied: 4, Newest: 3}
	placed := engine.SchemaStatus{Applied: 3, Newest: 3, Place: "shop", Warnings: []string{"move it"}}
	for _, step := range []struct {
		name, out string
		as        string
		status    *engine.SchemaStatus // the status from then on
		findings  []engine.Finding
		fails     string
		code      int
	}{
		{name: "status", out: "schema 1 of 3\npending 0002_b\npending 0003_c\n"},
		{
			name: "status", as: "json",
			out: `{"database":"postgres://ada@box/x","exists":true,"schema":1,"newest_schema":3,"pending":["0002_b","0003_c"]}` + "\n",
		},
		{name: "migrate", out: "applied 0002_b\napplied 0003_c\nschema 3 of 3\n"},
		{name: "check", out: "sound\n"},
		{name: "check", as: "json", out: `{"database":"postgres://ada@box/x","sound":true,"findings":[]}` + "\n"},
		{
			name: "check", findings: []engine.Finding{
				{Subject: "run 1", Text: "no lease\x1b"}, {Subject: "step 2", Text: "orphan"}},
			out: "run 1: no lease\\x1b\nstep 2: orphan\n", fails: "findings: 2", code: 1,
		},
		{
			name: "check", as: "json", findings: []engine.Finding{{Subject: "run 1", Text: "no lease\x1b"}},
			out:   `{"database":"postgres://ada@box/x","sound":false,"findings":["run 1: no lease\u001b"]}` + "\n",
			fails: "findings: 1", code: 1,
		},
		{name: "status", status: &moved, out: "schema 3 of 3\n", fails: "this database was moved to box", code: 6},
		{name: "check", out: "sound\ncannot be served: " + movedText + "\n"},
		{name: "status", status: &placed, out: "schema 3 of 3\nin the Postgres schema shop\nwarning: move it\n"},
		{
			name: "status", as: "json",
			out: `{"database":"postgres://ada@box/x","exists":true,"schema":3,"newest_schema":3,"pending":[],"postgres_schema":"shop","warnings":["move it"]}` + "\n",
		},
		{name: "check", out: "sound\nin the Postgres schema shop\n"},
		{name: "status", status: &newer, out: "schema 4 of 3\n", fails: "newer version", code: 6},
		{name: "status", status: &missing, fails: "no database postgres://ada@box/x: ", code: 5},
		{name: "status", as: "json", fails: "no database", code: 5,
			out: `{"database":"postgres://ada@box/x","exists":false,"schema":0,"newest_schema":3,"pending":["0001_a"]}` + "\n"},
		{name: "check", fails: "no database", code: 5},
		{name: "check", as: "xml", fails: "must be table or json", code: 64},
	} {
		if findings = step.findings; step.status != nil {
			statuses[0] = *step.status
		}
		cmd, out := newDatabase(b), &bytes.Buffer{}
		cmd.SetArgs([]string{step.name, "--db", "postgres://ada:secret@box/x", "-o", cmp.Or(step.as, "table")})
		cmd.SetOut(out)
		cmd.SetErr(io.Discard)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		if out.String() != step.out {
			t.Errorf("%s %s prints %q, want %q", step.name, step.as, out, step.out)
		}
		if (err == nil) != (step.fails == "") || err != nil &&
			(codeOf(err) != step.code || !mentions(err, step.fails) || mentions(err, "secret")) {
			t.Errorf("%s %s ends with %v, want %q and code %d", step.name, step.as, err, step.fails, step.code)
		}
	}
}
