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
}

// start starts the process and waits until the server has taken the worker on.
func (s workerSpec) start(ctx context.Context) (*child.Process, error) {
	var env []string
	if key := os.Getenv("KAGZI_API_KEY"); key != "" {
		env = append(env, "KAGZI_API_KEY="+key)
	}
	p, err := child.Start(child.Spec{Env: env, Args: []string{
		"bench", "worker", "--address", s.address, "--namespace", s.namespace, "--queue", s.queue, "--slots", strconv.Itoa(s.slots),
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
				Address: s.address, Namespace: s.namespace, Queue: s.queue, MaxConcurrent: s.slots,
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
	for _, flag := range []string{"address", "namespace", "queue", "slots"} {
		_ = cmd.MarkFlagRequired(flag) // fails only for a flag that is not there
	}
	return cmd
}
