package bench

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/sdk/profile"
	"github.com/kagzi/kagzi/tui/child"
)

const (
	workerReady = "worker ready"
	drainLimit  = 2 * time.Second
	stopGrace   = 30 * time.Second
)

// workerSpec says which worker process to start.
type workerSpec struct {
	address   string
	namespace string
	queue     string
	slots     int
	private   bool // the server is the bench's own: neither the environment nor kagzi.toml says how to reach it
}

// profile is that of the SDK by which the server is reached.
func (s workerSpec) profile() string {
	if s.private {
		return kagzi.NoProfile
	}
	return ""
}

// start starts the process and waits until the server has taken the worker on.
func (s workerSpec) start(ctx context.Context) (*child.Process, error) {
	var env []string
	if !s.private {
		env = settings()
	}
	p, err := child.Start(child.Spec{Env: env, Args: []string{
		"bench", "worker", "--address", s.address, "--namespace", s.namespace, "--queue", s.queue, "--slots", strconv.Itoa(s.slots),
		"--private=" + strconv.FormatBool(s.private),
	}})
	if err != nil {
		return nil, err
	}
	if _, err := p.Await(ctx, func(line string) (string, bool) { return "", line == workerReady }); err != nil {
		p.Kill()
		return nil, fmt.Errorf("worker: %w", err)
	}
	return p, nil
}

// settings is what the environment says of how to reach a server.
func settings() (env []string) {
	names := []string{"KAGZI_PROFILE", "KAGZI_CONFIG"}
	for _, key := range profile.Keys() {
		names = append(names, profile.Variable(key))
	}
	for _, name := range names {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// newWorker is the hidden command that the worker process runs.
func newWorker() *cobra.Command {
	var s workerSpec
	cmd := &cobra.Command{
		Use:    "worker",
		Short:  "Work on the bench's workflows",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := kagzi.NewWorker(kagzi.WorkerOptions{
				Profile: s.profile(), Address: s.address, Namespace: s.namespace, Queue: s.queue, MaxConcurrent: s.slots,
				DrainTimeout:  drainLimit,
				HandleSignals: []os.Signal{}, // the parent ends the context
				Logger:        slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})),
			})
			handle(w)
			ended := make(chan struct{})
			defer close(ended)
			go func() {
				select {
				case <-w.Ready():
					fmt.Fprintln(cmd.OutOrStdout(), workerReady)
				case <-ended:
				}
			}()
			return w.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&s.address, "address", "", "host:port of the server")
	cmd.Flags().StringVar(&s.namespace, "namespace", "", "namespace to work in")
	cmd.Flags().StringVar(&s.queue, "queue", "", "queue to work on")
	cmd.Flags().IntVar(&s.slots, "slots", 0, "runs in hand at once")
	cmd.Flags().BoolVar(&s.private, "private", false, "the server is the bench's own")
	for _, flag := range []string{"address", "namespace", "queue", "slots"} {
		_ = cmd.MarkFlagRequired(flag) // fails only for a flag that is not there
	}
	return cmd
}
