//go:build linux

// Command torture runs the real server, workers and clients under faults, and checks what they saw
// and what the database holds at the end against the promises. It is not part of the shipped
// program.
//
//	go run ./engine/lab/torture --list
//	go run ./engine/lab/torture --scenario F-01,F-03 --db sqlite --seed 7
//	go run ./engine/lab/torture --short
//
// Exit code: 0 all promises held; 1 one was broken; 2 a scenario proved nothing or could not run;
// 77 none of the requested scenarios can run on this machine.
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
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kagzi/kagzi/engine/lab/overlay"
	"github.com/kagzi/kagzi/engine/lab/torture/fixture"
	"github.com/kagzi/kagzi/engine/lab/torture/workload"
)

const (
	exitHeld     = 0
	exitViolated = 1
	exitVacuous  = 2
	exitNotHere  = 77
)

var verdicts = map[int]string{exitHeld: "held", exitViolated: "VIOLATED", exitVacuous: "PROVES NOTHING",
	exitNotHere: "NOT TRIED"}

func main() {
	if text := os.Getenv(workload.WorkerVariable); text != "" {
		if err := workload.RunWorker(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := fixture.OwnMounts(); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(exitVacuous)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func command(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	list := flags.Bool("list", false, "list the scenarios")
	ids := flags.String("scenario", "", "run these scenarios: comma-separated ids or prefixes, such as F")
	db := flags.String("db", "",
		"use sqlite, postgres, or a fresh schema of the Postgres at this URL (default both kinds)")
	seed := flags.Uint64("seed", 0, "seed all randomness (default: from the time)")
	scale := flags.Float64("scale", 0.2, "scale the load; 1 is 50 starts a second")
	duration := flags.Duration("duration", 20*time.Second, "inject faults for this long in each scenario")
	short := flags.Bool("short", false,
		"run a selection in about 3 minutes on two cores; implies --at-once 3 and --again 1")
	atOnce := flags.Int("at-once", 1, "run this many scenarios in parallel")
	again := flags.Int("again", 0,
		"repeat a scenario that proved nothing this often, each time for twice as long")
	all := flags.Bool("all", false, "run all scenarios")
	strict := flags.Bool("strict", false,
		"fail a scenario that misses a machine-dependent figure")
	program := flags.String("server", "", "use this server binary (default: built from this module, with failpoints)")
	keep := flags.String("keep", "",
		"keep everything in this directory (default: a temporary one, kept only after a failure)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitHeld
		}
		return exitVacuous
	}
	if *list {
		printList()
		return exitHeld
	}
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	if wrong := unknown(*ids, *db); len(wrong) > 0 {
		fmt.Fprintf(os.Stderr, "torture: no scenario%s is called %s; see --list\n", prefixed(" for ", *db),
			strings.Join(wrong, ", "))
		return exitVacuous
	}
	chosen := choose(*ids, *db, *short, *all)
	if len(chosen) == 0 {
		fmt.Fprintln(os.Stderr,
			"torture: nothing to do; name scenarios with --scenario (see --list), or use --short or --all")
		return exitVacuous
	}
	o := options{program: *program, seed: *seed, scale: *scale, duration: *duration, strict: *strict, atOnce: *atOnce,
		again: *again}
	if *short {
		o.scale, o.duration = min(o.scale, shortScale), min(o.duration, shortDuration)
		given := map[string]bool{}
		flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
		if !given["at-once"] {
			o.atOnce = shortAtOnce
		}
		if !given["again"] {
			o.again = shortAgain
		}
	}
	base, err := baseDirectory(*keep)
	if o.base = base; err == nil && o.program == "" {
		o.program = filepath.Join(base, "kagzi")
		err = build(ctx, ".", o.program)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "torture: %v\n", err)
		return exitVacuous
	}
	code := tortureAll(ctx, base, chosen, o)
	if *keep == "" && code == exitHeld {
		_ = os.RemoveAll(base)
	} else {
		fmt.Printf("everything that was written down is in %s\n", base)
	}
	return code
}

// attempt is a scenario on one kind of database.
type attempt struct {
	scenario scenario
	db       string
}

// split returns the ids of a comma-separated list.
func split(ids string) []string {
	return strings.FieldsFunc(ids, func(r rune) bool { return r == ',' })
}

// unknown returns the ids that match no scenario for db, so that a missing scenario does not count
// as passed.
func unknown(ids, db string) []string {
	return slices.DeleteFunc(split(ids), func(prefix string) bool {
		return slices.ContainsFunc(scenarios, func(s scenario) bool {
			return strings.HasPrefix(s.id, prefix) && len(s.databases(db)) > 0
		})
	})
}

// choose returns the attempts to run, in the order of the list.
func choose(ids, db string, short, all bool) []attempt {
	wanted := split(ids)
	var chosen []attempt
	for _, s := range scenarios {
		named := slices.ContainsFunc(wanted, func(prefix string) bool { return strings.HasPrefix(s.id, prefix) })
		for _, kind := range s.databases(db) {
			if named || all || short && slices.Contains(shortSelection, s.id+" "+kind) {
				chosen = append(chosen, attempt{s, kind})
			}
		}
	}
	return chosen
}

// databases returns those that a scenario is for, among the requested ones.
func (s scenario) databases(asked string) []string {
	kinds := s.on
	if kinds == nil {
		kinds = []string{dbSQLite, dbPostgres}
	}
	switch {
	case asked == "":
		return kinds
	case strings.Contains(asked, ":") && s.on == nil, slices.Contains(kinds, asked):
		return []string{asked}
	}
	return nil
}

func printList() {
	for _, s := range scenarios {
		fmt.Printf("%-12s %-15s  %s\n             pass: no violation%s\n", s.id, strings.Join(s.databases(""), ","),
			s.name, prefixed("; ", s.pass))
	}
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// tortureAll runs the attempts, options.atOnce in parallel, and prints a table of all in the order
// of the list. The worst result is the exit code.
func tortureAll(ctx context.Context, base string, attempts []attempt, o options) int {
	results := make([]result, len(attempts))
	var group sync.WaitGroup
	slots := make(chan struct{}, max(1, o.atOnce))
	carriedOut := 0
	for i, a := range attempts {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		carriedOut++
		group.Go(func() {
			defer func() { <-slots }()
			results[i] = tortureUntilProven(ctx, base, a, o)
		})
	}
	group.Wait()
	counts := map[int]int{}
	var rows []string
	for _, r := range results[:carriedOut] {
		counts[r.code]++
		rows = append(rows, r.row())
	}
	fmt.Printf("\n%s\n%s\n\n", tableHead, strings.Join(rows, "\n"))
	fmt.Printf("%d held, %d violated, %d proved nothing, %d cannot be tried here, of %d; seed %d\n",
		counts[exitHeld], counts[exitViolated], counts[exitVacuous], counts[exitNotHere], len(attempts), o.seed)
	switch {
	case counts[exitViolated] > 0:
		return exitViolated
	case counts[exitVacuous] > 0, ctx.Err() != nil:
		return exitVacuous
	case counts[exitHeld] == 0:
		return exitNotHere
	}
	return exitHeld
}

// tortureUntilProven repeats a scenario that met too few faults or too little load, each time for
// twice as long, up to options.again times. Violations and scenarios that could not run are not
// repeated.
func tortureUntilProven(ctx context.Context, base string, a attempt, o options) result {
	for n := 0; ; n++ {
		o.dir = tortured(base, a.scenario, a.db)
		if n > 0 {
			o.dir += fmt.Sprintf("-again-%d", n)
		}
		r := tortureOne(ctx, a, o)
		if n == o.again || r.code != exitVacuous || r.report == nil || ctx.Err() != nil {
			return r
		}
		o.duration = 2 * max(o.duration, a.scenario.least)
	}
}

// printing keeps the output of one scenario together.
var printing sync.Mutex

func tortureOne(ctx context.Context, a attempt, o options) result {
	begun := time.Now()
	failed := func(code int, err error) result {
		printing.Lock()
		defer printing.Unlock()
		fmt.Printf("%s %s on %s, seed %d: %s: %v\n", a.scenario.id, a.scenario.name, withoutURL(a.db), o.seed,
			verdicts[code], err)
		return result{attempt: a, seed: o.seed, took: time.Since(begun), code: code, why: err.Error()}
	}
	o.db = a.db
	if err := os.MkdirAll(o.dir, 0o755); err != nil { // Postgres, which runs as another user, has a directory in it
		return failed(exitVacuous, err)
	}
	r, err := run(ctx, a.scenario, o)
	switch {
	case fixture.IsNotHere(err):
		return failed(exitNotHere, err)
	case err != nil:
		return failed(exitVacuous, fmt.Errorf("did not run: %w", err))
	}
	took := time.Since(begun)
	printing.Lock()
	defer printing.Unlock()
	return result{attempt: a, seed: o.seed, took: took, code: r.print(a.scenario, o, took), report: r}
}

func baseDirectory(keep string) (string, error) {
	if keep == "" {
		dir, err := os.MkdirTemp("", "kagzi-torture-")
		if err != nil {
			return "", err
		}
		return dir, os.Chmod(dir, 0o755)
	}
	path, err := filepath.Abs(keep)
	if err != nil {
		return "", err
	}
	return path, os.MkdirAll(path, 0o755)
}

// building makes parallel scenarios wait for a binary that one of them builds.
var building sync.Mutex

// build builds the server's binary from the module at root, with failpoints.
func build(ctx context.Context, root, path string, flags ...string) error {
	tags, err := overlay.Failpoints()
	if err != nil {
		return err
	}
	args := slices.Concat([]string{"build", tags, "-o", path}, flags, []string{"github.com/kagzi/kagzi"})
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the server: %w: %s", err, out)
	}
	return nil
}
