package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

type watchOptions struct {
	id       string
	external bool
}

func newWatch(e *env, o *watchOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch ID",
		Short: "Watch a run: print a line for each change until it ends",
		Long: `Watch a run: print a line for each change of the run and its steps until it ends. For a run that
continues as new, watch until the last run of the chain ends. Watching survives server restarts.
Ends are shown with the time when they happened, other changes with the time when they were seen.
After 3 seconds it says on stderr what the run waits for, and again when that changes.

Exit code of the last run: 0 completed, 2 failed, 3 timed out, 4 cancelled or terminated.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.complete(completeRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.id = args[0]
			return e.run(cmd, func(ctx context.Context, c *client) error { return runWatch(ctx, c, o) })
		},
	}
	cmd.Flags().BoolVar(&o.external, "external", false, "ID is an external id; watch its newest run")
	return cmd
}

func runWatch(ctx context.Context, c *client, o *watchOptions) error {
	if o.external {
		run, err := c.find(ctx, o.id, true)
		if err != nil {
			return err
		}
		o.id = run.GetRunId()
	}
	w := &watcher{client: c, runID: o.id, seq: &sequence{out: c.out}, seen: map[string]string{},
		retry: serverRetry{out: c.out}}
	err := w.follow(ctx)
	if closing := w.seq.close(); err == nil && closing != nil {
		return closing
	}
	if err != nil {
		return c.externalHint(err)
	}
	return exit(exitOf(w.last.GetStatus()))
}

// watcher follows a run, and the runs it continues as, over any number of streams. It remembers
// what it has shown, because each new stream starts with the current state.
type watcher struct {
	*client
	runID string
	seq   *sequence
	seen  map[string]string // the run, or a step by id, as last shown
	last  *kagziv1.Workflow // the run as last seen
	retry serverRetry
}

// follow returns nil when the run and all runs it continued as have ended.
func (w *watcher) follow(ctx context.Context) error {
	followed := map[string]bool{w.runID: true}
	stop := w.sayWhy(ctx, w.runID)
	defer func() { stop() }()
	for {
		err := w.stream(ctx)
		if render.Ended(w.last.GetStatus()) && (err == nil || status.Code(err) == codes.Unavailable) {
			// nothing new can follow
			next := w.last.GetContinuedAsRunId()
			if next == "" || followed[next] { // stop if the server answers with a cycle
				return nil
			}
			stop()
			w.goOn(next)
			stop = w.sayWhy(ctx, next)
			followed[next] = true
			continue
		}
		if err == nil { // the server ended the stream early because it is stopping
			err = status.Error(codes.Unavailable, "server ended the stream before the run had ended")
		}
		if err := w.retry.after(ctx, err); err != nil {
			return err
		}
	}
}

// goOn switches to the run that the watched run continued as.
func (w *watcher) goOn(runID string) {
	w.runID, w.last, w.seen = runID, nil, map[string]string{}
	w.out.say("the run continued as %s", render.Safe(runID))
}

// stream shows the changes of one stream; it returns nil when the server ends it.
func (w *watcher) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := w.WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{Namespace: w.namespace, RunId: w.runID})
	if err != nil {
		return err
	}
	for {
		event, err := events.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		w.retry.answered()
		if err := w.show(event); err != nil {
			return err
		}
	}
}

// show prints the changes of an event. Steps come before the run's end, so that the end is the last
// line.
func (w *watcher) show(event *kagziv1.WatchWorkflowEvent) error {
	run := event.GetWorkflow()
	ended := render.Ended(run.GetStatus())
	if run != nil && !ended {
		if err := w.showRun(run); err != nil {
			return err
		}
	}
	for _, s := range event.GetSteps() {
		if err := w.showStep(s); err != nil {
			return err
		}
	}
	if run != nil && ended {
		return w.showRun(run)
	}
	return nil
}

func (w *watcher) showRun(run *kagziv1.Workflow) error {
	w.last = run
	v := w.view()
	text := fmt.Sprintf("run   %s", w.out.paint(render.RunStatus(run.GetStatus()), render.RunStyle(run.GetStatus())))
	note := render.RunNote(run, v)
	switch {
	case run.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED:
		note = render.PayloadLine(run.GetOutput(), v.Payloads)
	case run.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING && note == "":
		note = "by " + run.GetWorkerId()
	}
	state := fmt.Sprint(run.GetStatus(), run.GetWorkerId(), run.GetNote(), run.GetWaitingFor(), run.GetAttempts(),
		run.GetStepRetries(), run.GetPaused(), run.GetPausing(), run.GetCancelRequestedAt() != nil)
	return w.line("run", state, run.GetFinishedAt(), text, note,
		render.Object{{Name: "workflow", Value: render.Document(run)}})
}

func (w *watcher) showStep(s *kagziv1.Step) error {
	text := fmt.Sprintf("step  %s  %s", w.out.paint(render.StepStatus(s.GetStatus()), render.StepStyle(s.GetStatus())),
		render.Safe(s.GetName()))
	if s.GetAttemptNumber() > 1 {
		text += fmt.Sprintf(", attempt %d", s.GetAttemptNumber())
	}
	if retried := s.GetStatus() == kagziv1.StepStatus_STEP_STATUS_FAILED && !s.GetIsLatest(); retried &&
		w.seen[s.GetStepId()] != "" {
		return nil // its failure was shown when the next attempt was scheduled
	}
	state := fmt.Sprint(s.GetStatus(), s.GetAttemptNumber(), s.GetRetryAt().AsTime(), s.GetFinishedAt().AsTime())
	return w.line(s.GetStepId(), state, s.GetFinishedAt(), text, render.StepResult(s, w.view()),
		render.Object{{Name: "step", Value: render.Document(s)}})
}

// line prints a change once, with the time at when it happened, or now if that is not recorded.
func (w *watcher) line(key, state string, at *timestamppb.Timestamp, text, note string, document render.Object) error {
	if w.seen[key] == state {
		return nil
	}
	w.seen[key] = state
	if note != "" {
		text += "  " + render.Safe(note)
	}
	moment := w.now().UTC()
	if at != nil {
		moment = at.AsTime()
	}
	layout := "15:04:05.000"
	if w.out.iso {
		layout = "2006-01-02T15:04:05.000Z"
	}
	return w.seq.add(w.out.paint(moment.Format(layout), render.Dim)+"  "+text, document)
}
