// Package subject is the Go SDK's program for the conformance suite: a worker whose one workflow
// executes the programs of package program. The suite measures other SDKs by it, and it is the suite's
// first subject itself.
package subject

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"

	kagzi "github.com/kagzi/kagzi/sdk"
)

// Type is the workflow type.
const Type = "conformance"

// Settings are what the suite tells a subject in its environment.
type Settings struct {
	Address, Queue, Gate, Build string
	Variant                     int
	Key                         []byte   // of the codec; nil: none
	RemovedPatches              []string // ids
	OnDivergence                string
	Log                         *slog.Logger
	DialOptions                 []grpc.DialOption
	Signals                     []os.Signal // that let the worker drain; nil: the SDK's
	Watch                       *Watch      // follows the code of runs; nil: nobody does
}

// FromEnvironment reads the settings that the suite gives to a process.
func FromEnvironment(get func(string) string) (Settings, error) {
	s := Settings{Queue: get("KAGZI_CONFORMANCE_QUEUE"), Gate: get("KAGZI_CONFORMANCE_GATE"),
		Build: get("KAGZI_CONFORMANCE_BUILD"), OnDivergence: get("KAGZI_CONFORMANCE_ON_DIVERGENCE")}
	if s.Gate == "" || s.Queue == "" {
		return s, fmt.Errorf("KAGZI_CONFORMANCE_GATE and KAGZI_CONFORMANCE_QUEUE are not set: " +
			"`kagzi conformance -- COMMAND` starts this program")
	}
	if text := get("KAGZI_CONFORMANCE_VARIANT"); text != "" {
		var err error
		if s.Variant, err = strconv.Atoi(text); err != nil {
			return s, fmt.Errorf("KAGZI_CONFORMANCE_VARIANT: %w", err)
		}
	}
	if text := get("KAGZI_CONFORMANCE_AES"); text != "" {
		var err error
		if s.Key, err = hex.DecodeString(text); err != nil {
			return s, fmt.Errorf("KAGZI_CONFORMANCE_AES: %w", err)
		}
	}
	if text := get("KAGZI_CONFORMANCE_REMOVED_PATCHES"); text != "" {
		s.RemovedPatches = strings.Split(text, ",")
	}
	return s, nil
}

// Worker makes the worker.
func Worker(s Settings) (*kagzi.Worker, error) {
	o := kagzi.WorkerOptions{
		Address: s.Address, Queue: s.Queue, MaxConcurrent: 100, BuildID: s.Build, DrainTimeout: 10 * time.Second,
		RemovedPatches: s.RemovedPatches, Logger: s.Log, DialOptions: s.DialOptions, HandleSignals: s.Signals,
	}
	if s.Address != "" {
		o.Profile = kagzi.NoProfile
	}
	switch s.OnDivergence {
	case "", "pause":
	case "fail":
		o.OnDivergence = kagzi.DivergenceFail
	case "warn":
		o.OnDivergence = kagzi.DivergenceWarn
	default:
		return nil, fmt.Errorf("KAGZI_CONFORMANCE_ON_DIVERGENCE is %q, want pause, fail or warn", s.OnDivergence)
	}
	if s.Key != nil {
		codec, err := kagzi.NewAESCodec(kagzi.AESOptions{Keys: map[string][]byte{"k1": s.Key}, Current: "k1"})
		if err != nil {
			return nil, err
		}
		o.Codec = codec
	}
	w := kagzi.NewWorker(o)
	kagzi.Handle(w, Type, func(ctx kagzi.Context, in input) (*output, error) { return execute(ctx, s, in) })
	return w, nil
}

// Run runs the worker of a process until ctx ends or the process is asked to end.
func Run(ctx context.Context, get func(string) string, more ...grpc.DialOption) error {
	s, err := FromEnvironment(get)
	if err != nil {
		return err
	}
	s.DialOptions = more
	s.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	w, err := Worker(s)
	if err != nil {
		return err
	}
	return w.Run(ctx)
}
