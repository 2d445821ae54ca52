package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/tui/render"
)

// playLimit is how long a scene may take; they take a tenth of it.
const playLimit = 60 * time.Second

// verdict is what came of a scene.
type verdict struct {
	title   string
	status  string
	style   render.Style
	note    string
	took    time.Duration
	differs []string // nothing when all is as it must be
}

// play runs all scenes at once and checks each when its run has ended. It returns early only when ctx ends.
func play(ctx context.Context, s *stage, scenes []scene, b *board) []verdict {
	limited, cancel := context.WithTimeout(ctx, playLimit)
	defer cancel()
	verdicts := make([]verdict, len(scenes))
	var playing sync.WaitGroup
	for i, sc := range scenes {
		playing.Go(func() {
			p := player{scene: sc, stage: s, board: b, index: i, seen: map[string]string{}}
			verdicts[i] = p.play(limited)
			if ctx.Err() == nil {
				b.judge(i, len(verdicts[i].differs) == 0, verdicts[i].note)
			}
		})
	}
	playing.Wait()
	return verdicts
}

// player plays one scene.
type player struct {
	scene
	stage *stage
	board *board
	index int

	status kagziv1.WorkflowStatus
	slept  bool
	done   int
	seen   map[string]string // status of an attempt by its id
}

func (p *player) play(ctx context.Context) verdict {
	began := time.Now()
	c := check{}
	note, err := p.perform(ctx, &c)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("not over after %s", render.Duration(time.Since(began)))
		}
		c.differ("%v", err)
	}
	if len(c.differs) > 0 {
		note = c.differs[0]
	}
	return verdict{
		title: p.title, status: render.RunStatus(p.status), style: render.RunStyle(p.status),
		note: note, took: time.Since(began), differs: c.differs,
	}
}

func (p *player) perform(ctx context.Context, c *check) (note string, err error) {
	run, err := p.start(ctx, p.stage.client)
	if err != nil {
		return "", fmt.Errorf("start: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var meddling sync.WaitGroup
	var killed *kill
	var meddled error
	if p.meddle != nil {
		meddling.Go(func() {
			say := func(event string) { p.board.detail(p.index, event, event) }
			if killed, meddled = p.meddle(ctx, p.stage, run, say); meddled != nil {
				cancel() // or the rest would wait for what does not come
			}
		})
	}
	err = p.watch(ctx, run)
	meddling.Wait()
	if err := errors.Join(meddled, err); err != nil {
		return "", err
	}
	if c.facts, err = collect(ctx, p.stage, run); err != nil {
		return "", err
	}
	c.slept, c.killed = p.slept, killed
	return p.check(c), nil
}

// watch shows what happens to the run until it has ended.
func (p *player) watch(ctx context.Context, run *kagzi.Run) error {
	events, err := p.stage.api.WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{Namespace: namespace, RunId: run.ID()})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	for {
		event, err := events.Recv()
		switch {
		case errors.Is(err, io.EOF) && render.Ended(p.status):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case status.Code(err) == codes.DeadlineExceeded: // the call's clock may be a little ahead of ctx
			return context.DeadlineExceeded
		case err != nil:
			return fmt.Errorf("watch: %w", err)
		}
		for _, s := range event.GetSteps() {
			p.showStep(s)
		}
		if w := event.GetWorkflow(); w != nil && w.GetStatus() != p.status {
			p.status = w.GetStatus()
			p.slept = p.slept || p.status == kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING
			p.board.status(p.index, render.RunStatus(p.status), render.RunStyle(p.status))
		}
	}
}

// manySteps is from how many steps on only every so many of them are worth a line.
const manySteps = 10

func (p *player) showStep(s *kagziv1.Step) {
	status := render.StepStatus(s.GetStatus())
	if p.seen[s.GetStepId()] == status {
		return
	}
	p.seen[s.GetStepId()] = status
	event := s.GetName() + " " + status
	switch s.GetStatus() {
	case kagziv1.StepStatus_STEP_STATUS_COMPLETED:
		p.done++
		if p.total > manySteps {
			event = fmt.Sprintf("%d steps COMPLETED", p.done)
			if p.done%manySteps != 0 {
				event = ""
			}
		}
	case kagziv1.StepStatus_STEP_STATUS_PENDING, kagziv1.StepStatus_STEP_STATUS_FAILED:
		event += ": " + s.GetError().GetMessage()
	default:
		if p.total > manySteps {
			event = ""
		}
	}
	detail := fmt.Sprintf("%d of %d steps", p.done, p.total)
	if event != "" {
		detail += ", " + event
	}
	p.board.detail(p.index, detail, event)
}
