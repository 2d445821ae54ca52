package demo

import (
	"errors"
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
	// drainLimit is how long a stopping worker lets its runs continue.
	drainLimit = 2 * time.Second
	stopGrace  = 10 * time.Second
)

// workerSpec describes a worker process.
type workerSpec struct {
	name    string
	address string
	ledger  ledger
	post
}

func (s workerSpec) start() (*child.Process, error) {
	return child.Start(child.Spec{Args: []string{
		"demo", "worker", "--name", s.name, "--address", s.address, "--ledger", string(s.ledger),
		"--queue", s.queue, "--slots", strconv.Itoa(s.slots),
	}})
}

// newWorker returns the hidden command of a worker process.
func newWorker() *cobra.Command {
	var s workerSpec
	cmd := &cobra.Command{
		Use:    "worker",
		Short:  "Run the sample workflows",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := kagzi.NewWorker(kagzi.WorkerOptions{
				Profile: kagzi.NoProfile, Address: s.address, Namespace: namespace, Queue: s.queue, WorkerID: s.name,
				MaxConcurrent: s.slots,
				DrainTimeout:  drainLimit,
				HandleSignals: []os.Signal{}, // the parent ends the context
				Logger:        slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)),
			})
			client, err := kagzi.NewClient(kagzi.ClientOptions{Profile: kagzi.NoProfile, Address: s.address,
				Namespace: namespace})
			if err != nil {
				return err
			}
			defer client.Close()
			(&author{worker: s.name, ledger: s.ledger, client: client}).handle(w)
			ended := make(chan struct{})
			defer close(ended)
			go func() {
				select {
				case <-w.Ready():
					fmt.Fprintln(cmd.OutOrStdout(), workerReady)
				case <-ended:
				}
			}()
			if err := w.Run(cmd.Context()); err != nil {
				return errors.Join(fmt.Errorf("worker %s", s.name), err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&s.name, "name", "", "id of the worker")
	cmd.Flags().StringVar(&s.address, "address", "", "host:port of the server")
	cmd.Flags().StringVar(&s.queue, "queue", "", "queue to work on")
	cmd.Flags().IntVar(&s.slots, "slots", 0, "runs executed at once; 0 for the SDK's default")
	cmd.Flags().StringVar((*string)(&s.ledger), "ledger", "",
		"directory in which steps write a line each time they run")
	for _, flag := range []string{"name", "address", "queue", "ledger"} {
		_ = cmd.MarkFlagRequired(flag) // fails only if the flag does not exist
	}
	return cmd
}
