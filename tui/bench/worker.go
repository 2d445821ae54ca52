package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/profile"
	"github.com/kagzi/kagzi/tui/child"
	"github.com/kagzi/kagzi/tui/cli"
)

const (
	workerReady = "worker ready"
	drainLimit  = 2 * time.Second
	stopGrace   = 30 * time.Second
)

// workerSpec describes a worker process.
type workerSpec struct {
	address   string
	namespace string
	queue     string
	slots     int
	count     int             // workers in the process, each with its own connection
	reach     profile.Profile // how to reach the server, unless it is private
	// the server is the bench's own: ignore the environment and kagzi.toml
	private bool
	command string   // of a worker in another language; empty: the bench's own
	types   []string // workflow types that it has to serve
}

// profile returns the SDK's profile for reaching the server.
func (s workerSpec) profile() string {
	if s.private {
		return kagzi.NoProfile
	}
	return ""
}

// worker is a worker process.
type worker struct {
	*child.Process
	starting time.Duration // processor time used before it was ready
}

// start starts the process and waits until all its workers are registered.
func (s workerSpec) start(ctx context.Context) (w worker, err error) {
	var env []string
	if !s.private {
		if env, err = cli.Environment(nil, s.reach); err != nil {
			return w, err
		}
	}
	if s.command != "" {
		return s.startCommand(ctx, env)
	}
	w.Process, err = child.Start(child.Spec{Env: env, Args: []string{
		"bench", "worker", "--address", s.address, "--namespace", s.namespace, "--queue", s.queue, "--slots",
		strconv.Itoa(s.slots),
		"--count", strconv.Itoa(s.count), "--private=" + strconv.FormatBool(s.private),
	}})
	if err != nil {
		return w, err
	}
	return w, w.ready(ctx)
}

// ready waits until the worker says that it is registered.
func (w *worker) ready(ctx context.Context) error {
	if _, err := w.Await(ctx, func(line string) (string, bool) { return "", line == workerReady }); err != nil {
		w.Kill()
		return fmt.Errorf("worker: %w", err)
	}
	w.starting, _ = familyTime(w.PID())
	return nil
}

// readyLimit limits how long a command of --worker may take to say that it is ready.
const readyLimit = time.Minute

// startCommand starts a worker in another language.
func (s workerSpec) startCommand(ctx context.Context, env []string) (w worker, err error) {
	if s.private {
		env = []string{"KAGZI_CONFIG=" + profile.Off}
	}
	env = append(env, "KAGZI_ADDRESS="+s.address, "KAGZI_NAMESPACE="+s.namespace, "KAGZI_BENCH_QUEUE="+s.queue,
		"KAGZI_BENCH_SLOTS="+strconv.Itoa(s.slots), "KAGZI_BENCH_TYPES="+strings.Join(s.types, ","))
	if w.Process, err = child.Start(child.Spec{Env: env, Shell: s.command}); err != nil {
		return w, err
	}
	limited, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	err = w.ready(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = fmt.Errorf("--worker %q did not print %q within %s; its last output: %s", s.command, workerReady, readyLimit,
			strings.Join(w.Tail(5), " | "))
	}
	return w, err
}

// newWorker returns the hidden command of the worker process.
func newWorker() *cobra.Command {
	var s workerSpec
	cmd := &cobra.Command{
		Use:    "worker",
		Short:  "Run the bench's workflows",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&s.address, "address", "", "host:port of the server")
	cmd.Flags().StringVar(&s.namespace, "namespace", "", "namespace to use")
	cmd.Flags().StringVar(&s.queue, "queue", "", "queue to work on")
	cmd.Flags().IntVar(&s.slots, "slots", 0, "runs executed at once")
	cmd.Flags().IntVar(&s.count, "count", 1, "workers in this process")
	cmd.Flags().BoolVar(&s.private, "private", false, "the server is the bench's own")
	for _, flag := range []string{"address", "namespace", "queue", "slots"} {
		_ = cmd.MarkFlagRequired(flag) // fails only if the flag does not exist
	}
	return cmd
}

// joining limits how many workers of a process connect at once: the listen queue holds a few
// hundred connections.
const joining = 64

// run works until ctx ends or a worker fails, and prints when all are ready.
func (s workerSpec) run(ctx context.Context, out, messages io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	log := slog.New(slog.NewTextHandler(messages, &slog.HandlerOptions{Level: slog.LevelWarn}))
	failures := make(chan error, s.count)
	var working sync.WaitGroup
	err := each(ctx, s.count, joining, func(waiting context.Context, _ int) error {
		w := kagzi.NewWorker(kagzi.WorkerOptions{
			Profile: s.profile(), Address: s.address, Namespace: s.namespace, Queue: s.queue, MaxConcurrent: s.slots,
			DrainTimeout:  drainLimit,
			HandleSignals: []os.Signal{}, // the parent ends the context
			Logger:        log,
		})
		handle(w)
		working.Go(func() {
			if err := w.Run(ctx); err != nil {
				failures <- err
				stop()
			}
		})
		select {
		case <-w.Ready():
			return nil
		case <-waiting.Done():
			return context.Cause(waiting)
		}
	})
	if err == nil {
		fmt.Fprintln(out, workerReady)
	} else {
		stop()
	}
	working.Wait()
	select {
	case err := <-failures:
		return err
	default:
		return nil
	}
}
