package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/child"
)

const (
	namespace  = "default"
	queue      = "demo"
	crashQueue = "demo-crash" // of the run whose worker is killed; no other run uses it
	slotQueue  = "demo-slot"  // of the runs that share a worker's only slot
)

// serverFlags make a lost worker show after seconds instead of half a minute.
var serverFlags = []string{"--worker-lease", "2s", "--heartbeat-interval", "500ms"}

// environment is a private server, workers and a directory, all removed by close.
type environment struct {
	dir    string
	ledger ledger
	server *child.Server
	client *kagzi.Client
	api    *tui.Conn

	mu      sync.Mutex
	workers map[string]*child.Process // by name
	hands   []*hand                   // Go, Python and TypeScript; none without them
}

// build creates the directory, starts the server and the workers, and waits until all are ready.
func build(ctx context.Context, workers map[string]post) (*environment, error) {
	dir, err := os.MkdirTemp("", "kagzi-demo-")
	if err != nil {
		return nil, err
	}
	s := &environment{dir: dir, ledger: ledger(filepath.Join(dir, "ledger")), workers: map[string]*child.Process{}}
	if err := s.start(ctx, workers); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *environment) start(ctx context.Context, workers map[string]post) error {
	data := filepath.Join(s.dir, "data")
	if err := errors.Join(os.Mkdir(data, 0o700), os.Mkdir(string(s.ledger), 0o700)); err != nil {
		return err
	}
	var err error
	if s.server, err = child.StartServer(ctx, child.ServerSpec{DataDir: data, Flags: serverFlags}); err != nil {
		return err
	}
	if s.api, err = tui.Dial(tui.DialOptions{Address: s.server.Address}); err != nil {
		return err
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil)) // the checks report problems
	s.client, err = kagzi.NewClient(kagzi.ClientOptions{
		Profile: kagzi.NoProfile, Address: s.server.Address, Namespace: namespace, Logger: quiet})
	if err != nil {
		return err
	}
	for name, at := range workers {
		if s.workers[name], err = (workerSpec{name: name, address: s.server.Address, post: at,
			ledger: s.ledger}).start(); err != nil {
			delete(s.workers, name)
			return err
		}
	}
	for name, w := range s.workers {
		if _, err := w.Await(ctx, func(line string) (string, bool) { return "", line == workerReady }); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// kill ends a worker as kill -9 does.
func (s *environment) kill(worker string) error {
	p := s.take(worker)
	if p == nil {
		return fmt.Errorf("no worker %s", worker)
	}
	p.Kill()
	return nil
}

// stopAllBut stops all workers but one gracefully.
func (s *environment) stopAllBut(but string) error {
	var errs []error
	s.mu.Lock()
	names := slices.Collect(maps.Keys(s.workers))
	s.mu.Unlock()
	for _, name := range names {
		if name == but {
			continue
		}
		if p := s.take(name); p != nil {
			errs = append(errs, p.Stop(stopGrace))
		}
	}
	return errors.Join(errs...)
}

func (s *environment) take(worker string) *child.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.workers[worker]
	delete(s.workers, worker)
	return p
}

// close stops the workers, then the server, and removes the directory. It reports the first that
// did not stop gracefully.
func (s *environment) close() error {
	var errs []error
	var stopping sync.WaitGroup
	ends := make(chan error, len(s.workers))
	for _, w := range s.workers {
		stopping.Go(func() { ends <- w.Stop(stopGrace) })
	}
	stopping.Wait()
	close(ends)
	for err := range ends {
		errs = append(errs, err)
	}
	if s.client != nil {
		errs = append(errs, s.client.Close())
	}
	if s.api != nil {
		errs = append(errs, s.api.Close())
	}
	if s.server != nil {
		errs = append(errs, s.server.Stop(stopGrace))
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
