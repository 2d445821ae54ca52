package world

// news is what has changed lately, for the streams. Each change has a number; a stream remembers the last one that it has told.
type news struct {
	last       int64
	published  int64
	runs       []runNews // oldest first
	forgotten  int64     // the last change of a run that runs no longer holds
	started    int64     // the last change of each kind
	workers    int64
	schedules  int64
	namespaces int64
	bell       chan struct{} // closed and replaced when there is something to look at
}

type runNews struct {
	number int64
	run    *run
}

// maxNews is how many changes of runs are remembered. Whoever is further behind reads the lists again.
const maxNews = 4096

func (n *news) next() int64 {
	n.last++
	return n.last
}

// changed notes that a run is not as it was.
func (w *World) changed(r *run) {
	r.changed = w.news.next()
	w.news.runs = append(w.news.runs, runNews{r.changed, r})
	if len(w.news.runs) >= 2*maxNews {
		old := len(w.news.runs) - maxNews
		w.news.forgotten = w.news.runs[old-1].number
		w.news.runs = append([]runNews(nil), w.news.runs[old:]...)
	}
}

// stepChanged notes that a step, and with it its run, is not as it was.
func (w *World) stepChanged(r *run, s *step) {
	w.changed(r)
	s.changed = r.changed
}

func (w *World) workersChanged() { w.news.workers = w.news.next() }

func (w *World) schedulesChanged() { w.news.schedules = w.news.next() }

func (w *World) namespacesChanged() { w.news.namespaces = w.news.next() }

// publish has the streams look at what has changed, if anything has.
func (w *World) publish() {
	if w.news.last != w.news.published {
		w.news.published = w.news.last
		w.ring()
	}
}

func (w *World) ring() {
	close(w.news.bell)
	w.news.bell = make(chan struct{})
}
