package engine

import (
	"context"
	"sync"
	"sync/atomic"
)

// Turn is the place of one write in a line of writes, such as what a worker does for one run: the next is handed to the store before this one
// has come to its end, so that both may share a commit, and yet happens after it, and not at all when this one is refused.
//
// Whoever makes a Turn gives it to a method of the store by WithTurn, and calls End with what came of it. Should the write be refused before it
// comes to a store, End alone is enough.
type Turn struct {
	before  atomic.Pointer[Turn] // the write that this one builds on; nil when on none
	placed  chan struct{}
	place   sync.Once
	failed  atomic.Bool
	onPlace func()
}

// NewTurn makes the turn of a write that builds on that of before, which may be nil.
func NewTurn(before *Turn) *Turn {
	t := &Turn{placed: make(chan struct{})}
	t.before.Store(before)
	return t
}

// OnPlace has f called when the write has its place, by whoever gives it; f must not block. Call it before the turn is handed on.
func (t *Turn) OnPlace(f func()) { t.onPlace = f }

// Placed is closed once the next of the line may be handed to the store.
func (t *Turn) Placed() <-chan struct{} { return t.placed }

// Place is called by the store when whatever it is handed from now on will be carried out after this write. A store that does not keep an
// order, or not that of a write that may wait for others, never calls it: then the line goes on with the write's End. A nil Turn has no place.
func (t *Turn) Place() {
	if t != nil {
		t.place.Do(t.placeOnce)
	}
}

func (t *Turn) placeOnce() {
	close(t.placed)
	if t.onPlace != nil {
		t.onPlace()
	}
}

// Stands is nil when the write may be carried out, ErrBehindRefused when that before it has failed. The store asks inside the
// transaction, where the order is known. A nil Turn stands.
func (t *Turn) Stands() error {
	if t == nil {
		return nil
	}
	if before := t.before.Load(); before != nil && before.failed.Load() {
		return ErrBehindRefused
	}
	return nil
}

// Behind is the turn that this one builds on; nil when on none, or when it has come to its End. A nil Turn builds on none.
func (t *Turn) Behind() *Turn {
	if t == nil {
		return nil
	}
	return t.before.Load()
}

// Settle notes what the write has come to, for those behind it. The store calls it each time that it has carried the write out or has had to
// give it up; the last word counts. A nil Turn settles nothing.
func (t *Turn) Settle(err error) {
	if t != nil {
		t.failed.Store(err != nil)
	}
}

// End is Settle and Place, by whoever made the turn, once the store has answered.
func (t *Turn) End(err error) {
	t.Settle(err)
	t.before.Store(nil) // a long line is not kept by its last place
	t.Place()
}

// ErrBehindRefused answers a write that was sent before its sender could know that the one it builds on was refused.
var ErrBehindRefused = &Error{Kind: KindUnavailable, Message: "the operation that this one builds on was refused; nothing was changed"}

type turnKey struct{}

// WithTurn is ctx for one call of a store's method that is to keep its place.
func WithTurn(ctx context.Context, t *Turn) context.Context {
	return context.WithValue(ctx, turnKey{}, t)
}

// TurnOf is the Turn of a call; nil when it has none.
func TurnOf(ctx context.Context) *Turn {
	t, _ := ctx.Value(turnKey{}).(*Turn)
	return t
}
