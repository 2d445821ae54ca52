package auth

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
)

func TestRefusalsOfAHookAreRecordedOnceAMinuteAndInBounds(t *testing.T) {
	var r hookRefusals
	now := time.Now()
	for _, c := range []struct {
		hook byte
		at   time.Duration
		want bool
	}{{1, 0, true}, {1, 0, false}, {2, 0, true}, {1, hookRefusalEvery - 1, false}, {1, hookRefusalEvery, true}} {
		if got := r.admit(engine.ID{c.hook}, now.Add(c.at)); got != c.want {
			t.Errorf("hook %d after %s: %v, want %v", c.hook, c.at, got, c.want)
		}
	}
	recorded := 0
	for i := range 3 * hookRefusalsKept {
		if r.admit(engine.ID{byte(i), byte(i >> 8), 7}, now.Add(hookRefusalEvery)) {
			recorded++
		}
	}
	if len(r.last) > hookRefusalsKept+1 || recorded > hookRefusalsKept+1 {
		t.Errorf("%d hooks are remembered and %d refusals recorded, want at most %d", len(r.last), recorded,
			hookRefusalsKept+1)
	}
	if !r.admit(engine.ID{9, 9, 9}, now.Add(3*hookRefusalEvery)) || len(r.last) > 1 {
		t.Errorf("%d hooks are remembered after their minute, want the last one", len(r.last))
	}
}

func TestAnUnknownHookAndAWrongSignatureAreRefusedAlike(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	g := New(nil, log, &wire.Errors{Log: log, Now: time.Now}, false, false)
	h := &engine.Hook{ID: engine.ID{1}, Namespace: "default", Name: "gh"}
	gone, leave := context.WithCancel(t.Context())
	leave() // so that no answer is delayed
	bad, unknown := g.RefuseDelivery(gone, h), g.RefuseDelivery(gone, nil)
	if engine.KindOf(bad) != engine.KindNoKey || bad.Error() != unknown.Error() {
		t.Errorf("a wrong signature: %v, an unknown hook: %v", bad, unknown)
	}
	for range 3 * hookRefusalsQueued { // nobody writes them: none may wait
		h.ID[1]++
		if err := g.RefuseDelivery(gone, h); err == nil {
			t.Fatal("a delivery is accepted")
		}
	}
	if n := len(g.hooks.events); n != hookRefusalsQueued {
		t.Errorf("%d records wait, want %d", n, hookRefusalsQueued)
	}
}
