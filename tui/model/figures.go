package model

import (
	"context"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// figuresEvery is how old the figures of a namespace may become: counting costs a scan.
const figuresEvery = 15 * time.Second

// Figures is how much goes on in namespaces, for those that somebody looks at. One is asked about at a time.
type Figures struct {
	base
	wanted []string
	known  map[string]figure
	drop   func() // of the reading under way
}

// figure is what a namespace had, and when it was asked; nil where that failed.
type figure struct {
	stats *kagziv1.GetStatsResponse
	at    time.Time
}

// NewFigures knows nothing until something is looked at.
func NewFigures(l *Link) *Figures {
	f := &Figures{known: map[string]figure{}}
	f.base = join(l, func(c Change) {
		if c.Back || c.Beat {
			f.next()
		}
	})
	return f
}

// Show keeps what is looked at up to date from now on.
func (f *Figures) Show() {
	f.shown = true
	f.next()
}

// Hide keeps it as it is until the next Show.
func (f *Figures) Hide() { f.shown = false }

// View says which namespaces are on the screen.
func (f *Figures) View(namespaces []string) {
	f.wanted = namespaces
	f.next()
}

// Of is the figures of a namespace; nil when they have not come yet.
func (f *Figures) Of(namespace string) *kagziv1.GetStatsResponse { return f.known[namespace].stats }

// next reads the first that is wanted and too old, if nothing is being read.
func (f *Figures) next() {
	if f.drop != nil || !f.shown || f.link.Frozen() || !f.link.Ready() {
		return
	}
	for _, name := range f.wanted {
		if k, ok := f.known[name]; !ok || f.tasks.now().Sub(k.at) >= figuresEvery {
			f.read(name)
			return
		}
	}
}

func (f *Figures) read(name string) {
	at := f.tasks.now()
	f.drop = ask(f.tasks, func(ctx context.Context) (*kagziv1.GetStatsResponse, error) {
		return f.link.api.GetStats(ctx, &kagziv1.GetStatsRequest{Namespace: &name})
	}, func(stats *kagziv1.GetStatsResponse, err error) {
		f.drop = nil
		if err != nil {
			stats = f.known[name].stats
		}
		f.known[name] = figure{stats, at}
		f.change()
		f.next()
	})
}

// Ask makes a call beside the UI goroutine and deals with the answer on it, unless the link has been closed by then.
func Ask[T any](l *Link, call func(context.Context) (T, error), then func(T, error)) {
	ask(l.tasks, call, then)
}
