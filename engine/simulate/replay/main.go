// Command replay runs a seed of the simulation, or a plan, so that it is the same each time, down to the order in which goroutines run: on one
// processor, with a Go runtime whose luck is fixed (runtime.patch). The first time takes some minutes, for everything is built with that runtime.
// What it prints as the history of a seed tells whether two runs were the same. One seed in a process nearly always is; of several the later ones
// find what those before have left in the process, such as pools, and may not be.
//
//	go run ./engine/simulate/replay -seed 4711
//	go run ./engine/simulate/replay -plan kagzi-simulate-4711.json
//
// What a seed finds here may differ from what it found elsewhere, where the luck was another; -seeds tries several. It ends with the exit code of
// go test.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/kagzi/kagzi/engine/simulate/overlay"
)

//go:embed runtime.patch
var patch string

func main() {
	seed := flag.Uint64("seed", 1, "the seed, or the first of them")
	seeds := flag.Int("seeds", 1, "how many seeds are tried")
	plan := flag.String("plan", "", "a file with a plan, as a failure leaves it, instead")
	trace := flag.Bool("trace", false, "write the history")
	flag.Parse()
	args := []string{fmt.Sprint("-simulate.from=", *seed), fmt.Sprint("-simulate.seeds=", *seeds), fmt.Sprint("-simulate.trace=", *trace)}
	if *plan != "" {
		args = append(args, "-simulate.plan="+*plan)
	}
	err := replay(args)
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		os.Exit(failed.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(2)
	}
}

func replay(args []string) error {
	root, err := goRoot()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kagzi-replay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	_, edits, err := overlay.Parse(patch)
	if err != nil {
		return fmt.Errorf("runtime.patch: %w", err)
	}
	file, err := overlay.Write(dir, root, edits)
	if err != nil {
		return fmt.Errorf("this version of Go is not the one that runtime.patch was written for: %w", err)
	}
	cmd := exec.Command("go", append([]string{
		"test", "-overlay", file, "-count=1", "-v", "-run", "^TestSimulation$", "github.com/kagzi/kagzi/engine/simulate", "-simulate.exact",
	}, args...)...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

func goRoot() (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	return strings.TrimSpace(string(root)), nil
}
