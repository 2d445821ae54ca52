//go:build linux

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// system is what is compared: Kagzi or River, on a cluster of its own.
type system interface {
	// start brings it up on the cluster, all but its worker, and says where the worker finds it.
	start(ctx context.Context, c *cluster) (place string, err error)
	// enqueue is repeated with the same number until it succeeds.
	enqueue(ctx context.Context, number int) error
	// table is the one that readers scan.
	table() string
	role() string
	where() string // its directory
	stop()
}

// worktime is how long the effect of a job takes.
const worktime = 5 * time.Millisecond

// abandoned is after how long the work of a worker that is gone is given to another: Kagzi's default, set for River, whose own is an hour.
const abandoned = 30 * time.Second

// effect is what a job does: it writes its number where no crash takes it back.
func effect(number int) {
	time.Sleep(worktime)
	os.Stdout.WriteString(strconv.Itoa(number) + "\n")
}

// work is the worker process of a system.
func work(ctx context.Context, role, place string) error {
	if role == "kagzi" {
		w := kagzi.NewWorker(kagzi.WorkerOptions{Address: place, Profile: kagzi.NoProfile, Logger: quiet, Queue: "compare"})
		kagzi.Handle(w, "job", func(ctx kagzi.Context, number int) (bool, error) {
			return kagzi.Step(ctx, "effect", func(context.Context) (bool, error) { effect(number); return true, nil })
		})
		return w.Run(ctx)
	}
	pool, err := pgxpool.New(ctx, place)
	if err != nil {
		return err
	}
	defer pool.Close()
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, j *river.Job[job]) error { effect(j.Args.Number); return nil }))
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}}, Workers: workers, Logger: quiet,
		JobTimeout: abandoned / 2, RescueStuckJobsAfter: abandoned,
	})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	<-client.Stopped()
	return nil
}

var quiet = slog.New(slog.DiscardHandler)

type kagziSystem struct {
	binary, dir string
	client      *kagzi.Client
	server      *exec.Cmd
}

func newKagzi(binary, dir string) system { return &kagziSystem{binary: binary, dir: dir} }

func (k *kagziSystem) start(ctx context.Context, c *cluster) (string, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := free.Addr().String()
	free.Close()
	k.server = exec.Command(k.binary, "server", "--db", c.url(), "--listen", address, "--http", "", "--data-dir", k.dir)
	if k.server.Stderr, err = os.Create(k.dir + ".log"); err != nil {
		return "", err
	}
	if err := k.server.Start(); err != nil {
		return "", err
	}
	k.client, err = kagzi.NewClient(kagzi.ClientOptions{Address: address, Profile: kagzi.NoProfile, Logger: quiet})
	return address, err
}

func (k *kagziSystem) enqueue(ctx context.Context, number int) error {
	_, err := kagzi.Start(ctx, k.client, "job", number, kagzi.StartOptions{Queue: "compare", RequestID: fmt.Sprint("job-", number)})
	return err
}

func (k *kagziSystem) table() string { return "runs" }
func (k *kagziSystem) role() string  { return "kagzi" }
func (k *kagziSystem) where() string { return k.dir }

func (k *kagziSystem) stop() {
	if k.client != nil {
		k.client.Close()
	}
	if k.server != nil && k.server.Process != nil {
		k.server.Process.Kill()
		k.server.Wait()
	}
}

// job is River's word for what Kagzi has as the input of a run.
type job struct {
	Number int `json:"number" river:"unique"`
}

func (job) Kind() string { return "job" }

func (job) InsertOpts() river.InsertOpts {
	return river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}
}

type riverSystem struct {
	dir    string
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

func newRiver(_, dir string) system { return &riverSystem{dir: dir} }

func (r *riverSystem) start(ctx context.Context, c *cluster) (place string, err error) {
	if r.pool, err = pgxpool.New(ctx, c.url()); err != nil {
		return "", err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(r.pool), &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return "", err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return "", err
	}
	r.client, err = river.NewClient(riverpgxv5.New(r.pool), &river.Config{Logger: quiet})
	return c.url(), err
}

func (r *riverSystem) enqueue(ctx context.Context, number int) error {
	_, err := r.client.Insert(ctx, job{Number: number}, nil)
	return err
}

func (r *riverSystem) table() string { return "river_job" }
func (r *riverSystem) role() string  { return "river" }
func (r *riverSystem) where() string { return r.dir }

func (r *riverSystem) stop() {
	if r.pool != nil {
		r.pool.Close()
	}
}

// worker is the process that works for a system. It can be killed and started again; its effects arrive in any case.
type worker struct {
	mu   sync.Mutex
	cmd  *exec.Cmd
	role string
	at   string
	into *effects
}

func (w *worker) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cmd = exec.Command(filepath.Clean(self), "-role", w.role, "-at", w.at)
	w.cmd.Stdout = w.into
	return w.cmd.Start()
}

func (w *worker) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cmd.Process.Kill()
	w.cmd.Wait()
}
