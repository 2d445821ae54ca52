// Package bench implements `kagzi bench`: it puts load on a server, with a worker process of its
// own, and measures throughput, latency and cost of the workloads W1 to W22. A wrong result of any
// run fails the bench.
package bench

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/sdk/profile"
	"github.com/kagzi/kagzi/tui/cli"
	"github.com/kagzi/kagzi/tui/render"
)

type options struct {
	workloads   string
	scale       float64
	runs        int
	duration    time.Duration
	repeat      int
	concurrency int
	slots       int
	asJSON      bool
	said        profile.Profile // the settings for reaching a server from flags
	namespace   string
	db          string
	dbDelay     time.Duration
	fullDB      string
	servers     int
	markdown    bool
	dir         string
	compare     string
	worker      string
	timeout     time.Duration
}

// Command returns `kagzi bench`, with the hidden command of its worker process. It starts its own
// binary, whose root must have child.Command and, for private servers, the server command.
func Command() *cobra.Command {
	var o options
	var flags cli.ClientFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure throughput, latency and cost of a server",
		Long: `Put load on a server, with a worker in its own process, and measure. Every run's result is checked.
On Linux the report also shows processor time per run or step, the memory of private servers, and
the machine's speed before each measurement, because figures depend on it.

` + listing() + `
By default a private server is started for each measurement: on SQLite in a temporary directory on a
disk, or on the database of --db. --address or --profile measures a running server instead; other
settings, such as KAGZI_ADDRESS, do not. Runs on a server or database that is not private stay
there, in queues of their own.

W9 opens a connection per worker, so server and worker process need as many open files. W10 compares
two private servers: on Postgres, --db names an empty database and --full-db the one to fill, which
is filled once and reused.

--db-delay puts a proxy between the servers and Postgres, which shows what a database further away
costs.

--compare FILE sets the figures against those of an earlier --json: a ratio of 1.10 is a tenth more.

--worker COMMAND measures a worker in another language in W1 to W5, W15 and W17. It is started once
for each server, with these variables:
  KAGZI_ADDRESS, KAGZI_NAMESPACE   the server and the namespace, and KAGZI_API_KEY and the like
  KAGZI_BENCH_QUEUE                the queue to work on
  KAGZI_BENCH_SLOTS                runs to execute at once
  KAGZI_BENCH_TYPES                workflow types to serve, separated by commas
It prints the line "worker ready" when it is registered, and ends with code 0 at SIGTERM (on Windows when
its standard input ends, as it does when the bench has died). tui/bench/WORKERS.md says what each type
does; sdk/python/bench/bench_worker.py is one.

Exit code: 0 when every run returned the right result, 1 when not, 7 when no server answers,
130 when interrupted.`,
		Example: `  kagzi bench
  kagzi bench --workload W2 --repeat 3 --json
  kagzi bench --workload W1,W6 --scale 0.1 --address 127.0.0.1:50051
  kagzi bench --address kagzi.example.com:50051 --tls --api-key-file ~/.config/kagzi/ada.key
  kagzi bench --db postgres://kagzi@localhost/kagzi --duration 10s
  kagzi bench --workload W2 --duration 30m
  kagzi bench --workload W1 --db postgres://kagzi@localhost/kagzi --servers 2 --markdown
  kagzi bench --workload W2 --json > before.json && kagzi bench --workload W2 --compare before.json
  kagzi bench --workload W1,W2 --worker 'python3 sdk/python/bench/bench_worker.py'
  kagzi bench --workload W14,W16 --db postgres://kagzi@localhost/kagzi --db-delay 1ms`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.said = flags.Said(cmd.Flags().Changed)
			return run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.workloads, "workload", "W1,W2,W3,W4", `workloads, separated by commas; "all" is W1 to W8 and W11 to W22`)
	fs.Float64Var(&o.scale, "scale", 1, "size of each workload: 0.1 is a tenth of the runs")
	fs.IntVar(&o.runs, "runs", 0, "runs of each workload, steps of W8, workers of W9, rounds of W11 (default: by workload and scale)")
	fs.DurationVar(&o.duration, "duration", 0,
		"run W1 to W5 and W15 to W17 for this time instead of a number of runs; idle time of W9")
	fs.IntVar(&o.repeat, "repeat", 1, "number of measurements of each workload; the report has medians")
	fs.IntVar(&o.concurrency, "concurrency", 0, "runs in flight in W1, W2, W5 and W15 to W17 (default by workload)")
	fs.IntVar(&o.slots, "slots", 100, "runs that the worker executes at once (at least 3000 in W14, 200 in W15 to W18)")
	fs.BoolVar(&o.asJSON, "json", false, "print the report as one JSON document")
	fs.BoolVar(&o.markdown, "markdown", false, "print the report as Markdown tables")
	flags.RegisterReach(fs)
	address := fs.Lookup("address")
	address.Usage, address.DefValue = "measure the server at this host:port instead of a private one", ""
	fs.StringVar(&o.db, "db", "", "database URL for a private server, such as postgres://…")
	fs.DurationVar(&o.dbDelay, "db-delay", 0,
		"time added to each round trip to the Postgres of --db, half of it each way: 1ms is another zone")
	fs.IntVar(&o.servers, "servers", 1, "private servers on --db, each with a worker process of its own")
	fs.StringVar(&o.fullDB, "full-db", "",
		"database URL for the ended runs of W10, kept and reused (default: on SQLite, removed afterwards)")
	fs.StringVar(&o.dir, "dir", "",
		"directory for a private server's database (default: a temporary directory on a disk)")
	fs.DurationVar(&o.timeout, "timeout", 15*time.Minute,
		"time limit of one measurement, in addition to --duration")
	fs.StringVar(&o.compare, "compare", "",
		"file of an earlier --json with the same workloads: print its medians, and this bench's as a multiple of them")
	fs.StringVar(&o.worker, "worker", "",
		"command that starts a worker in another language, instead of the bench's own")
	cmd.AddCommand(newWorker())
	return cmd
}

// listing describes the workloads.
func listing() string {
	var b strings.Builder
	for _, w := range workloads {
		fmt.Fprintf(&b, "  %-6s  %s\n", w.id, w.what)
	}
	return b.String()
}

func (o options) check() error {
	switch {
	case !(o.scale > 0) || o.scale > 10_000:
		return usagef("--scale %v: must be more than 0, at most 10000", o.scale)
	case o.runs < 0 || o.repeat < 1 || o.concurrency < 0 || o.slots < 1 || o.servers < 1 || o.duration < 0 ||
		o.timeout <= 0 || o.dbDelay < 0:
		return usagef(
			"--runs, --repeat, --concurrency, --slots, --servers, --duration, --db-delay and --timeout must be positive")
	case o.asJSON && o.markdown:
		return usagef("--json and --markdown cannot be given together")
	case o.concurrency > maxConcurrency:
		return usagef("--concurrency %d: must be at most %d", o.concurrency, maxConcurrency)
	}
	return nil
}

// maxConcurrency is below the number of streams that servers allow on one connection.
const maxConcurrency = 900

func run(ctx context.Context, out, messages io.Writer, o options) (err error) {
	chosen, err := choose(o.workloads)
	if err := cmp.Or(err, o.check()); err != nil {
		return err
	}
	if err := o.suits(chosen); err != nil {
		return err
	}
	var before *report
	if o.compare != "" {
		if before, err = earlier(o.compare, chosen); err != nil {
			return err
		}
	}
	t, err := findTarget(ctx, o)
	if err != nil {
		return err
	}
	o.namespace = t.namespace(o)
	if err := t.suits(chosen); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	say := func(text string) { fmt.Fprintln(messages, render.Safe(text)) }
	say(t.say())
	samples := make([][]sample, len(chosen))
	var looks [][]figure
	for n := range o.repeat {
		for i, w := range chosen {
			say(fmt.Sprintf("%s %s, %d of %d ...", w.id, w.what, n+1, o.repeat))
			look, err := yardstick(t.dir)
			if err != nil {
				return err
			}
			looks = append(looks, look)
			s, err := measure(ctx, t, w, o)
			if err != nil {
				return fmt.Errorf("%s: %w", w.id, err)
			}
			samples[i] = append(samples[i], s)
		}
	}
	r := newReport(o, t, looks)
	for i, w := range chosen {
		r.add(w, w.plan(o), samples[i])
	}
	if before != nil {
		for _, text := range r.compare(before, o.compare) {
			say("compared with another setup: " + text)
		}
	}
	return r.print(out, o)
}

// queuePrefix is the prefix of every queue of a bench.
const queuePrefix = "bench-"

// measure makes one measurement with its own processes.
func measure(ctx context.Context, t *target, w workload, o options) (s sample, err error) {
	limited, cancel := context.WithTimeoutCause(
		ctx, o.duration+o.timeout, fmt.Errorf("not finished after %s (--timeout)", o.duration+o.timeout))
	defer cancel()
	servers, database, closeServers, err := t.open(limited)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, closeServers()) }()
	spec := workerSpec{
		namespace: o.namespace, queue: queuePrefix + strings.ToLower(w.id+"-"+rand.Text()[:12]), slots: max(o.slots, w.slots),
		count: 1, private: t.address == "", reach: t.reach, command: o.worker, types: w.types,
	}
	r, err := newFixture(servers, database, spec)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	r.heartbeat = time.Duration(t.info.GetHeartbeatIntervalMs()) * time.Millisecond
	if w.fills {
		full, database, err := t.openFull(limited)
		if err != nil {
			return s, err
		}
		if r.full, err = newFixture([]place{full}, database, spec); err != nil {
			return s, err
		}
	}
	if !w.alone {
		if err := r.startWorkers(limited); err != nil {
			return s, err
		}
	}
	s, err = w.measure(limited, r, w.plan(o))
	if err != nil && limited.Err() != nil {
		return s, context.Cause(limited)
	}
	return s, err
}

// Exit codes other than 1, the same for every command.
const (
	exitUnavailable      = 7
	exitPermissionDenied = 8
	exitUsage            = 64
)

// exitError is an error with an exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }
func (e *exitError) ExitCode() int { return e.code }

func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}
