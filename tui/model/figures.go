package model

import (
	"context"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// figuresEvery is the least time between two loads of a namespace's figures: counting costs a scan.
const figuresEvery = 15 * time.Second

// Figures holds the counts of the namespaces on the screen. It loads one namespace at a time.
type Figures struct {
	base
	wanted []string
	known  map[string]figure
	drop   func() // cancels the load in progress
}

// figure is the counts of a namespace with the time of the load; nil if it failed.
type figure struct {
	stats *kagziv1.GetStatsResponse
	at    time.Time
}

// NewFigures returns an empty model; View says what to load.
func NewFigures(l *Link) *Figures {
	f := &Figures{known: map[string]figure{}}
	f.base = join(l, func(c Change) {
		if c.Back || c.Beat {
			f.next()
		}
	})
	return f
}

// Show starts to load.
func (f *Figures) Show() {
	f.shown = true
	f.next()
}

// Hide stops loading.
func (f *Figures) Hide() { f.shown = false }

// View sets the namespaces that are on the screen.
func (f *Figures) View(namespaces []string) {
	f.wanted = namespaces
	f.next()
}

// Of returns the counts of a namespace; nil until loaded.
func (f *Figures) Of(namespace string) *kagziv1.GetStatsResponse { return f.known[namespace].stats }

// next loads the first namespace that is wanted and too old, unless a load is in progress.
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

// Ask makes a call in its own goroutine and handles the answer on the UI goroutine, unless the link
// was closed.
func Ask[T any](l *Link, call func(context.Context) (T, error), then func(T, error)) {
	ask(l.tasks, call, then)
}
