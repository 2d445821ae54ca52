//go:build linux

// Command compare does the same to Kagzi and to River, both on a private Postgres that syncs what it commits: jobs come at a fixed rate,
// each has one effect, and then Postgres is restarted, crashes, the worker is killed again and again, an old snapshot is held, or readers
// scan the tables. It prints what came of it, and fails when Kagzi loses an effect, does not come back, recovers to less than 95 % of what it did
// before, or to less than River by more than two measurements of the same differ. Recovered is what it does when it has caught up. While Postgres
// only has more to do, Kagzi has to do as much as River, too.
//
//	cd engine/torture/compare && go run . [-rate 100] [-phase 10s] [-only NAME]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

var (
	rate  = flag.Int("rate", 100, "jobs a second")
	phase = flag.Duration("phase", 10*time.Second, "length of each of the phases before, during and after")
	only  = flag.String("only", "", "the one scenario to run")
	role  = flag.String("role", "", "be the worker of this system (internal)")
	place = flag.String("at", "", "where that worker's server or database is (internal)")
)

const (
	enough = 0.95 // of the rate before
	noise  = 0.05 // between two measurements of the same
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	do := compare
	if *role != "" {
		do = func(ctx context.Context) error { return work(ctx, *role, *place) }
	}
	if err := do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func compare(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "compare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // Postgres is another user
		return err
	}
	binary := filepath.Join(dir, "kagzi")
	build := exec.CommandContext(ctx, "go", "build", "-C", "../../..", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build kagzi: %w: %s", err, out)
	}
	fmt.Printf("%d jobs a second; %s before, %s during, %s after\n\n", *rate, *phase, *phase, *phase)
	fmt.Printf("%-16s %-6s %9s %9s %9s %9s %9s %6s %6s\n", "scenario", "system", "before/s", "during/s", "after/s", "recovery", "back in", "lost", "twice")
	failed := false
	for n, s := range scenarios {
		if *only != "" && *only != s.name {
			continue
		}
		var results [2]result
		for i, create := range []func(binary, dir string) system{newKagzi, newRiver} {
			results[i], err = s.run(ctx, create(binary, filepath.Join(dir, fmt.Sprintf("%d-%d", n, i))))
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			fmt.Printf("%-16s %-6s %s\n", s.name, [2]string{"Kagzi", "River"}[i], results[i])
		}
		for _, why := range s.verdict(results[0], results[1]) {
			fmt.Printf("%-16s %s\n", s.name, why)
			failed = true
		}
	}
	if failed {
		return errors.New("Kagzi did not do what it should")
	}
	return nil
}
