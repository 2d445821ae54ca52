// Command replay runs a seed of the simulation, or a plan, deterministically down to the order of
// goroutines: in a separate process, on one processor, with a Go runtime whose randomness is fixed
// (runtime.patch). The first run takes minutes because everything is built with that runtime. The
// printed history shows whether two runs were the same.
//
//	go run ./engine/lab/replay -seed 4711 -trace
//	go run ./engine/lab/replay -plan kagzi-simulate-4711.json
//	go run ./engine/lab/replay -seeds 200 -times 5     how many seeds have more than one history
//
// A seed may find something else here than in go test, where the runtime chose differently; -seeds
// tries several. Exit code: 1 if a promise was broken or a seed had more than one history, 2 if it
// could not run.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kagzi/kagzi/engine/lab/overlay"
)

//go:embed runtime.patch
var patch string

func main() {
	seed := flag.Uint64("seed", 1, "try this seed, or start with it")
	seeds := flag.Uint64("seeds", 1, "try this many seeds")
	times := flag.Int("times", 1, "try each seed this often")
	plan := flag.String("plan", "", "try the plan in this file, as a failure writes it, instead")
	trace := flag.Bool("trace", false, "print the history")
	flag.Parse()
	if *plan != "" {
		*seeds = 1
	}
	good, err := replay(*seed, *seeds, *times, *plan, *trace)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(2)
	case !good:
		os.Exit(1)
	}
}

// replay reports whether all promises were kept and no seed had more than one history.
func replay(from, seeds uint64, times int, plan string, trace bool) (bool, error) {
	dir, err := os.MkdirTemp("", "kagzi-replay-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	program, err := build(dir)
	if err != nil {
		return false, err
	}
	good, several := true, 0
	for seed := from; seed < from+seeds; seed++ {
		histories := map[string]bool{}
		for range times {
			history, err := once(program, seed, plan, trace)
			good = good && err == nil
			histories[history] = true
		}
		if len(histories) > 1 {
			several++
			fmt.Printf("seed %d: %d histories in %d\n", seed, len(histories), times)
		}
	}
	if times > 1 {
		fmt.Printf("%d of %d seeds with more than one history\n", several, seeds)
	}
	return good && several == 0, nil
}

// build compiles the simulation's test with the patched runtime.
func build(dir string) (string, error) {
	root, err := goRoot()
	if err != nil {
		return "", err
	}
	_, edits, err := overlay.Parse(patch)
	if err != nil {
		return "", fmt.Errorf("runtime.patch: %w", err)
	}
	file, err := overlay.Write(dir, root, edits)
	if err != nil {
		return "", fmt.Errorf("runtime.patch does not fit this version of Go: %w", err)
	}
	program := filepath.Join(dir, "simulate.test")
	cmd := exec.Command("go", "test", "-c", "-overlay", file, "-o", program,
		"github.com/kagzi/kagzi/engine/lab/simulate")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return program, cmd.Run()
}

var historyLine = regexp.MustCompile(`history ([0-9a-f]{16})`)

// once runs a seed or the plan in a separate process and returns its history. It prints the output
// unless all is well.
func once(program string, seed uint64, plan string, trace bool) (string, error) {
	args := []string{"-test.v", "-test.run=^TestSimulation$", "-simulate.exact", fmt.Sprint("-simulate.from=", seed),
		"-simulate.seeds=1", fmt.Sprint("-simulate.trace=", trace)}
	if plan != "" {
		args = append(args, "-simulate.plan="+plan)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off")
	out, err := cmd.CombinedOutput()
	m := historyLine.FindSubmatch(out)
	if m == nil {
		err = errors.Join(err, errors.New("it has no history"))
		m = [][]byte{nil, []byte("none")}
	}
	if err != nil || trace {
		os.Stdout.Write(out)
	} else {
		fmt.Printf("seed %d: history %s\n", seed, m[1])
	}
	return string(m[1]), err
}

func goRoot() (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	return strings.TrimSpace(string(root)), nil
}
