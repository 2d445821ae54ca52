package view

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/view/internal/format"
	"github.com/kagzi/kagzi/tui/widget"
)

// runPage shows one run: what people ask first in a header, and below it one of seven ways to look at it.
type runPage struct {
	app    *App
	ref    string     // how it was asked for
	finder *runFinder // finds out which run is meant; nil where that was clear
	run    *model.Run // nil until it is known
	tabs   []runTab
	tab    int
	shown  bool

	open      bool // a step is not over
	explained *kagziv1.ExplainWorkflowResponse
	asked     time.Time // when the explanation came
	bar       []tabPlace
	top       int // the row of the page's first cell on the screen
	left      int
}

// openRun opens a run by its id, by the beginning of its id, or by its external id.
func openRun(a *App, args []string) (page, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("run takes one argument: the id of a run, its beginning, or an external id")
	}
	p := &runPage{app: a, ref: args[0]}
	if isRunID(p.ref) {
		p.follow(strings.ToLower(p.ref))
		return p, nil
	}
	p.finder = newRunFinder(a, p.ref, p.found)
	return p, nil
}

// found goes on with the run that was meant.
func (p *runPage) found(id string) {
	if p.run != nil {
		p.run.Close()
	}
	p.follow(id)
	if p.shown {
		p.Show()
	}
}

// follow begins with a run whose id is known.
func (p *runPage) follow(id string) {
	p.run = model.NewRun(p.app.link, id)
	p.run.Changed = p.changed
	if p.tabs == nil {
		p.tabs = newRunTabs(p)
	}
}

// changed notes that what is worked out is out of date. What was taken for a run id may be an
// external id that looks like one.
func (p *runPage) changed() {
	for _, t := range p.tabs {
		t.Changed()
	}
	run := p.run.Workflow()
	p.open = run != nil && !render.Ended(run.GetStatus()) &&
		slices.ContainsFunc(p.run.Lanes(), func(l model.Lane) bool { return l.Open })
	if e := p.run.Explanation(); e != p.explained {
		p.explained, p.asked = e, p.app.now()
	}
	if p.run.Gone() && run == nil && p.finder == nil {
		p.finder = newRunFinder(p.app, p.ref, p.found)
		p.finder.start()
	}
}

// workflow is the run as far as it is known; nil until it has come.
func (p *runPage) workflow() *kagziv1.Workflow {
	if p.run == nil {
		return nil
	}
	return p.run.Workflow()
}

func (p *runPage) Name() string { return "run" }

// Crumb names the run as people know it.
func (p *runPage) Crumb() string {
	r := p.workflow()
	if r == nil {
		return "run " + format.ShortID(p.ref)
	}
	return "run " + runTitle(r)
}

// runTitle is what a run is called: its external id, or the ends of its run id.
func runTitle(r *kagziv1.Workflow) string {
	if r.GetExternalId() != "" {
		return r.GetExternalId()
	}
	return format.ShortID(r.GetRunId())
}

func (p *runPage) Title() string {
	r := p.workflow()
	if r == nil {
		return "Run " + format.ShortID(p.ref)
	}
	return r.GetWorkflowType() + "  " + runTitle(r)
}

// Status says how the tab shows what it shows.
func (p *runPage) Status() string {
	if p.workflow() == nil {
		return ""
	}
	return p.tabs[p.tab].Status()
}

func (p *runPage) Show() {
	p.shown = true
	if p.finder != nil {
		p.finder.start()
	}
	if p.run != nil {
		p.run.SetParts(p.tabs[p.tab].Parts())
		p.run.Show()
		p.tabs[p.tab].Show()
	}
}

func (p *runPage) Hide() {
	p.shown = false
	if p.finder != nil {
		p.finder.stop()
	}
	if p.run != nil {
		p.tabs[p.tab].Hide()
		p.run.Hide()
	}
}

func (p *runPage) Close() {
	if p.finder != nil {
		p.finder.close()
	}
	if p.run != nil {
		for _, t := range p.tabs {
			t.Close()
		}
		p.run.Close()
	}
}

// Refresh reads everything again, and looks again for a run that was not there.
func (p *runPage) Refresh() {
	if p.finder != nil {
		p.finder.start()
	}
	if p.run != nil {
		p.run.Refresh()
	}
}

// Failure is why there is no run to show.
func (p *runPage) Failure() error {
	switch {
	case p.run != nil && p.run.Err() == nil:
		return nil
	case p.finder != nil && p.finder.err != nil:
		return p.finder.err
	case p.run != nil:
		return p.run.Err()
	case p.app.link.State().Down():
		return p.app.link.State().Err
	}
	return nil
}

// atHome says that the run is of the namespace that is worked in: its server knows it in no other,
// which does not mean that it is gone.
func (p *runPage) atHome() bool {
	of := p.run.Workflow().GetNamespace()
	return of == "" || of == p.app.link.Namespace()
}

// Banner says that what is seen is all that is left of the run, or that the run is not followed.
func (p *runPage) Banner() string {
	switch {
	case p.run == nil || p.run.Workflow() == nil:
		return ""
	case !p.atHome():
		of := p.run.Workflow().GetNamespace()
		return fmt.Sprintf("this run is of namespace %q and is not followed from this one; :ns %s goes back to it", of,
			of)
	case p.run.Gone():
		return "this run is not on the server any more; what was read of it stays here until it is closed"
	case p.run.State().Down():
		return "this run is not followed at the moment: " + sentence(p.run.State().Err)
	}
	return ""
}

// Pace is a second while a step grows.
func (p *runPage) Pace() time.Duration {
	if p.open {
		return time.Second
	}
	return slowPace
}

// explainEvery is how old an explanation may become. It says how long something has been waited
// for, which is not notified again.
const explainEvery = 15 * time.Second

func (p *runPage) Draw(c widget.Canvas) {
	p.left, p.top = c.X, c.Y
	if p.workflow() == nil {
		drawMiddle(c, widget.TextLine("Reading …", render.Dim))
		return
	}
	if p.explained != nil && p.shown && !p.app.frozen && p.app.now().Sub(p.asked) >= explainEvery {
		p.asked = p.app.now()
		p.run.SetParts(p.tabs[p.tab].Parts()) // which reads the explanation too
	}
	rows := p.drawHead(c)
	p.drawBar(c.Part(0, rows, c.W, 1), rows)
	p.tabs[p.tab].Draw(c.Part(0, rows+1, c.W, c.H-rows-1))
}

// drawMiddle draws lines where one looks first in a part of the screen in which there is nothing else.
func drawMiddle(c widget.Canvas, lines ...widget.Line) {
	top := max((c.H-len(lines))/3, 0)
	for i, line := range lines {
		if top+i < c.H {
			line.Draw(c.Part(max((c.W-line.Width())/2, 0), top+i, c.W, 1))
		}
	}
}

func (p *runPage) Key(event *tcell.EventKey) bool {
	return p.workflow() != nil && p.tabs[p.tab].Key(event)
}

// Mouse chooses tabs by their names; below them it is the tab's.
func (p *runPage) Mouse(action tview.MouseAction, event *tcell.EventMouse) bool {
	if p.workflow() == nil {
		return false
	}
	if action == tview.MouseLeftClick {
		x, y := event.Position()
		for i, place := range p.bar {
			if y-p.top == place.row && x-p.left >= place.from && x-p.left < place.to {
				p.choose(i)
				return true
			}
		}
	}
	return p.tabs[p.tab].Mouse(action, event)
}

// SelectedStep is the step under the cursor of the timeline or the tree; ok is false when there is none.
func (p *runPage) SelectedStep() (name string, ok bool) {
	if p.workflow() == nil {
		return "", false
	}
	return p.tabs[p.tab].Step()
}

// fromStep is the step that a retry begins at: the one under the cursor, else the one that failed last.
func (p *runPage) fromStep() string {
	if name, ok := p.SelectedStep(); ok {
		return name
	}
	if p.workflow() == nil {
		return ""
	}
	for _, l := range slices.Backward(p.run.Lanes()) {
		if l.Failed {
			return l.Name
		}
	}
	return ""
}

// targets are the runs that an action is for: this one.
func (p *runPage) targets() []*kagziv1.Workflow {
	if r := p.workflow(); r != nil {
		return []*kagziv1.Workflow{r}
	}
	return nil
}

const (
	leastPrefix = 8                // characters of a run id that are enough to look for it
	findTimeout = 10 * time.Second // for all calls that it takes
	findMost    = 1000             // runs that begin alike
)

// runFinder finds the run that a person means. When the server cannot be asked it tries again as soon as it can.
type runFinder struct {
	app   *App
	ref   string
	found func(id string)
	err   error // there is no such run, or more than one

	ctx   context.Context
	close func() // ends it and waits for what is under way
	group sync.WaitGroup
	drop  context.CancelFunc // of the call that is under way
	over  bool
	shown bool
}

func newRunFinder(a *App, ref string, found func(id string)) *runFinder {
	f := &runFinder{app: a, ref: ref, found: found}
	ctx, cancel := context.WithCancel(a.ctx)
	f.ctx = ctx
	leave := a.link.Subscribe(func(c model.Change) {
		if c.Back && f.shown {
			f.start()
		}
	})
	f.close = func() {
		leave()
		cancel()
		f.group.Wait()
	}
	return f
}

// start looks for the run, unless it has been found or the server cannot be asked now.
func (f *runFinder) start() {
	f.shown = true
	if f.over || f.drop != nil || !f.app.link.Ready() {
		return
	}
	ctx, cancel := context.WithTimeout(f.ctx, findTimeout)
	f.drop = cancel
	api, namespace := f.app.link.API(), f.app.link.Namespace()
	f.group.Go(func() {
		id, err := findRun(ctx, api, namespace, f.ref)
		f.app.post(func() {
			if ctx.Err() == context.Canceled {
				return
			}
			cancel()
			f.drop, f.err = nil, err
			if err == nil {
				f.over = true
				f.found(id)
			}
		})
	})
}

// stop asks no more until start.
func (f *runFinder) stop() {
	f.shown = false
	if f.drop != nil {
		f.drop()
		f.drop = nil
	}
}

// findRun is the id of the run with an external id, or of the only one whose run id begins so. The
// short form of an id, which has its end too, is known as well.
func findRun(ctx context.Context, api tui.API, namespace, ref string) (string, error) {
	answer, err := api.GetWorkflowByExternalId(
		ctx, &kagziv1.GetWorkflowByExternalIdRequest{Namespace: namespace, ExternalId: ref})
	switch status.Code(err) {
	case codes.OK:
		return answer.GetWorkflow().GetRunId(), nil
	case codes.NotFound, codes.InvalidArgument: // what cannot be an external id may still be the beginning of an id
	default:
		return "", err
	}
	head, tail, _ := strings.Cut(strings.ToLower(ref), "…")
	if len(head) < leastPrefix || isRunID(head) || strings.Trim(head, "0123456789abcdef-") != "" {
		return "", status.Errorf(codes.NotFound, "no such run in %q, by id or external id: %q", namespace, ref)
	}
	list, err := api.ListWorkflows(ctx, &kagziv1.ListWorkflowsRequest{
		Namespace: namespace, Search: &head, Page: &kagziv1.PageRequest{PageSize: findMost}})
	if err != nil {
		return "", err
	}
	var ids []string
	for _, r := range list.GetWorkflows() {
		if strings.HasPrefix(r.GetRunId(), head) && strings.HasSuffix(r.GetRunId(), tail) {
			ids = append(ids, r.GetRunId())
		}
	}
	switch {
	case len(ids) == 0:
		return "", status.Errorf(codes.NotFound, "no such run in %q, by external id or by the beginning of an id: %q",
			namespace, ref)
	case len(ids) > 1:
		return "", status.Errorf(codes.FailedPrecondition,
			"%s runs have an id that begins with %q: give more of it, up to %s or %s", manyOf(len(ids)), ref,
			ids[0], ids[1])
	}
	return ids[0], nil
}

func manyOf(n int) string {
	if n >= findMost {
		return fmt.Sprintf("%d or more", findMost)
	}
	return fmt.Sprint(n)
}

// isRunID says whether text has the form of a run id.
func isRunID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range []byte(text) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if dash != (c == '-') || !dash && !hex {
			return false
		}
	}
	return true
}
