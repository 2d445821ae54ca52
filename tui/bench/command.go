// Package bench owns `kagzi bench`: it puts load on a server, with a worker process of its own, and measures throughput and
// latency of the workloads W1 to W8. A run that does not return what it must makes the bench fail, whatever the figures.
package bench

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
	address     string
	namespace   string
	db          string
	dir         string
	timeout     time.Duration
}

// Command is `kagzi bench`, with the hidden command of its worker process. It starts processes of its own binary, whose root
// must hold child.Command and, for private servers, the command server.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure throughput and latency of a server",
		Long: `Put load on a server, with a worker that is a process of its own, and measure. Every run's result is checked.

` + listing() + `
Without --address, and with no server at the default one, a private server is started for each measurement: on SQLite in a
temporary directory on a disk, or on the database of --db. Runs on a server or database that is not private stay there, in
queues of their own.

Exit code: 0 when every run returned what it must, 1 when not, 7 when no server answers, 130 when interrupted.`,
		Example: `  kagzi bench
  kagzi bench --workload W2 --repeat 3 --json
  kagzi bench --workload W1,W6 --scale 0.1 --address 127.0.0.1:50051
  kagzi bench --db postgres://kagzi@localhost/kagzi --duration 10s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.workloads, "workload", "W1,W2,W3,W4", "workloads, separated by commas")
	fs.Float64Var(&o.scale, "scale", 1, "how much of each workload: 0.1 is a tenth of the runs")
	fs.IntVar(&o.runs, "runs", 0, "runs of each workload, steps of W8 (default: by workload and scale)")
	fs.DurationVar(&o.duration, "duration", 0, "let W1 to W5 go on this long instead of counting runs")
	fs.IntVar(&o.repeat, "repeat", 1, "measure so many times, workload after workload, and report medians")
	fs.IntVar(&o.concurrency, "concurrency", 0, "runs in flight in W1, W2 and W5 (default 100, 100 and 16)")
	fs.IntVar(&o.slots, "slots", 100, "runs that the worker takes at once")
	fs.BoolVar(&o.asJSON, "json", false, "report as one JSON document")
	fs.StringVar(&o.address, "address", "", "host:port of a running server")
	fs.StringVarP(&o.namespace, "namespace", "n", "", `namespace to work in (default "default")`)
	fs.StringVar(&o.db, "db", "", "database URL for a private server, such as postgres://…")
	fs.StringVar(&o.dir, "dir", "", "directory for a private server's database (default: one for temporary files, on a disk)")
	fs.DurationVar(&o.timeout, "timeout", 15*time.Minute, "give up when one measurement takes longer")
	cmd.AddCommand(newWorker())
	return cmd
}

// listing says what the workloads are.
func listing() string {
	var b strings.Builder
	for _, w := range workloads {
		fmt.Fprintf(&b, "  %s  %s\n", w.id, w.what)
	}
	return b.String()
}

func (o options) check() error {
	switch {
	case !(o.scale > 0) || o.scale > 10_000:
		return usagef("--scale %v: want more than 0, at most 10000", o.scale)
	case o.runs < 0 || o.repeat < 1 || o.concurrency < 0 || o.slots < 1 || o.duration < 0 || o.timeout <= 0:
		return usagef("--runs, --repeat, --concurrency, --slots, --duration and --timeout want positive values")
	case o.concurrency > maxConcurrency:
		return usagef("--concurrency %d: want at most %d", o.concurrency, maxConcurrency)
	}
	return nil
}

// maxConcurrency keeps below the streams that servers allow on one connection.
const maxConcurrency = 900

func run(ctx context.Context, out, messages io.Writer, o options) error {
	chosen, err := choose(o.workloads)
	if err := cmp.Or(err, o.check()); err != nil {
		return err
	}
	o.namespace = cmp.Or(o.namespace, os.Getenv("KAGZI_NAMESPACE"), "default")
	t, err := findTarget(ctx, o)
	if err != nil {
		return err
	}
	say := func(text string) { fmt.Fprintln(messages, render.Safe(text)) }
	say(t.say())
	samples := make([][]sample, len(chosen))
	for n := range o.repeat {
		for i, w := range chosen {
			say(fmt.Sprintf("%s %s, %d of %d ...", w.id, w.what, n+1, o.repeat))
			s, err := measure(ctx, t, w, o)
			if err != nil {
				return fmt.Errorf("%s: %w", w.id, err)
			}
			samples[i] = append(samples[i], s)
		}
	}
	r := newReport(o, t)
	for i, w := range chosen {
		r.add(w, w.plan(o), samples[i])
	}
	return r.print(out, o.asJSON)
}

// queuePrefix begins the name of every queue that a bench uses; what follows is its own.
const queuePrefix = "bench-"

// measure makes one measurement with processes of its own.
func measure(ctx context.Context, t *target, w workload, o options) (s sample, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not over after %s (--timeout)", o.timeout))
	defer cancel()
	address, closeServer, err := t.open(limited)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, closeServer()) }()
	queue := queuePrefix + strings.ToLower(w.id+"-"+rand.Text()[:12])
	r, err := newRig(workerSpec{address: address, namespace: o.namespace, queue: queue, slots: o.slots, private: t.address == ""})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if !w.backlog {
		if err := r.startWorker(limited); err != nil {
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
