package model

import (
	"slices"
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	pageSize  = 200 // runs per page, as requested
	pagesMost = 50  // pages that a window holds
)

// page is one page of a list of runs, newest first. It covers all ids from low up to the page
// before, excluded, including runs that a local filter excludes.
type page struct {
	runs       []*kagziv1.Workflow
	low, high  string               // empty if the page is empty
	request    *kagziv1.PageRequest // that loaded it
	backward   bool                 // requested as the page before a token
	next, prev string               // tokens; empty: no further page
	stale      bool                 // runs may have changed since
}

// window is the loaded part of a list of runs: consecutive pages, at most pagesMost. It counts the
// rows that it dropped at the top.
type window struct {
	pages  []*page
	offset int // rows before the first page
}

func (w *window) top() bool { return len(w.pages) > 0 && w.pages[0].prev == "" }
func (w *window) end() bool { return len(w.pages) > 0 && w.pages[len(w.pages)-1].next == "" }

// len returns how many rows are loaded.
func (w *window) len() int {
	n := 0
	for _, p := range w.pages {
		n += len(p.runs)
	}
	return n
}

// at returns the i-th row of the whole list; nil if it is not loaded.
func (w *window) at(i int) *kagziv1.Workflow {
	i -= w.offset
	if i < 0 {
		return nil
	}
	for _, p := range w.pages {
		if i < len(p.runs) {
			return p.runs[i]
		}
		i -= len(p.runs)
	}
	return nil
}

// pagesOf returns the pages with rows from first to last, excluded.
func (w *window) pagesOf(first, last int) []*page {
	var pages []*page
	from := w.offset
	for _, p := range w.pages {
		to := from + len(p.runs)
		if from < last && to > first {
			pages = append(pages, p)
		}
		from = to
	}
	return pages
}

// find returns the row of a run.
func (w *window) find(id string) (row int, ok bool) {
	row = w.offset
	for _, p := range w.pages {
		if i, found := p.place(id); found {
			return row + i, true
		}
		row += len(p.runs)
	}
	return 0, false
}

// place returns the position of a run in a page, or where it would be.
func (p *page) place(id string) (int, bool) {
	return slices.BinarySearchFunc(p.runs, id, func(r *kagziv1.Workflow, id string) int {
		return strings.Compare(id, r.GetRunId())
	})
}

// covers reports whether a run with this id would be loaded if it existed.
func (w *window) covers(id string) bool {
	if len(w.pages) == 0 {
		return false
	}
	return (w.top() || id <= w.pages[0].high) && (w.end() || id >= w.pages[len(w.pages)-1].low)
}

// above reports whether a run is newer than all that were ever loaded.
func (w *window) above(id string) bool { return w.top() && id > w.pages[0].high }

// put inserts or replaces a run that the window covers.
func (w *window) put(r *kagziv1.Workflow) {
	id := r.GetRunId()
	p := w.pages[len(w.pages)-1]
	for _, other := range w.pages {
		if other.low != "" && id >= other.low {
			p = other
			break
		}
	}
	p.high = max(p.high, id)
	if p.low == "" || id < p.low {
		p.low = id
	}
	i, found := p.place(id)
	if found {
		p.runs[i] = r
		return
	}
	p.runs = slices.Insert(p.runs, i, r)
}

// get returns a run by its id; nil if it is not loaded.
func (w *window) get(id string) *kagziv1.Workflow {
	for _, p := range w.pages {
		if i, found := p.place(id); found {
			return p.runs[i]
		}
	}
	return nil
}

// remove removes a run.
func (w *window) remove(id string) (found bool) {
	for _, p := range w.pages {
		if i, ok := p.place(id); ok {
			p.runs = slices.Delete(p.runs, i, i+1)
			return true
		}
	}
	return false
}

// append adds the page after the last one.
func (w *window) append(p *page) {
	w.pages = append(w.pages, p)
	w.settle(len(w.pages) - 1)
}

// prepend adds the page before the first one.
func (w *window) prepend(p *page) {
	w.pages = slices.Insert(w.pages, 0, p)
	w.settle(0)
	w.offset = max(w.offset-len(p.runs), 0)
	if w.top() {
		w.offset = 0
	}
}

// reload returns the request that loads a page again: what follows the page before it.
func (w *window) reload(k int) *kagziv1.PageRequest {
	if k == 0 {
		return w.pages[0].request
	}
	return &kagziv1.PageRequest{PageSize: pageSize, PageToken: w.pages[k-1].next}
}

// replace puts a reloaded page in place of the old one. Runs that it newly covers are removed from
// later pages; runs that it no longer covers move to the next page.
func (w *window) replace(k int, p *page) {
	old := w.pages[k]
	w.pages[k] = p
	if !p.backward && k+1 < len(w.pages) {
		if i := slices.IndexFunc(old.runs, func(r *kagziv1.Workflow) bool { return r.GetRunId() < p.low }); i >= 0 {
			next := w.pages[k+1]
			next.runs = append(slices.Clone(old.runs[i:]), next.runs...)
		}
	}
	w.settle(k)
}

// settle removes from later pages what page k holds, and everything beyond the ends of the list.
func (w *window) settle(k int) {
	p := w.pages[k]
	if p.next == "" {
		w.pages = w.pages[:k+1]
	}
	if p.prev == "" && k > 0 {
		w.pages = w.pages[k:]
		w.offset, k = 0, 0
	}
	w.pages = append(w.pages[:k+1:k+1], slices.DeleteFunc(w.pages[k+1:], func(other *page) bool {
		return other.low >= p.low
	})...)
	for _, other := range w.pages[k+1:] {
		other.runs = slices.DeleteFunc(other.runs, func(r *kagziv1.Workflow) bool { return r.GetRunId() >= p.low })
		other.high = min(other.high, p.low)
	}
}

// trim drops excess pages, those farthest from a row first.
func (w *window) trim(row int) {
	for len(w.pages) > pagesMost {
		before, after := row-w.offset, w.offset+w.len()-row
		if before > after {
			w.offset += len(w.pages[0].runs)
			w.pages = slices.Delete(w.pages, 0, 1)
			continue
		}
		w.pages = w.pages[:len(w.pages)-1]
	}
}
