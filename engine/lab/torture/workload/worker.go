//go:build linux

package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// WorkerVariable makes this program a worker; it holds a WorkerSpec as JSON.
const WorkerVariable = "KAGZI_TORTURE_WORKER"

// WorkerSpec configures a worker process.
type WorkerSpec struct {
	Name    string
	Address string
	Log     string // file of its history
	Slots   int
	Spin    int // goroutines that only use CPU time, from one SpinSignal to the next
	Stamp   int // number of the process's life, in what its steps return
}

// RunWorker runs a worker process until a signal or its parent's end.
func RunWorker(text string) error {
	var spec WorkerSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return err
	}
	log, err := history.OpenLog(spec.Name, spec.Log)
	if err != nil {
		return err
	}
	if spec.Spin > 0 {
		runtime.GOMAXPROCS(1)
		go spinAtSignal(spec.Spin)
	}
	h := &worker{spec: spec, witness: newWitness(log)}
	w := kagzi.NewWorker(kagzi.WorkerOptions{
		Profile: kagzi.NoProfile, Address: spec.Address, MaxConcurrent: spec.Slots, DrainTimeout: 10 * time.Second,
		Logger:      slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		DialOptions: []grpc.DialOption{grpc.WithStreamInterceptor(h.witness.stream)},
	})
	kagzi.Handle(w, jobType, h.job)
	kagzi.Handle(w, HandlerType, func(kagzi.Context, kagzi.WorkflowFailedEvent) (string, error) {
		return "handled", nil
	})
	kagzi.Handle(w, TickType, h.tick)
	kagzi.Handle(w, FloodType, func(kagzi.Context, string) (string, error) { return "", nil })
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the parent is gone
	}()
	return errors.Join(w.Run(context.Background()), log.Failure())
}

// worker is the code of the workload's workflows.
type worker struct {
	spec    WorkerSpec
	witness *witness
	nonce   atomic.Int64
}

var errDoomed = errors.New("this run is to fail")

func (h *worker) job(ctx kagzi.Context, in Job) (string, error) {
	if in.Kind == Fanned {
		return h.fan(ctx, in)
	}
	last := ""
	for i := range in.Pauses {
		value, err := h.step(ctx, in, i)
		if err != nil {
			return "", err
		}
		last = value
		if i == 0 && in.Nap > 0 {
			kagzi.Sleep(ctx, "nap", time.Duration(in.Nap)*time.Millisecond)
		}
	}
	if in.Kind == Doomed {
		return "", kagzi.NonRetryable(errDoomed)
	}
	return last, nil
}

func (h *worker) fan(ctx kagzi.Context, in Job) (string, error) {
	numbers := make([]int, len(in.Pauses))
	for i := range numbers {
		numbers[i] = i
	}
	values, err := kagzi.Map(ctx, numbers, func(ctx kagzi.Context, i int) (string, error) { return h.step(ctx, in, i) })
	return strings.Join(values, " "), err
}

func (h *worker) tick(ctx kagzi.Context, in Job) (string, error) {
	return h.step(ctx, Job{Name: in.Name, Pauses: []int{1}, Fails: []int{0}}, 0)
}

// step returns something that no other execution of it returns.
func (h *worker) step(ctx kagzi.Context, in Job, i int) (string, error) {
	retry := kagzi.Retry{Attempts: MostFails + 1, Initial: 100 * time.Millisecond, Jitter: -1}
	return kagzi.Step(ctx, "s"+strconv.Itoa(i), func(ctx context.Context) (string, error) {
		value := fmt.Sprintf("%s.%d.%d", h.spec.Name, h.spec.Stamp, h.nonce.Add(1))
		run, step, _ := strings.Cut(kagzi.IdempotencyKey(ctx), "/")
		h.witness.log.Note(history.Event{Op: history.CodeBegins, Run: run, Step: step, Token: h.witness.tokenOf(run),
			Value: value}, history.Now())
		if in.Kind == Poison {
			os.Exit(PoisonExit)
		}
		select {
		case <-time.After(time.Duration(in.Pauses[i]) * time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if failed := kagzi.Attempt(ctx) - 1; failed < in.Fails[i] {
			return "", fmt.Errorf("attempt %d of %s fails", failed+1, step)
		}
		return value + in.Filler, nil
	}, retry)
}

// PoisonExit is the exit code of a worker process that ran a run of the kind poison.
const PoisonExit = 66
