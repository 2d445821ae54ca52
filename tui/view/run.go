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
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

// runPage shows one run: the most wanted facts in a header, and below it one of seven tabs.
type runPage struct {
	app    *App
	ref    string     // as typed
	finder *runFinder // finds the run that ref means; nil if ref was a full id
	run    *model.Run // nil until found
	tabs   []runTab
	tab    int
	shown  bool

	open      bool // a step is still open
	explained *kagziv1.ExplainWorkflowResponse
	asked     time.Time // when the explanation arrived
	bar       []tabPlace
	top       int // row of the page's first cell on the screen
	left      int
}

// openRun opens a run by its id, an id prefix, or its external id.
func openRun(a *App, args []string) (page, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("run takes one argument: a run id, an id prefix or an external id")
	}
	p := &runPage{app: a, ref: args[0]}
	if isRunID(p.ref) {
		p.follow(strings.ToLower(p.ref))
		return p, nil
	}
	p.finder = newRunFinder(a, p.ref, p.found)
	return p, nil
}

// found continues with the run that was found.
func (p *runPage) found(id string) {
	if p.run != nil {
		p.run.Close()
	}
	p.follow(id)
	if p.shown {
		p.Show()
	}
}

// follow starts to follow a run by its id.
func (p *runPage) follow(id string) {
	p.run = model.NewRun(p.app.link, id)
	p.run.Changed = p.changed
	if p.tabs == nil {
		p.tabs = newRunTabs(p)
	}
}

// changed marks derived data as stale. An argument that looked like a run id may turn out to be an
// external id.
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

// workflow returns the run as far as it is loaded; nil before that.
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

// runTitle returns the external id of a run, or the two ends of its run id.
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

// Status shows the state of the tab.
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

// Refresh reloads everything, and searches again for a run that was not found.
func (p *runPage) Refresh() {
	if p.finder != nil {
		p.finder.start()
	}
	if p.run != nil {
		p.run.Refresh()
	}
}

// Failure returns why there is no run to show.
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

// atHome reports whether the run belongs to the current namespace. The server finds it in no other,
// which does not mean that it is gone.
func (p *runPage) atHome() bool {
	of := p.run.Workflow().GetNamespace()
	return of == "" || of == p.app.link.Namespace()
}

// Banner says that the run is gone from the server, or not followed.
func (p *runPage) Banner() string {
	switch {
	case p.run == nil || p.run.Workflow() == nil:
		return ""
	case !p.atHome():
		of := p.run.Workflow().GetNamespace()
		return fmt.Sprintf("this run belongs to namespace %q and is not updated here; :ns %s switches back", of,
			of)
	case p.run.Gone():
		return "this run was deleted on the server; this page keeps what was loaded until it is closed"
	case p.run.State().Down():
		return "this run is not updated at the moment: " + sentence(p.run.State().Err)
	}
	return ""
}

// Pace is one second while a step is running.
func (p *runPage) Pace() time.Duration {
	if p.open {
		return time.Second
	}
	return slowPace
}

// explainEvery is the highest age of an explanation. It contains durations, and no notification
// updates those.
const explainEvery = 15 * time.Second

func (p *runPage) Draw(c widget.Canvas) {
	p.left, p.top = c.X, c.Y
	if p.workflow() == nil {
		drawMiddle(c, widget.TextLine("Reading …", render.Dim))
		return
	}
	if p.explained != nil && p.shown && !p.app.frozen && p.app.now().Sub(p.asked) >= explainEvery {
		p.asked = p.app.now()
		p.run.SetParts(p.tabs[p.tab].Parts()) // which loads the explanation too
	}
	rows := p.drawHead(c)
	p.drawBar(c.Part(0, rows, c.W, 1), rows)
	p.tabs[p.tab].Draw(c.Part(0, rows+1, c.W, c.H-rows-1))
}

// drawMiddle draws lines near the middle of an otherwise empty area.
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

// Mouse selects tabs by their names; below them the tab handles it.
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

// SelectedStep returns the step under the cursor of the tab; ok is false if there is none.
func (p *runPage) SelectedStep() (name string, ok bool) {
	if p.workflow() == nil {
		return "", false
	}
	return p.tabs[p.tab].Step()
}

// fromStep returns the step that a retry starts at: the one under the cursor, or else the last that
// failed.
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

// targets returns the runs that an action applies to: this one.
func (p *runPage) targets() []*kagziv1.Workflow {
	if r := p.workflow(); r != nil {
		return []*kagziv1.Workflow{r}
	}
	return nil
}

const (
	leastPrefix = 8                // shortest id prefix to search for
	findTimeout = 10 * time.Second // for all calls of a search
	findMost    = 1000             // most runs with one prefix
)

// runFinder finds the run that a person names. If the server is unreachable it retries as soon as
// it is connected.
type runFinder struct {
	app   *App
	ref   string
	found func(id string)
	err   error // no such run, or more than one

	ctx   context.Context
	close func() // stops it and waits for open calls
	group sync.WaitGroup
	drop  context.CancelFunc // cancels the open call
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

// start searches for the run, unless it is found or the server is unreachable.
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

// stop cancels the search until start.
func (f *runFinder) stop() {
	f.shown = false
	if f.drop != nil {
		f.drop()
		f.drop = nil
	}
}

// findRun returns the id of the run with an external id, or of the only one whose id has a prefix.
// It accepts the short form of an id, with both ends, too.
func findRun(ctx context.Context, api tui.API, namespace, ref string) (string, error) {
	answer, err := api.GetWorkflowByExternalId(
		ctx, &kagziv1.GetWorkflowByExternalIdRequest{Namespace: namespace, ExternalId: ref})
	switch status.Code(err) {
	case codes.OK:
		return answer.GetWorkflow().GetRunId(), nil
	case codes.NotFound, codes.InvalidArgument: // an id prefix may be an invalid external id
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
		return "", status.Errorf(codes.NotFound, "no such run in %q, by external id or id prefix: %q",
			namespace, ref)
	case len(ids) > 1:
		return "", status.Errorf(codes.FailedPrecondition,
			"%s runs have an id that begins with %q: type more of it, up to %s or %s", manyOf(len(ids)), ref,
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

// isRunID reports whether text has the form of a run id.
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
