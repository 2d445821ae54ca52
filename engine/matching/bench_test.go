package matching

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// oneAtATime is a store in which one run is due at every claim.
type oneAtATime struct{ *fakeStore }

func (oneAtATime) Claim(_ context.Context, p engine.ClaimParams) (engine.Claimed, error) {
	lease := engine.Lease{Namespace: p.Namespace, RunID: engine.NewID(p.Now), Token: p.Slots[0].Token}
	return engine.Claimed{Tasks: []engine.Task{{Run: engine.Run{ID: lease.RunID, Queue: p.Queue}, Lease: lease}}}, nil
}

// BenchmarkDispatch delivers one run after another, by a claim or by a hand-off. There are many
// pollers, and all or only one have credit. The cost should not depend on the number of pollers.
func BenchmarkDispatch(b *testing.B) {
	for _, pollers := range []int{10, 10_000} {
		for with, credit := range map[string]int{"all": pollers, "one": 1} {
			b.Run(fmt.Sprintf("claim/%s_of_%d", with, pollers), func(b *testing.B) {
				d, served := withPollers(b, oneAtATime{newFakeStore()}, pollers, credit)
				for b.Loop() {
					d.Notify(engine.Notification{Kind: engine.NotifyQueue, Namespace: "default", Name: "q"})
					(<-served).AddCredit(1)
				}
			})
			b.Run(fmt.Sprintf("take/%s_of_%d", with, pollers), func(b *testing.B) {
				d, served := withPollers(b, newFakeStore(), pollers, credit)
				start := starting(fixture{store: newFakeStore()}, "q")
				for b.Loop() {
					k := d.Offer(start)
					for ; k == nil; k = d.Offer(start) { // the first look of the group is under way, and has the credit
						runtime.Gosched()
					}
					k.Commit(task(start, k))
					(<-served).AddCredit(1)
				}
			})
		}
	}
}

// seated returns a running matcher with that many pollers, the first of which have one credit each.
func withPollers(b *testing.B, s store, pollers, credit int) (*Matcher, <-chan *Poller) {
	d, served := New(s, slog.New(slog.DiscardHandler)), make(chan *Poller, 1)
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	b.Cleanup(func() { stop(); <-done })
	for i := range pollers {
		var poller *Poller
		poller = d.Join(Request{
			Worker: &engine.Worker{ID: fmt.Sprintf("w%d", i), Namespace: "default"}, Queues: []string{"q"},
			Types:   []string{"t"},
			Deliver: func(engine.Task) bool { served <- poller; return true },
		})
		if i < credit {
			poller.AddCredit(1)
		}
	}
	return d, served
}
