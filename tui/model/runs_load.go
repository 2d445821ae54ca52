package model

import (
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// pump starts the next call that the list needs, one at a time. In order: the target of a jump,
// missing rows around the screen, stale rows on it, new runs, the total.
func (r *Runs) pump() {
	if !r.shown || r.drop != nil || r.failed || !r.link.Ready() {
		return
	}
	switch {
	case r.jump != noJump:
		r.leap()
	case !r.loaded:
		r.jump = toHead
		r.leap()
	case r.needsNext():
		r.loadNext()
	case r.needsPrev():
		r.loadPrev()
	default:
		r.freshen()
	}
}

// leap loads from the newest or the oldest run.
func (r *Runs) leap() {
	jump := r.jump
	r.fetch(&kagziv1.PageRequest{PageSize: pageSize, IncludeTotalCount: r.query.Keep == nil, Last: jump == toEnd},
		func(p *page) {
			p.backward = jump == toEnd
			r.jump, r.loaded = noJump, true
			r.window = window{pages: []*page{p}}
			r.above, r.many, r.topStale, r.scanned = nil, false, false, pageSize
			if jump == toEnd && p.prev != "" {
				r.window.offset = max(int(r.total.n)-len(p.runs), 0)
			}
			r.first, r.last = r.window.offset, r.window.offset+r.window.len()
			if jump == toHead {
				r.last = min(r.last, edge-1) // until View says otherwise
			}
		})
}

// needsNext reports whether the page after the last one is needed.
func (r *Runs) needsNext() bool {
	w := &r.window
	switch {
	case w.end():
		return false
	case r.sorted.on():
		return w.top() && len(w.pages) < sortMost/pageSize
	case r.query.Keep != nil && r.scanned >= r.allowed:
		return false
	}
	return r.last > w.offset+w.len()-edge
}

// needsPrev reports whether the page before the first one is needed.
func (r *Runs) needsPrev() bool {
	if r.sorted.on() || r.window.top() || r.query.Keep != nil && r.scanned >= r.allowed {
		return false
	}
	return r.first < r.window.offset+edge
}

func (r *Runs) loadNext() {
	token := r.window.pages[len(r.window.pages)-1].next
	r.fetch(&kagziv1.PageRequest{PageSize: pageSize, PageToken: token}, func(p *page) {
		r.scanned += pageSize
		r.window.append(p)
		r.window.trim(r.first)
	})
}

func (r *Runs) loadPrev() {
	token := r.window.pages[0].prev
	r.fetch(&kagziv1.PageRequest{PageSize: pageSize, PageToken: token}, func(p *page) {
		r.scanned += pageSize
		p.backward = true
		before := r.window.offset
		r.window.prepend(p)
		if r.window.offset+len(p.runs) != before { // row numbers changed
			shift := r.window.offset + len(p.runs) - before
			r.first, r.last = r.first+shift, r.last+shift
		}
		r.window.trim(r.first)
	})
}

// freshen reloads stale rows on the screen, at most once per refetchEvery.
func (r *Runs) freshen() {
	k := r.nextStale()
	count := r.query.Keep == nil && r.total.changed && r.tasks.now().Sub(r.total.at) >= countEvery
	top := r.topStale && r.window.top()
	if k < 0 && !top && !count || r.wait != nil || r.link.Frozen() {
		return
	}
	if pause := refetchEvery - r.tasks.now().Sub(r.refetched); !r.refetched.IsZero() && pause > 0 {
		r.wait = r.tasks.after(pause, func() {
			r.wait = nil
			r.pump()
		})
		return
	}
	r.refetched = r.tasks.now()
	if k > 0 || k == 0 && !r.window.top() {
		r.reload(k)
		return
	}
	r.reloadTop(count)
}

// nextStale returns the stale page on the screen to reload next; -1 if there is none.
func (r *Runs) nextStale() int {
	for _, p := range r.window.pagesOf(r.first, max(r.last, r.first+1)) {
		if p.stale {
			return slices.Index(r.window.pages, p)
		}
	}
	if r.sorted.on() {
		return slices.IndexFunc(r.window.pages, func(p *page) bool { return p.stale })
	}
	return -1
}

func (r *Runs) reload(k int) {
	old := r.window.pages[k]
	old.stale = false // changes from now on make it stale again
	backward := k == 0 && old.backward
	r.fetch(r.window.reload(k), func(p *page) {
		p.backward, p.stale = backward, old.stale
		r.notice(p)
		r.window.replace(k, p)
	})
}

// reloadTop reloads the newest runs: as rows if they are on the screen, or else to count new ones.
func (r *Runs) reloadTop(count bool) {
	r.topStale = false
	if !r.window.top() {
		r.fetch(&kagziv1.PageRequest{PageSize: 1, IncludeTotalCount: true}, func(*page) {})
		return
	}
	r.window.pages[0].stale = false
	r.fetch(&kagziv1.PageRequest{PageSize: pageSize, IncludeTotalCount: count}, func(p *page) {
		old := r.window.pages[0]
		if !r.atTop {
			r.splitAbove(p, old)
		} else if old.high != "" && p.low > old.high && p.next != "" {
			r.jump = toHead // there are so many new runs that rows are missing in between
			return
		}
		p.stale = old.stale
		r.notice(p)
		r.window.replace(0, p)
	})
}

// splitAbove counts the runs of the newest page that are newer than the rows, and returns the rest.
func (r *Runs) splitAbove(p, old *page) {
	n := slices.IndexFunc(p.runs, func(run *kagziv1.Workflow) bool { return run.GetRunId() <= old.high })
	if n < 0 {
		n = len(p.runs)
	}
	r.above = nil
	for _, run := range p.runs[:n] {
		r.holdAbove(run, true)
	}
	p.runs, p.high = p.runs[n:], min(p.high, old.high)
	r.many = p.low > old.high && p.next != ""
	if r.many || p.low > old.high { // the page does not reach the rows, so they stay
		*p = *old
	}
}

// notice highlights the rows of a page that changed.
func (r *Runs) notice(p *page) {
	now, some := r.tasks.now(), false
	for _, run := range p.runs {
		old := r.window.get(run.GetRunId())
		if old == nil || old.GetStatus() != run.GetStatus() || old.GetNote() != run.GetNote() ||
			old.GetStepCount() != run.GetStepCount() {
			r.fresh.touch(run.GetRunId(), now)
			some = true
		}
	}
	if some {
		r.bold()
	}
}

// total is the number of runs.
type total struct {
	n       int64
	known   bool
	about   bool // it changed since the count
	changed bool // it may have changed since the count
	at      time.Time
}

func (t *total) add(n int64) {
	t.n += n
	t.about = true
}

// fresh tracks which rows changed recently.
type fresh struct {
	at    map[string]time.Time
	timer *timer
}

// freshMost is the number of tracked changes at which expired ones are dropped.
const freshMost = 1000

func (f *fresh) touch(id string, now time.Time) {
	if f.at == nil || len(f.at) >= freshMost {
		old := f.at
		f.at = map[string]time.Time{}
		for id, at := range old {
			if now.Sub(at) < freshFor {
				f.at[id] = at
			}
		}
		if len(f.at) >= freshMost { // with this many changes, highlights are useless
			f.at = map[string]time.Time{}
		}
	}
	f.at[id] = now
}

func (f *fresh) is(id string, now time.Time) bool {
	at, ok := f.at[id]
	return ok && now.Sub(at) < freshFor
}

func (f *fresh) any(now time.Time) bool {
	for _, at := range f.at {
		if now.Sub(at) < freshFor {
			return true
		}
	}
	return false
}
