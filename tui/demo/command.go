// Package demo implements `kagzi demo`: it shows and checks Kagzi's main features on a private
// server with real processes. Everything it prints comes from the callers' results, the server's
// records and the files that steps wrote.
package demo

import (
	"context"
	"errors"
	"fmt"
	ossignal "os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/tui/render"
)

type options struct {
	keep     bool
	noColour bool
}

// Command returns `kagzi demo`, with the hidden command of its worker processes. It starts its own
// binary, whose root must have child.Command and the server command.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run sample workflows on a private server and check every result",
		Long: `Run sample workflows on a private server and check every result. The demo shows sagas, retries,
sleeps, child workflows, signals, schedules and a killed worker, and, where Python and Node have the
packages of the SDKs, workflows in three languages.

It starts a server on an embedded database in a temporary directory, and several worker processes.
It runs workflows by hand and by a schedule, sends a signal, and kills a worker with SIGKILL halfway
through a run. It compares every result with what the caller got, what the server recorded and what
the steps wrote to disk. At the end everything is stopped and removed.

Exit code: 0 when every result is correct, 1 when not, 130 when interrupted.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := screenOf(cmd, o.noColour)
			// as in `kagzi demo | head`: dying from SIGPIPE would leave the files behind
			ctx, stop := ossignal.NotifyContext(cmd.Context(), syscall.SIGPIPE)
			defer stop()
			err := run(ctx, out, o)
			if ctx.Err() != nil && cmd.Context().Err() == nil {
				stop()
				out.line("") // from now on the signal has its usual effect
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&o.keep, "keep", false,
		"keep the server and a worker running until Ctrl-C, and print commands to try")
	cmd.Flags().BoolVar(&o.noColour, "no-color", false, "disable colours, like NO_COLOR")
	cmd.AddCommand(newWorker())
	return cmd
}

func run(ctx context.Context, out screen, o options) (err error) {
	began := time.Now()
	out.line("starting a server and workers in their own processes ...")
	var found languages
	var missing error
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		found, missing = findLanguages(ctx)
	}()
	s, err := build(ctx, posts)
	<-looked
	if err != nil {
		return interrupted(ctx, err)
	}
	defer func() {
		if closing := s.close(); closing != nil {
			err = errors.Join(err, fmt.Errorf("end the demo: %w", closing))
		}
	}()
	out.line(fmt.Sprintf("server at %s (pid %d), %s %s",
		s.server.Address, s.server.PID(), render.Safe(s.server.Info.GetBackend()),
		render.Safe(s.server.Info.GetBackendVersion())))
	out.line("files in " + s.dir)

	scenes := scenes
	if missing == nil {
		if err := s.startHands(ctx, found); err != nil {
			return interrupted(ctx, err)
		}
		scenes = append(scenes[:len(scenes):len(scenes)], inLanguages)
	}
	titles := make([]string, len(scenes))
	for i, sc := range scenes {
		titles[i] = sc.title
		out.line("  " + pad(sc.title, titleWidth) + "  " + out.paint(sc.about, render.Dim))
	}
	if missing != nil {
		for _, what := range strings.Split(missing.Error(), "\n") {
			out.line(out.paint("the scene with Python and TypeScript is left out: "+render.Safe(what), render.Dim))
		}
	}
	out.line("")
	b := newBoard(out, titles)
	verdicts := play(ctx, s, scenes, b)
	b.close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	summarize(out, verdicts, time.Since(began))
	if err = judge(verdicts); err != nil {
		for _, line := range s.server.Tail(serverLines) {
			out.line("server   " + render.Safe(line))
		}
	}
	if o.keep {
		err = errors.Join(err, keep(ctx, out, s))
	}
	return err
}

// serverLines is how many of the server's lines are printed after a failure.
const serverLines = 20

// interrupted returns the end of ctx instead of errors that follow from it.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// judge returns nil if every result is correct.
func judge(verdicts []verdict) error {
	wrong := 0
	for _, v := range verdicts {
		if len(v.differs) > 0 {
			wrong++
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d results are wrong", wrong, len(verdicts))
	}
	return nil
}
