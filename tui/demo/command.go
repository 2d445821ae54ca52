// Package demo owns `kagzi demo`: the main job of Kagzi shown on a private server, with real processes, and checked. Nothing of
// it is played: what it prints it has read from the caller's results, the server's records and the files that the steps wrote.
package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/tui/render"
)

type options struct {
	keep     bool
	noColour bool
}

// Command is `kagzi demo`, with the hidden command of its worker processes. It starts processes of its own binary, whose
// root must hold child.Command and the command server.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job on a private server: sagas, parallel steps, retries, sleeps, a killed worker",
		Long: `Start a private server on an embedded database in a temporary directory, and workers, each a process of its own; run
sample workflows; kill a worker with SIGKILL halfway through a run; check every result against what the caller got,
what the server has recorded and what the steps wrote to disk. Everything is stopped and removed at the end.

Exit code: 0 when every result is what it must be, 1 when not, 130 when interrupted.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), screenOf(cmd, o.noColour), o)
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
	s, err := build(ctx, workerQueues)
	if err != nil {
		return interrupted(ctx, err)
	}
	defer func() {
		if closing := s.close(); closing != nil {
			err = errors.Join(err, fmt.Errorf("end the demo: %w", closing))
		}
	}()
	out.line(fmt.Sprintf("server at %s (pid %d), %s %s, in %s",
		s.server.Address, s.server.PID(), render.Safe(s.server.Info.GetBackend()), render.Safe(s.server.Info.GetBackendVersion()), s.dir))

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

func summarize(out screen, verdicts []verdict, took time.Duration) {
	table := render.Table{Columns: []render.Column{
		{Title: "WORKFLOW"}, {Title: "STATUS"}, {Title: "RESULT"}, {Title: "TIME", Right: true}, {Title: "CHECKED"},
	}}
	right := 0
	for _, v := range verdicts {
		result := render.Cell{Text: "right", Style: render.Good}
		if len(v.differs) > 0 {
			result = render.Cell{Text: "WRONG", Style: render.Bad}
		} else {
			right++
		}
		table.Rows = append(table.Rows, []render.Cell{
			render.Text(v.title), {Text: v.status, Style: v.style}, result, render.Text(render.Duration(v.took)), render.Text(v.note),
		})
	}
	out.line("")
	for _, line := range table.Lines(render.Layout{Colour: out.colour}) { // a narrow terminal breaks lines rather than cut what was checked
		out.line(line)
	}
	out.line("")
	for _, v := range verdicts {
		for _, d := range v.differs {
			out.line(out.paint("differs", render.Bad) + "  " + v.title + ": " + render.Safe(d))
		}
	}
	out.line(fmt.Sprintf("%d of %d results are what they must be, in %s", right, len(verdicts), render.Duration(took)))
}

// keep leaves the server and the first worker up until ctx ends, which is how it is meant to end.
func keep(ctx context.Context, out screen, s *stage) error {
	if err := errors.Join(s.dismiss("worker-2"), s.dismiss("worker-3")); err != nil {
		return err
	}
	at := " --address " + s.server.Address
	for _, line := range []string{
		"",
		"the server and worker-1 stay up; try in another terminal:",
		"  kagzi workflow list" + at,
		"  kagzi workflow start " + napType + " --queue " + queue + " --input 10" + at,
		"  kagzi workflow watch RUN" + at,
		"  kagzi workflow show RUN" + at,
		"  kagzi worker list" + at,
		"  kagzi queue list" + at,
		"  kagzi bench --workload W1,W3 --scale 0.1" + at,
		"ctrl-C stops them and removes " + s.dir,
	} {
		out.line(line)
	}
	worker := s.workers["worker-1"]
	select {
	case <-ctx.Done():
		return nil
	case <-s.server.Done():
		return s.server.Stop(0)
	case <-worker.Done():
		return worker.Stop(0)
	}
}
