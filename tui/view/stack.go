package view

// A trail is a page that was opened by itself and the pages that were opened from it, the last on the screen.
type trail []page

// maxTrails is how many trails one can go back to.
const maxTrails = 20

// trails are where the person has been: the current trail and those before and after it.
type trails struct {
	list []trail
	at   int
	last int // the one before this, for "-"
}

// top is the page on the screen.
func (t *trails) top() page {
	if len(t.list) == 0 {
		return nil
	}
	now := t.list[t.at]
	return now[len(now)-1]
}

// pages are those of the current trail, the first opened first.
func (t *trails) pages() trail {
	if len(t.list) == 0 {
		return nil
	}
	return t.list[t.at]
}

// open begins a new trail. Those that one had gone back from are forgotten, and the oldest when there are too many.
func (t *trails) open(p page) {
	t.hide()
	if len(t.list) > 0 {
		for _, gone := range t.list[t.at+1:] {
			gone.close()
		}
		t.list = t.list[:t.at+1]
	}
	t.list = append(t.list, trail{p})
	if len(t.list) > maxTrails {
		t.list[0].close()
		t.list = t.list[1:]
	}
	t.last, t.at = max(len(t.list)-2, 0), len(t.list)-1
	p.Show()
}

// push opens a page from the one on the screen.
func (t *trails) push(p page) {
	if len(t.list) == 0 {
		t.open(p)
		return
	}
	t.hide()
	t.list[t.at] = append(t.list[t.at], p)
	p.Show()
}

// pop goes back to the page that this one was opened from; false when it was opened by itself.
func (t *trails) pop() bool {
	if len(t.list) == 0 || len(t.list[t.at]) < 2 {
		return false
	}
	now := t.list[t.at]
	now[len(now)-1].Hide()
	now[len(now)-1].Close()
	t.list[t.at] = now[:len(now)-1]
	t.top().Show()
	return true
}

// jump goes to a trail.
func (t *trails) jump(to int) bool {
	if to < 0 || to >= len(t.list) || to == t.at {
		return false
	}
	t.hide()
	t.last, t.at = t.at, to
	t.top().Show()
	return true
}

func (t *trails) back() bool    { return t.jump(t.at - 1) }
func (t *trails) forward() bool { return t.jump(t.at + 1) }
func (t *trails) toLast() bool  { return t.jump(t.last) }

func (t *trails) hide() {
	if p := t.top(); p != nil {
		p.Hide()
	}
}

// close lets go of everything.
func (t *trails) close() {
	t.hide()
	for _, trail := range t.list {
		trail.close()
	}
	t.list, t.at, t.last = nil, 0, 0
}

func (t trail) close() {
	for _, p := range t {
		p.Close()
	}
}
