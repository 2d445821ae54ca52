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
	refetchEvery = 250 * time.Millisecond // between two readings of what is loaded, at least
	countEvery   = 15 * time.Second       // between two counts, at least: a count costs the server a scan
	freshFor     = time.Second            // how long a row stands out after it changed
	edge         = pageSize / 2           // rows before an end of what is loaded at which more is asked for
	scanMost     = 10 * pageSize          // runs that are read for a local filter before the person asks for more
	aboveMost    = 999                    // new runs that are counted
)

// Runs is the list of runs that a filter chooses, newest first, of any length: pages are loaded as
// they come into view and let go when there are too many. Make it, then Show it. Row numbers count
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
	scanned  int // runs that were read
	allowed  int // how many may be, for a filter that the server cannot apply
	above    map[string]*kagziv1.Workflow
	many     bool // there are more above than are counted
	topStale bool
	total    total
	fresh    fresh
	sorted   sorted

	drop      func()                       // of the call under way
	touched   map[string]*kagziv1.Workflow // runs that the link named since it began: newer than its answer may be
	refetched time.Time                    // when something was last read again
	wait      *timer                       // until the next may be
	failed    bool                         // the last call went wrong: wait for a sign of life
}

// jump is where the list is to be read from next.
type jump uint8

const (
	noJump jump = iota
	toHead
	toEnd
)

// NewRuns makes the list of runs that a filter chooses; the empty text chooses all. Errors are about the filter.
func NewRuns(l *Link, text string) (*Runs, error) {
	r := &Runs{atTop: true, last: pageSize}
	r.base = join(l, r.heard)
	if err := r.SetFilter(text); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// SetFilter chooses other runs, or the same ones from a new beginning. After an error the old filter holds.
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

// restart forgets what is loaded and reads from the head.
func (r *Runs) restart() {
	r.abandon()
	r.window, r.loaded, r.err, r.failed = window{}, false, nil, false
	r.above, r.many, r.topStale, r.total, r.fresh = nil, false, false, total{}, fresh{}
	r.sorted.dirty, r.scanned, r.allowed, r.jump = true, 0, scanMost, toHead
	r.change()
	r.pump()
}

// Filter is what chooses the runs, as text.
func (r *Runs) Filter() string { return r.short.String() }

// Local is the part of the filter that is only matched on the runs that were read; empty when the
// server applies all of it.
func (r *Runs) Local() string { return r.short.Local() }

// Scanned is how many runs were read, those that a local filter left out among them.
func (r *Runs) Scanned() int { return r.scanned }

// Whole says that all runs were read, so that a local filter left out none unseen.
func (r *Runs) Whole() bool { return r.loaded && r.window.top() && r.window.end() }

// Show keeps the list up to date from now on.
func (r *Runs) Show() {
	r.shown = true
	r.pump()
}

// Hide keeps the list as it is until the next Show.
func (r *Runs) Hide() {
	r.shown = false
	r.abandon()
	r.wait.stop()
	r.wait = nil
	r.spoil()
}

// Refresh begins anew, with relative times counted from now.
func (r *Runs) Refresh() {
	if query, err := r.short.Compile(r.link.Namespace(), r.link.Now()); err == nil {
		r.query = query
	}
	r.restart()
}

// Len is how many rows are known: those that are loaded and those before them.
func (r *Runs) Len() int {
	if r.sorted.on() {
		return len(r.sorted.runs(&r.window))
	}
	return r.window.offset + r.window.len()
}

// First is the first row that is loaded.
func (r *Runs) First() int {
	if r.sorted.on() {
		return 0
	}
	return r.window.offset
}

// More says that runs follow behind the last known row.
func (r *Runs) More() bool { return r.loaded && !r.window.end() }

// Loaded says that the list has been read.
func (r *Runs) Loaded() bool { return r.loaded }

// Loading says that a call is under way.
func (r *Runs) Loading() bool { return r.drop != nil }

// Err is why nothing could be read yet; nil when something could.
func (r *Runs) Err() error { return r.failure(r.loaded) }

// Stale is why the rows are not as new as they should be; nil when they are.
func (r *Runs) Stale() error { return r.err }

// Total is how many runs there are. about: the number is that of a while ago, or only of what was read so far.
func (r *Runs) Total() (n int64, about bool) {
	if r.window.top() && r.window.end() {
		return int64(r.window.len() + len(r.above)), r.many
	}
	if r.query.Keep != nil || !r.total.known {
		return int64(r.window.offset + r.window.len()), true
	}
	return r.total.n, r.total.about
}

// Row is a run by its row; ok is false while it is not loaded.
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

// Find is the row of a run.
func (r *Runs) Find(id string) (row int, ok bool) {
	if r.sorted.on() {
		return r.sorted.find(&r.window, id)
	}
	return r.window.find(id)
}

// Get is a loaded run by its id; nil when it is not loaded.
func (r *Runs) Get(id string) *kagziv1.Workflow { return r.window.get(id) }

// All are the loaded runs in the order in which they are shown.
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

// Fresh says that a row changed within the last second.
func (r *Runs) Fresh(id string) bool { return r.fresh.is(id, r.tasks.now()) }

// View says which rows are on the screen, last excluded. What lies near them is loaded. Call it after each draw.
func (r *Runs) View(first, last int) {
	r.first, r.last = first, max(last, first)
	r.pump()
}

// LoadMore goes on reading for a filter of which the server cannot apply all: by itself the list
// stops every 2,000 runs.
func (r *Runs) LoadMore() {
	r.allowed = r.scanned + scanMost
	r.pump()
}

// Head goes to the newest run. Rows are those of the old place until they are loaded.
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

// AtTop says whether the newest row is on the screen and new runs may push it down. While it is not
// they are counted only.
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

// NewAbove is how many new runs are not among the rows because the newest row is not on the screen;
// more: at least so many.
func (r *Runs) NewAbove() (n int, more bool) { return len(r.above), r.many }

// merge takes the new runs among the rows.
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

// heard deals with what the link tells.
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

// spoil notes that everything may have changed.
func (r *Runs) spoil() {
	for _, p := range r.window.pages {
		p.stale = true
	}
	r.topStale = true
}

// apply deals with a run as it stands now and says whether the rows are others.
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

// outdated says that a run was told as it stood before it ended, after its end is known: an end is for good.
func outdated(run, known *kagziv1.Workflow) bool {
	return render.Ended(known.GetStatus()) && !render.Ended(run.GetStatus())
}

// holdAbove counts a new run, or no more.
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

// bold has the screen drawn again when what stands out does so no more.
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

// abandon drops the call under way.
func (r *Runs) abandon() {
	if r.drop != nil {
		r.drop()
		r.drop = nil
	}
	r.touched = nil
}

// fetch asks for a page; then gets it when it comes.
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
				r.jump = toHead // the server knows the place no more
			default:
				r.failed = true
				r.spoil() // what was to be read again still is
			}
			r.change()
			r.pump()
		})
}

// again tells the list what the link told while an answer was under way that may not know of it.
func (r *Runs) again(touched map[string]*kagziv1.Workflow) {
	n := r.total.n
	for _, run := range touched {
		r.apply(run)
	}
	if r.total.at != r.tasks.now() { // they were counted when they were told
		r.total.n = n
	}
}

// pageOf makes a page of an answer.
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
