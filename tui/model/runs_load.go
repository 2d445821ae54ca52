package model

import (
	"slices"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// pump begins the next call that the list needs, one at a time: where to go first, then what is
// missing around the screen, then what may be out of date on it, then how many new runs there are
// and how many runs altogether.
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

// leap reads from the head or the end.
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
				r.last = min(r.last, edge-1) // until the screen says more
			}
		})
}

// needsNext says whether the page behind the last is needed.
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

// needsPrev says whether the page before the first is needed.
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
		if r.window.offset+len(p.runs) != before { // the rows are numbered anew
			shift := r.window.offset + len(p.runs) - before
			r.first, r.last = r.first+shift, r.last+shift
		}
		r.window.trim(r.first)
	})
}

// freshen reads again what may be out of date and matters, not too often.
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

// nextStale is the page that is to be read again next, one that is on the screen; -1 when there is none.
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
	old.stale = false // what changes from now on makes it stale again
	backward := k == 0 && old.backward
	r.fetch(r.window.reload(k), func(p *page) {
		p.backward, p.stale = backward, old.stale
		r.notice(p)
		r.window.replace(k, p)
	})
}

// reloadTop reads the newest runs again: for the rows when they are on the screen, else to count those that are new.
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
			r.jump = toHead // so many are new that there is a gap
			return
		}
		p.stale = old.stale
		r.notice(p)
		r.window.replace(0, p)
	})
}

// splitAbove counts the runs of the newest page that are newer than the rows and leaves the rest.
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
	if r.many || p.low > old.high { // the page does not reach down to the rows: they stay
		*p = *old
	}
}

// notice marks the rows of a page that are not as they were.
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

// total is how many runs there are.
type total struct {
	n       int64
	known   bool
	about   bool // it has changed since it was counted
	changed bool // it may have
	at      time.Time
}

func (t *total) add(n int64) {
	t.n += n
	t.about = true
}

// fresh is which rows changed lately.
type fresh struct {
	at    map[string]time.Time
	timer *timer
}

// freshMost is how many changes are kept before those that are over are thrown out.
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
		if len(f.at) >= freshMost { // where so much changes at once nothing needs to stand out
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
