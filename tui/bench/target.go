package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/profile"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/child"
)

// answerLimit limits how long the measured server may take to answer.
const answerLimit = 5 * time.Second

// target selects the servers to measure.
type target struct {
	address string          // of a running server; empty: private servers for each measurement
	db      string          // of private servers; empty: SQLite
	delay   *delayed        // between them and Postgres; nil: none
	dir     string          // parent directory of private servers; empty if there are none
	servers int             // private servers per measurement, at least 1
	reach   profile.Profile // how to reach the running server
	info    *kagziv1.GetServerInfoResponse

	fullDB string   // of the private server with many ended runs; empty: SQLite
	full   *private // that server, for all measurements; nil: not needed yet
}

// private is a server started by the bench.
type private struct {
	*child.Server
	dir string
}

func (s *private) place() place {
	return place{address: s.Address, pid: s.PID(), metrics: fact(s.Info, "settings", "http")}
}

func (s *private) stop() error { return errors.Join(s.Stop(stopGrace), os.RemoveAll(s.dir)) }

// findTarget returns the server named on the command line, or private servers. A server named only
// by the environment or kagzi.toml is not measured: that is not enough to put load on it.
func findTarget(ctx context.Context, o options) (*target, error) {
	running := o.said.Address != "" || o.said.Name != "" && o.said.Name != profile.Off
	switch {
	case o.db != "" && running:
		return nil,
			usagef("--db is for a private server, --address and --profile for a running one: give only one of them")
	case o.servers > 1 && o.db == "":
		return nil, usagef("--servers %d is for private servers sharing Postgres: add --db", o.servers)
	case o.dbDelay > 0 && o.db == "":
		return nil, usagef("--db-delay %s is for private servers on Postgres: add --db", o.dbDelay)
	case running:
		return runningTarget(ctx, o.said)
	case o.said.TLS != nil || cmp.Or(string(o.said.APIKey), o.said.APIKeyFile, o.said.TLSCA, o.said.TLSCert,
		o.said.TLSKey, o.said.TLSServerName) != "":
		return nil,
			usagef(
				"a private server has no keys and no TLS: add --address or --profile to measure a running server")
	}
	dir, err := diskDirectory(o.dir)
	if err != nil {
		return nil, err
	}
	t := &target{db: o.db, dir: dir, servers: o.servers, fullDB: o.fullDB}
	if o.dbDelay > 0 {
		t.delay, t.db, err = delayDatabase(o.db, o.dbDelay)
	}
	return t, err
}

// runningTarget returns the server at the given address, or that of the profile.
func runningTarget(ctx context.Context, said profile.Profile) (*target, error) {
	reach, err := profile.Resolve(said)
	if err != nil {
		return nil, usagef("%w", err)
	}
	dial, err := dialOptions(reach)
	if err != nil {
		return nil, usagef("%w", err)
	}
	info, err := child.Ask(ctx, dial, answerLimit)
	if err != nil {
		return nil, unanswered(reach.Address, err)
	}
	return &target{address: reach.Address, reach: reach, info: info}, nil
}

// namespace returns the namespace to use: as in every client command on a running server, and
// without profiles on private ones.
func (t *target) namespace(o options) string {
	if t.address != "" {
		return t.reach.Namespace
	}
	return cmp.Or(o.said.Namespace, os.Getenv("KAGZI_NAMESPACE"), profile.DefaultNamespace)
}

// dialOptions returns how to reach the server of a profile. Errors are about files of keys and
// certificates.
func dialOptions(p profile.Profile) (tui.DialOptions, error) {
	encrypted, err := p.TLSConfig()
	if err != nil {
		return tui.DialOptions{}, err
	}
	key, err := p.Key()
	return tui.DialOptions{Address: p.Address, APIKey: string(key), TLS: encrypted}, err
}

// unanswered explains why a server could not be asked: it is not there, or it refuses.
func unanswered(address string, err error) error {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded:
		return &exitError{exitUnavailable, fmt.Errorf(
			"no server answers at %s; start one with kagzi server, or omit the address to measure a private one",
			address)}
	case codes.Unauthenticated, codes.PermissionDenied:
		return &exitError{exitPermissionDenied, fmt.Errorf(
			"the server at %s refused: %s", address, status.Convert(err).Message())}
	}
	return fmt.Errorf("the server at %s: %w", address, err)
}

// backend returns a server's database with its version: "sqlite 3.51.0".
func backend(info *kagziv1.GetServerInfoResponse) string {
	return strings.TrimSpace(info.GetBackend() + " " + info.GetBackendVersion())
}

// say describes where the measurements run and what stays behind.
func (t *target) say() string {
	switch {
	case t.address != "":
		return fmt.Sprintf(
			"measuring the server at %s (%s, %s); the runs stay in its database, in queues named %s*",
			t.address, backend(t.info), t.info.GetDatabase(), queuePrefix)
	case t.db != "":
		return fmt.Sprintf(
			"starting %s for each measurement on the database of --db; the runs stay in it, in queues named %s*",
			count(t.servers, "private server"), queuePrefix)
	}
	return fmt.Sprintf("starting a private server for each measurement, on SQLite under %s, removed afterwards", t.dir)
}

// open returns the servers for one measurement, and the database's name if it is on Postgres. Call
// closeAll afterwards.
func (t *target) open(ctx context.Context) (places []place, database string, closeAll func() error, err error) {
	if t.address != "" {
		return []place{{address: t.address}}, "", func() error { return nil }, nil
	}
	var servers []*private
	closeAll = func() error {
		var errs []error
		for _, s := range servers {
			errs = append(errs, s.stop())
		}
		return errors.Join(errs...)
	}
	for range t.servers {
		s, err := t.start(ctx, t.db)
		if err != nil {
			return nil, "", nil, errors.Join(err, closeAll())
		}
		servers, places, t.info = append(servers, s), append(places, s.place()), s.Info
	}
	return places, postgresName(t.info), closeAll, nil
}

// openFull returns the server on the database with many ended runs, the same for all measurements
// until the target is closed.
func (t *target) openFull(ctx context.Context) (p place, database string, err error) {
	if t.full == nil {
		if t.full, err = t.start(ctx, t.fullDB); err != nil {
			return p, "", err
		}
	}
	return t.full.place(), postgresName(t.full.Info), nil
}

func (t *target) close() error {
	var err error
	if t.full != nil {
		err = t.full.stop()
	}
	return errors.Join(err, t.delay.close())
}

func (t *target) start(ctx context.Context, db string) (*private, error) {
	dir, err := os.MkdirTemp(t.dir, "kagzi-bench-")
	if err != nil {
		return nil, err
	}
	server, err := child.StartServer(ctx, child.ServerSpec{
		DataDir: dir, DB: db, Flags: []string{"--http", "127.0.0.1:0"}})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &private{server, dir}, nil
}

// suits reports an error if a workload cannot be measured on this target.
func (t *target) suits(chosen []workload) error {
	for _, w := range chosen {
		switch {
		case w.oneWorker && t.servers > 1:
			return usagef("%s looks into one worker process: measure it without --servers", w.id)
		case w.fills && t.address != "":
			return usagef(
				"%s fills a database with ended runs, so it needs private servers: use --db, not the server at %s",
				w.id, t.address)
		case w.fills && t.db != "" && !strings.HasPrefix(t.db, "sqlite:") && t.fullDB == "":
			return usagef("%s compares two databases: give an empty one with --db and the one to fill with --full-db",
				w.id)
		}
	}
	return nil
}

// postgresName returns the name of a server's Postgres database; empty for SQLite.
func postgresName(info *kagziv1.GetServerInfoResponse) string {
	if info.GetBackend() != "postgres" {
		return ""
	}
	return info.GetDatabase()
}

// diskDirectory returns the wanted directory, or a temporary one on a disk. A database in memory
// would measure something else.
func diskDirectory(wanted string) (string, error) {
	if wanted != "" {
		return filepath.Abs(wanted)
	}
	candidates := []string{os.TempDir(), "/var/tmp"}
	if cache, err := os.UserCacheDir(); err == nil {
		candidates = append(candidates, cache)
	}
	for _, dir := range append(candidates, ".") {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && !inMemory(dir) {
			return filepath.Abs(dir)
		}
	}
	return "", usagef("no temporary directory is on a disk; choose a directory with --dir")
}
