// Package bench owns `kagzi bench`: it puts load on a server, with a worker process of its own, and
// measures throughput, latency and cost of the workloads W1 to W10. A run that does not return what
// it must makes the bench fail, whatever the figures.
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
	said        profile.Profile // what the flags say of how to reach a server
	namespace   string
	db          string
	fullDB      string
	servers     int
	markdown    bool
	dir         string
	timeout     time.Duration
}

// Command is `kagzi bench`, with the hidden command of its worker process. It starts processes of
// its own binary, whose root must hold child.Command and, for private servers, the command server.
func Command() *cobra.Command {
	var o options
	var flags cli.ClientFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure throughput, latency and cost of a server",
		Long: `Put load on a server, with a worker that is a process of its own, and measure. Every run's result is checked.
Where the system tells (Linux), the report also says what processor time each run or step cost, of whom, and how much memory a
private server had, and what the machine gave before each measurement: where that differs, so do the figures.

` + listing() + `
A private server is started for each measurement: on SQLite in a temporary directory on a disk, or on the database of --db. A server
that runs is measured when --address or --profile names it. Runs on a server or database that is not private stay there, in queues of
their own.

W9 takes a connection for each worker, so server and worker process need as many open files. W10 compares two private servers: on
Postgres, --db names an empty database and --full-db the one to be filled, which is filled once and used again.

Exit code: 0 when every run returned what it must, 1 when not, 7 when no server answers, 130 when interrupted.`,
		Example: `  kagzi bench
  kagzi bench --workload W2 --repeat 3 --json
  kagzi bench --workload W1,W6 --scale 0.1 --address 127.0.0.1:50051
  kagzi bench --address kagzi.example.com:50051 --tls --api-key-file ~/.config/kagzi/ada.key
  kagzi bench --db postgres://kagzi@localhost/kagzi --duration 10s
  kagzi bench --workload W2 --duration 30m
  kagzi bench --workload W1 --db postgres://kagzi@localhost/kagzi --servers 2 --markdown`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.said = flags.Said(cmd.Flags().Changed)
			return run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.workloads, "workload", "W1,W2,W3,W4", `workloads, separated by commas; "all" is W1 to W8`)
	fs.Float64Var(&o.scale, "scale", 1, "how much of each workload: 0.1 is a tenth of the runs")
	fs.IntVar(&o.runs, "runs", 0, "runs of each workload, steps of W8, workers of W9 (default: by workload and scale)")
	fs.DurationVar(&o.duration, "duration", 0,
		"let W1 to W5 go on this long instead of counting runs; how long W9 is idle")
	fs.IntVar(&o.repeat, "repeat", 1, "measure so many times, workload after workload, and report medians")
	fs.IntVar(&o.concurrency, "concurrency", 0, "runs in flight in W1, W2 and W5 (default 100, 100 and 16)")
	fs.IntVar(&o.slots, "slots", 100, "runs that the worker takes at once")
	fs.BoolVar(&o.asJSON, "json", false, "report as one JSON document")
	fs.BoolVar(&o.markdown, "markdown", false, "report as tables in Markdown")
	flags.RegisterReach(fs)
	fs.StringVar(&o.db, "db", "", "database URL for a private server, such as postgres://…")
	fs.IntVar(&o.servers, "servers", 1, "private servers on --db, each with a worker process of its own")
	fs.StringVar(&o.fullDB, "full-db", "",
		"database URL for W10's many ended runs, kept and used again (default: on SQLite, removed afterwards)")
	fs.StringVar(&o.dir, "dir", "",
		"directory for a private server's database (default: one for temporary files, on a disk)")
	fs.DurationVar(&o.timeout, "timeout", 15*time.Minute,
		"give up when one measurement takes so much longer than --duration")
	cmd.AddCommand(newWorker())
	return cmd
}

// listing says what the workloads are.
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
		return usagef("--scale %v: want more than 0, at most 10000", o.scale)
	case o.runs < 0 || o.repeat < 1 || o.concurrency < 0 || o.slots < 1 || o.servers < 1 || o.duration < 0 ||
		o.timeout <= 0:
		return usagef(
			"--runs, --repeat, --concurrency, --slots, --servers, --duration and --timeout want positive values")
	case o.asJSON && o.markdown:
		return usagef("--json and --markdown are two forms of one report: give one of them")
	case o.concurrency > maxConcurrency:
		return usagef("--concurrency %d: want at most %d", o.concurrency, maxConcurrency)
	}
	return nil
}

// maxConcurrency keeps below the streams that servers allow on one connection.
const maxConcurrency = 900

func run(ctx context.Context, out, messages io.Writer, o options) (err error) {
	chosen, err := choose(o.workloads)
	if err := cmp.Or(err, o.check()); err != nil {
		return err
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
	return r.print(out, o)
}

// queuePrefix begins the name of every queue that a bench uses; what follows is its own.
const queuePrefix = "bench-"

// measure makes one measurement with processes of its own.
func measure(ctx context.Context, t *target, w workload, o options) (s sample, err error) {
	limited, cancel := context.WithTimeoutCause(
		ctx, o.duration+o.timeout, fmt.Errorf("not over after %s (--timeout)", o.duration+o.timeout))
	defer cancel()
	servers, database, closeServers, err := t.open(limited)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, closeServers()) }()
	spec := workerSpec{
		namespace: o.namespace, queue: queuePrefix + strings.ToLower(w.id+"-"+rand.Text()[:12]), slots: o.slots,
		count: 1, private: t.address == "", reach: t.reach,
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

// Exit codes of errors that are not 1; the same for every command.
const (
	exitUnavailable      = 7
	exitPermissionDenied = 8
	exitUsage            = 64
)

// exitError says with which code the process is to end.
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
