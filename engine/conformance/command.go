package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/engine/conformance/subject"
)

type flags struct {
	seeds, from    uint64
	sections, skip []string
	modes          []string
	name           string
	output         string
	verbose        bool
}

// Command returns `kagzi conformance`.
func Command(stores Stores) *cobra.Command {
	var o flags
	names := make([]string, len(modes))
	for i, m := range modes {
		names[i] = m.name
	}
	cmd := &cobra.Command{
		Use:   "conformance -- COMMAND [ARGUMENT ...]",
		Short: "Prove an SDK against the worker protocol",
		Long: `Prove an SDK against the worker protocol (proto/PROTOCOL.md). COMMAND starts the SDK's subject, a worker
that executes the programs which proto/CONFORMANCE.md describes. The suite starts a private server, and the
subject several times. It runs fixed cases, each named after a paragraph of the protocol, and random programs
under faults, whose histories it compares with those of the Go SDK. Everything that it started is ended.

The Go SDK's own subject is kagzi conformance worker:

  kagzi conformance -- kagzi conformance worker

Faults of random programs (--mode): ` + strings.Join(names, ", ") + `. Seed n has mode n modulo their number.

Exit code: 0 when all cases pass, 1 when one fails.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd, stores, o, args) },
	}
	f := cmd.Flags()
	f.Uint64Var(&o.seeds, "seeds", 200, "how many random programs to run")
	f.Uint64Var(&o.from, "from", 1, "seed of the first random program")
	f.StringSliceVar(&o.sections, "section", nil, "run only these sections or paragraphs, such as 6 or 12.7, or random")
	f.StringSliceVar(&o.skip, "skip", nil, "leave out these sections or paragraphs, which the SDK does not claim")
	f.StringSliceVar(&o.modes, "mode", nil, "run random programs only under these faults")
	f.StringVar(&o.name, "case", "", "run only cases with this text in their name")
	f.StringVarP(&o.output, "output", "o", "table", "output format: table or json")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print each case as it ends, to stderr")
	cmd.AddCommand(newWorker())
	return cmd
}

// newWorker returns the Go SDK's subject.
func newWorker() *cobra.Command {
	return &cobra.Command{
		Use:    "worker",
		Short:  "Run the Go SDK's subject",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			// the worker handles signals itself: it drains on SIGTERM
			return subject.Run(context.Background(), os.Getenv)
		},
	}
}

// check rejects flags that name nothing.
func (o *flags) check() error {
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("--output is %q, want table or json", o.output)
	}
	for _, name := range o.modes {
		if !slices.ContainsFunc(modes, func(m mode) bool { return m.name == name }) {
			return fmt.Errorf("--mode is %q, which is none of the faults that the help lists", name)
		}
	}
	for _, id := range slices.Concat(o.sections, o.skip) {
		if n, _ := heading(id); n == len(headings) && id != "random" || n == 0 {
			return fmt.Errorf("%q is no section: want a number from 1 to %d, a paragraph such as 12.7, or random", id, len(headings)-1)
		}
	}
	return nil
}

func run(cmd *cobra.Command, stores Stores, o flags, command []string) error {
	if err := o.check(); err != nil {
		return err
	}
	began := time.Now()
	var r report
	err := Run(cmd.Context(), Options{Stores: stores, Command: command, Seeds: o.seeds, From: o.from, Modes: o.modes,
		Only: o.sections, Skip: o.skip, Case: o.name, Report: func(f Finding) {
			r.add(f)
			if o.verbose {
				word := "passed"
				if f.Failure != "" {
					word = "FAILED"
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "%s %s\n", word, printable(f.name()))
			}
		}})
	r.end(began, err)
	write := r.writeTable
	if o.output == "json" {
		write = r.writeJSON
	}
	if wrote := write(cmd.OutOrStdout()); wrote != nil {
		return wrote
	}
	switch {
	case err != nil:
		return err
	case r.Failed > 0:
		return fmt.Errorf("%d of %d cases failed", r.Failed, r.Failed+r.Passed)
	case r.Passed == 0:
		return errors.New("no case was chosen")
	}
	return nil
}
