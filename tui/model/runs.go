package model

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/render"
)

const (
	refetchEvery = 250 * time.Millisecond // least time between two reloads
	countEvery   = 15 * time.Second       // least time between two counts: a count costs the server a scan
	freshFor     = time.Second            // how long a changed row is highlighted
	edge         = pageSize / 2           // rows before an end of the loaded ones at which more are loaded
	scanMost     = 10 * pageSize          // runs loaded for a local filter before the person must ask for more
	aboveMost    = 999                    // new runs to count
)

// Runs is the list of runs that match a filter, newest first, of any length. Pages are loaded as
// they come into view, and distant ones are dropped. Create it, then call Show. Row numbers count
// from the newest run.
type Runs struct {
	base
	short filter.Short
	query filter.Query

	window   window
	loaded   bool
	jump     jump
	first    int // rows on the screen
	last     int
	atTop    bool
	scanned  int // runs loaded
	allowed  int // limit of scanned, for a filter that the server cannot apply
	above    map[string]*kagziv1.Workflow
	many     bool // there are more above than were counted
	topStale bool
	total    total
	fresh    fresh
	sorted   sorted

	drop      func()                       // cancels the call in progress
	touched   map[string]*kagziv1.Workflow // runs that changed since the call started: newer than its answer may be
	refetched time.Time                    // last reload
	wait      *timer                       // until the next reload
	failed    bool                         // the last call failed: wait for the next message of the stream
}

// jump says where the list is loaded from next.
type jump uint8

const (
	noJump jump = iota
	toHead
	toEnd
)

// NewRuns returns the list of runs that match a filter; an empty filter matches all. Errors are
// about the filter.
func NewRuns(l *Link, text string) (*Runs, error) {
	r := &Runs{atTop: true, last: pageSize}
	r.base = join(l, r.heard)
	if err := r.SetFilter(text); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// SetFilter switches to another filter, or reloads with the same one. After an error the old filter
// stays.
func (r *Runs) SetFilter(text string) error {
	short, err := filter.ParseShort(text)
	if err != nil {
		return err
	}
	query, err := short.Compile(r.link.Namespace(), r.link.Now())
	if err != nil {
		return err
	}
	r.short, r.query = short, query
	r.restart()
	return nil
}

// restart drops the loaded rows and loads from the newest run.
func (r *Runs) restart() {
	r.abandon()
	r.window, r.loaded, r.err, r.failed = window{}, false, nil, false
	r.above, r.many, r.topStale, r.total, r.fresh = nil, false, false, total{}, fresh{}
	r.sorted.dirty, r.scanned, r.allowed, r.jump = true, 0, scanMost, toHead
	r.change()
	r.pump()
}

// Filter returns the filter as text.
func (r *Runs) Filter() string { return r.short.String() }

// Local returns the part of the filter that is matched only on loaded runs; empty if the server
// applies all of it.
func (r *Runs) Local() string { return r.short.Local() }

// Scanned returns how many runs were loaded, including those that a local filter excludes.
func (r *Runs) Scanned() int { return r.scanned }

// Whole reports whether all runs were loaded, so a local filter missed none.
func (r *Runs) Whole() bool { return r.loaded && r.window.top() && r.window.end() }

// Show starts to keep the list up to date.
func (r *Runs) Show() {
	r.shown = true
	r.pump()
}

// Hide stops updates until the next Show.
func (r *Runs) Hide() {
	r.shown = false
	r.abandon()
	r.wait.stop()
	r.wait = nil
	r.spoil()
}

// Refresh reloads the list; relative times in the filter count from now.
func (r *Runs) Refresh() {
	if query, err := r.short.Compile(r.link.Namespace(), r.link.Now()); err == nil {
		r.query = query
	}
	r.restart()
}

// Len returns how many rows are known: the loaded ones and those before them.
func (r *Runs) Len() int {
	if r.sorted.on() {
		return len(r.sorted.runs(&r.window))
	}
	return r.window.offset + r.window.len()
}

// First returns the first loaded row.
func (r *Runs) First() int {
	if r.sorted.on() {
		return 0
	}
	return r.window.offset
}

// More reports whether runs follow after the last known row.
func (r *Runs) More() bool { return r.loaded && !r.window.end() }

// Loaded reports whether the list was loaded.
func (r *Runs) Loaded() bool { return r.loaded }

// Loading reports whether a call is in progress.
func (r *Runs) Loading() bool { return r.drop != nil }

// Err returns why nothing was loaded yet; nil if something was.
func (r *Runs) Err() error { return r.failure(r.loaded) }

// Stale returns the error of the latest call; nil if it worked.
func (r *Runs) Stale() error { return r.err }

// Total returns how many runs there are. about means that the number is old, or covers only the
// loaded runs.
func (r *Runs) Total() (n int64, about bool) {
	if r.window.top() && r.window.end() {
		return int64(r.window.len() + len(r.above)), r.many
	}
	if r.query.Keep != nil || !r.total.known {
		return int64(r.window.offset + r.window.len()), true
	}
	return r.total.n, r.total.about
}

// Row returns the run of a row; ok is false if it is not loaded.
func (r *Runs) Row(i int) (run *kagziv1.Workflow, ok bool) {
	if r.sorted.on() {
		runs := r.sorted.runs(&r.window)
		if i < 0 || i >= len(runs) {
			return nil, false
		}
		return runs[i], true
	}
	run = r.window.at(i)
	return run, run != nil
}

// Find returns the row of a run.
func (r *Runs) Find(id string) (row int, ok bool) {
	if r.sorted.on() {
		return r.sorted.find(&r.window, id)
	}
	return r.window.find(id)
}

// Get returns a loaded run by its id; nil if it is not loaded.
func (r *Runs) Get(id string) *kagziv1.Workflow { return r.window.get(id) }

// All returns the loaded runs in display order.
func (r *Runs) All() []*kagziv1.Workflow {
	if r.sorted.on() {
		return r.sorted.runs(&r.window)
	}
	var all []*kagziv1.Workflow
	for _, p := range r.window.pages {
		all = append(all, p.runs...)
	}
	return all
}

// Fresh reports whether a row changed within the last second.
func (r *Runs) Fresh(id string) bool { return r.fresh.is(id, r.tasks.now()) }

// View sets the rows on the screen, last excluded, and loads the rows near them. Call it after each
// draw.
func (r *Runs) View(first, last int) {
	r.first, r.last = first, max(last, first)
	r.pump()
}

// LoadMore continues to load for a filter that the server cannot apply in full: the list stops by
// itself every 2,000 runs.
func (r *Runs) LoadMore() {
	r.allowed = r.scanned + scanMost
	r.pump()
}

// Head goes to the newest run. The old rows stay until it is loaded.
func (r *Runs) Head() {
	r.atTop = true
	if r.window.top() && !r.many {
		r.merge()
		r.topStale = true
	} else {
		r.goTo(toHead)
	}
	r.pump()
}

// End goes to the oldest run.
func (r *Runs) End() {
	if r.window.end() || r.sorted.on() {
		return
	}
	r.atTop = false
	r.goTo(toEnd)
	r.pump()
}

func (r *Runs) goTo(j jump) {
	r.abandon()
	r.jump = j
}

// AtTop says whether the newest row is on the screen, so that new runs may push rows down.
// Otherwise they are only counted.
func (r *Runs) AtTop(at bool) {
	if at == r.atTop {
		return
	}
	r.atTop = at
	if !at {
		return
	}
	if r.many {
		r.goTo(toHead)
	}
	if len(r.above) > 0 {
		r.merge()
		r.topStale = true
	}
	r.pump()
}

// NewAbove returns how many new runs are not among the rows, because the newest row is not on the
// screen; more means at least so many.
func (r *Runs) NewAbove() (n int, more bool) { return len(r.above), r.many }

// merge adds the new runs to the rows.
func (r *Runs) merge() {
	for _, run := range r.above {
		r.window.put(run)
		r.fresh.touch(run.GetRunId(), r.tasks.now())
	}
	if len(r.above) > 0 {
		r.above, r.sorted.dirty = nil, true
		r.bold()
		r.change()
	}
}

// heard handles a change from the link.
func (r *Runs) heard(c Change) {
	if c.Moved {
		r.query.Request = proto.CloneOf(r.query.Request)
		r.query.Request.Namespace = r.link.Namespace()
		r.restart()
		return
	}
	changed := false
	for _, run := range c.Runs {
		changed = r.apply(run) || changed
	}
	if len(c.Runs) > 0 || c.RunsChanged || c.Back {
		r.total.changed = true
	}
	if c.RunsChanged || c.Back {
		r.total.about = true
		r.spoil()
	}
	if c.Beat || c.Back {
		r.failed = false
	}
	if changed {
		r.sorted.dirty = true
		r.bold()
		r.change()
	}
	r.pump()
}

// spoil marks everything as possibly changed.
func (r *Runs) spoil() {
	for _, p := range r.window.pages {
		p.stale = true
	}
	r.topStale = true
}

// apply handles the current state of a run and reports whether the rows changed.
func (r *Runs) apply(run *kagziv1.Workflow) bool {
	id := run.GetRunId()
	if r.touched != nil {
		r.touched[id] = run
	}
	if !r.loaded || !r.window.covers(id) {
		return false
	}
	matches := r.query.Matches(run)
	if r.window.above(id) && !r.atTop {
		before := len(r.above)
		r.holdAbove(run, matches)
		return len(r.above) != before
	}
	old := r.window.get(id)
	switch {
	case outdated(run, old):
		return false
	case !matches:
		if r.window.remove(id) {
			r.total.add(-1)
			return true
		}
		return false
	case proto.Equal(old, run):
		return false
	}
	r.window.put(run)
	if old == nil {
		r.total.add(1)
	}
	r.fresh.touch(id, r.tasks.now())
	return true
}

// outdated reports whether a message shows a run before its end although the end is known: an end
// is final.
func outdated(run, known *kagziv1.Workflow) bool {
	return render.Ended(known.GetStatus()) && !render.Ended(run.GetStatus())
}

// holdAbove counts a new run, or stops counting it.
func (r *Runs) holdAbove(run *kagziv1.Workflow, matches bool) {
	switch {
	case !matches:
		delete(r.above, run.GetRunId())
	case len(r.above) >= aboveMost && r.above[run.GetRunId()] == nil:
		r.many = true
	default:
		if r.above == nil {
			r.above = map[string]*kagziv1.Workflow{}
		}
		r.above[run.GetRunId()] = run
	}
}

// bold redraws the screen when a highlight ends.
func (r *Runs) bold() {
	if r.fresh.timer == nil {
		r.fresh.timer = r.tasks.after(freshFor, func() {
			r.fresh.timer = nil
			r.change()
			if r.fresh.any(r.tasks.now()) {
				r.bold()
			}
		})
	}
}

// abandon cancels the call in progress.
func (r *Runs) abandon() {
	if r.drop != nil {
		r.drop()
		r.drop = nil
	}
	r.touched = nil
}

// fetch loads a page and passes it to then.
func (r *Runs) fetch(request *kagziv1.PageRequest, then func(*page)) {
	query := proto.CloneOf(r.query.Request)
	query.Page = request
	r.touched = map[string]*kagziv1.Workflow{}
	r.drop = ask(r.tasks, func(ctx context.Context) (*kagziv1.ListWorkflowsResponse, error) {
		return r.link.api.ListWorkflows(ctx, query)
	},
		func(answer *kagziv1.ListWorkflowsResponse, err error) {
			touched := r.touched
			r.drop, r.touched, r.err = nil, nil, err
			switch {
			case err == nil:
				if request.GetIncludeTotalCount() {
					r.total = total{n: answer.GetPage().GetTotalCount(), known: true, at: r.tasks.now()}
				}
				then(r.pageOf(request, answer))
				r.again(touched)
				r.sorted.dirty = true
			case status.Code(err) == codes.InvalidArgument && request.GetPageToken() != "" && r.loaded:
				r.jump = toHead // the server does not know the token any more
			default:
				r.failed = true
				r.spoil() // what was to be reloaded still is
			}
			r.change()
			r.pump()
		})
}

// again applies the changes that arrived during a call, because its answer may be older.
func (r *Runs) again(touched map[string]*kagziv1.Workflow) {
	n := r.total.n
	for _, run := range touched {
		r.apply(run)
	}
	if r.total.at != r.tasks.now() { // they were counted when they arrived
		r.total.n = n
	}
}

// pageOf returns an answer as a page.
func (r *Runs) pageOf(request *kagziv1.PageRequest, answer *kagziv1.ListWorkflowsResponse) *page {
	runs := answer.GetWorkflows()
	p := &page{
		request: &kagziv1.PageRequest{PageSize: pageSize, PageToken: request.GetPageToken(), Last: request.GetLast()},
		next:    answer.GetPage().GetNextPageToken(), prev: answer.GetPage().GetPrevPageToken(),
	}
	if n := len(runs); n > 0 {
		p.high, p.low = runs[0].GetRunId(), runs[n-1].GetRunId()
	}
	for _, run := range runs {
		if r.query.Keep == nil || r.query.Keep(run) {
			p.runs = append(p.runs, run)
		}
	}
	return p
}
