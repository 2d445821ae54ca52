package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
	"github.com/kagzi/kagzi/tui/render"
)

// playLimit limits the time of a scene; scenes take a tenth of it.
const playLimit = 60 * time.Second

// verdict is the result of a scene.
type verdict struct {
	title   string
	status  string
	style   render.Style
	note    string
	took    time.Duration
	differs []string // empty if all is correct
}

// play runs all scenes at once and checks each when its run has ended. It returns early only if ctx
// ends.
func play(ctx context.Context, s *environment, scenes []scene, b *board) []verdict {
	limited, cancel := context.WithTimeout(ctx, playLimit)
	defer cancel()
	verdicts := make([]verdict, len(scenes))
	var playing sync.WaitGroup
	for i, sc := range scenes {
		playing.Go(func() {
			p := player{scene: sc, env: s, board: b, index: i, seen: map[string]string{}}
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
	env   *environment
	board *board
	index int

	status string // of the run or the schedule, as last shown
	style  render.Style
	done   int
	seen   map[string]string // status of an attempt, or of a tick's run, by id

	mu    sync.Mutex
	waits []string // everything the run was seen SLEEPING for
	over  bool     // nothing more will be seen
}

func (p *player) play(ctx context.Context) verdict {
	began := time.Now()
	c := check{}
	var note string
	var err error
	if c.facts, err = p.perform(ctx, p); err == nil {
		note = p.check(&c)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("not finished after %s", render.Duration(time.Since(began)))
	}
	if err != nil {
		c.differ("%v", err)
	}
	if len(c.differs) > 0 {
		note = c.differs[0]
	}
	return verdict{title: p.title, status: p.status, style: p.style, note: note, took: time.Since(began),
		differs: c.differs}
}

// become shows a new status of a run or schedule.
func (p *player) become(status string, style render.Style) {
	p.status, p.style = status, style
	p.board.status(p.index, status, style)
}

// say shows what the demo itself has done.
func (p *player) say(event string) { p.board.detail(p.index, event, event) }

// follow watches a run to its end, while meddle acts on it, and gathers the facts about it.
func (p *player) follow(ctx context.Context, run *kagzi.Run, meddle meddler) (f facts, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var meddling sync.WaitGroup
	var meddled error
	if meddle != nil {
		meddling.Go(func() {
			if meddled = meddle(ctx, p, run, &f); meddled != nil {
				cancel() // otherwise the rest would wait forever
			}
		})
	}
	err = p.watch(ctx, run)
	meddling.Wait()
	if err := errors.Join(meddled, err); err != nil {
		return f, err
	}
	f.waits = p.waits
	return f, collect(ctx, p.env, run, &f)
}

// watch shows what happens to the run until it has ended.
func (p *player) watch(ctx context.Context, run *kagzi.Run) error {
	defer p.see("", true)
	events, err := p.env.api.WatchWorkflow(ctx, &kagziv1.WatchWorkflowRequest{Namespace: namespace, RunId: run.ID()})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	var last kagziv1.WorkflowStatus
	for {
		event, err := events.Recv()
		switch {
		case errors.Is(err, io.EOF) && render.Ended(last):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case status.Code(err) == codes.DeadlineExceeded: // the call's clock may be slightly ahead of ctx
			return context.DeadlineExceeded
		case err != nil:
			return fmt.Errorf("watch: %w", err)
		}
		for _, s := range event.GetSteps() {
			p.showStep(s)
		}
		if w := event.GetWorkflow(); w != nil {
			if w.GetStatus() != last {
				last = w.GetStatus()
				p.become(render.RunStatus(last), render.RunStyle(last))
			}
			p.showWait(w)
		}
	}
}

// showWait shows what a parked run waits for, the first time.
func (p *player) showWait(w *kagziv1.Workflow) {
	kind, name, _ := strings.Cut(w.GetWaitingFor(), ":")
	wait := kind + " " + name
	if kind == "child" {
		wait = "children" // it waits for all of them, and their ids say nothing
	}
	if known, _ := p.waitsFor(wait); kind == "" || known {
		return
	}
	p.see(wait, false)
	p.board.detail(p.index, p.progress("waits for "+wait), "waits for "+wait)
}

// see records what the run waits for, if anything, and whether it is over.
func (p *player) see(wait string, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait != "" {
		p.waits = append(p.waits, wait)
	}
	p.over = over
}

// waitsFor reports whether the run was seen waiting for something, and whether nothing more will be
// seen.
func (p *player) waitsFor(wait string) (seen, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.waits, wait), p.over
}

// manySteps is the number of steps from which only some of them get a line.
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
	p.board.detail(p.index, p.progress(event), event)
}

// progress returns how far the run is, and the last event if worth telling.
func (p *player) progress(event string) string {
	progress := fmt.Sprintf("%d of %d steps", p.done, p.total)
	if event != "" {
		progress += ", " + event
	}
	return progress
}
