// Package demo owns `kagzi demo`: the main job of Kagzi shown on a private server, with real
// processes, and checked. Nothing of it is played: what it prints it has read from the caller's
// results, the server's records and the files that the steps wrote.
package demo

import (
	"context"
	"errors"
	"fmt"
	ossignal "os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/tui/render"
)

type options struct {
	keep     bool
	noColour bool
}

// Command is `kagzi demo`, with the hidden command of its worker processes. It starts processes of
// its own binary, whose root must hold child.Command and the command server.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job on a private server: sagas, retries, sleeps, children, signals, schedules, a killed worker",
		Long: `Start a private server on an embedded database in a temporary directory, and workers, each a process of its own; run
sample workflows, by hand and by a schedule; send a signal; kill a worker with SIGKILL halfway through a run; check every
result against what the caller got, what the server has recorded and what the steps wrote to disk. Everything is
stopped and removed at the end.

Exit code: 0 when every result is what it must be, 1 when not, 130 when interrupted.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := screenOf(cmd, o.noColour)
			// as from `| head`: killed by it, the demo would leave its files behind
			ctx, stop := ossignal.NotifyContext(cmd.Context(), syscall.SIGPIPE)
			defer stop()
			err := run(ctx, out, o)
			if ctx.Err() != nil && cmd.Context().Err() == nil {
				stop()
				out.line("") // now the signal does what it does to other commands
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&o.keep, "keep", false, "leave the server and a worker up until ctrl-C, and say what to try")
	cmd.Flags().BoolVar(&o.noColour, "no-color", false, "no colours, as with NO_COLOR")
	cmd.AddCommand(newWorker())
	return cmd
}

func run(ctx context.Context, out screen, o options) (err error) {
	began := time.Now()
	out.line("starting a server and workers, each a process of its own ...")
	s, err := build(ctx, posts)
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

	titles := make([]string, len(scenes))
	for i, sc := range scenes {
		titles[i] = sc.title
		out.line("  " + pad(sc.title, titleWidth) + "  " + out.paint(sc.about, render.Dim))
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

// serverLines is how many of the server's own lines help to see what went wrong.
const serverLines = 20

// interrupted prefers the end of ctx to the errors that follow from it.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// judge is nil when every result is what it must be.
func judge(verdicts []verdict) error {
	wrong := 0
	for _, v := range verdicts {
		if len(v.differs) > 0 {
			wrong++
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d results are not what they must be", wrong, len(verdicts))
	}
	return nil
}
