//go:build linux

package main

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

// handVariable makes this program a worker; it holds a handSpec as JSON.
const handVariable = "KAGZI_TORTURE_WORKER"

// handSpec says what a worker process is to be.
type handSpec struct {
	Name    string
	Address string
	Log     string // file of its history
	Slots   int
	Spin    int // goroutines that do nothing but take the processor's time, from one spinSignal to the next
	Stamp   int // of the process's life, in what its steps return
}

// beHand is the life of a worker process, until a signal or its parent's end.
func beHand(text string) error {
	var spec handSpec
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
	h := &hand{spec: spec, witness: newWitness(log)}
	w := kagzi.NewWorker(kagzi.WorkerOptions{
		Profile: kagzi.NoProfile, Address: spec.Address, MaxConcurrent: spec.Slots, DrainTimeout: 10 * time.Second,
		Logger:      slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		DialOptions: []grpc.DialOption{grpc.WithStreamInterceptor(h.witness.stream)},
	})
	kagzi.Handle(w, jobType, h.job)
	kagzi.Handle(w, handlerType, func(kagzi.Context, kagzi.WorkflowFailedEvent) (string, error) { return "handled", nil })
	kagzi.Handle(w, tickType, h.tick)
	kagzi.Handle(w, floodType, func(kagzi.Context, string) (string, error) { return "", nil })
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the parent is gone
	}()
	return errors.Join(w.Run(context.Background()), log.Failure())
}

// hand is the code of the workload's workflows.
type hand struct {
	spec    handSpec
	witness *witness
	nonce   atomic.Int64
}

var errDoomed = errors.New("this run is to fail")

func (h *hand) job(ctx kagzi.Context, in job) (string, error) {
	if in.Kind == fanned {
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
	if in.Kind == doomed {
		return "", kagzi.NonRetryable(errDoomed)
	}
	return last, nil
}

func (h *hand) fan(ctx kagzi.Context, in job) (string, error) {
	numbers := make([]int, len(in.Pauses))
	for i := range numbers {
		numbers[i] = i
	}
	values, err := kagzi.Map(ctx, numbers, func(ctx kagzi.Context, i int) (string, error) { return h.step(ctx, in, i) })
	return strings.Join(values, " "), err
}

func (h *hand) tick(ctx kagzi.Context, in job) (string, error) {
	return h.step(ctx, job{Name: in.Name, Pauses: []int{1}, Fails: []int{0}}, 0)
}

// step returns something that no other execution of it returns.
func (h *hand) step(ctx kagzi.Context, in job, i int) (string, error) {
	retry := kagzi.Retry{Attempts: mostFails + 1, Initial: 100 * time.Millisecond, Jitter: -1}
	return kagzi.Step(ctx, "s"+strconv.Itoa(i), func(ctx context.Context) (string, error) {
		value := fmt.Sprintf("%s.%d.%d", h.spec.Name, h.spec.Stamp, h.nonce.Add(1))
		run, step, _ := strings.Cut(kagzi.IdempotencyKey(ctx), "/")
		h.witness.log.Note(history.Event{Op: history.CodeBegins, Run: run, Step: step, Token: h.witness.tokenOf(run), Value: value}, history.Now())
		if in.Kind == poison {
			os.Exit(poisonExit)
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

// poisonExit is how a worker process ends that took a run of the kind poison.
const poisonExit = 66
