package matching

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kagzi/kagzi/engine"
)

func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.add("q", 3, 0)
		store.add("q", 1, time.Hour)
		d := New(store, slog.New(slog.DiscardHandler))
		var tasks []engine.Task
		refused := false
		request := Request{
			Worker: &engine.Worker{ID: "w", Namespace: "default"}, Queues: []string{"q"}, Types: []string{"t"},
			Deliver: func(task engine.Task) bool { tasks = append(tasks, task); return true },
			Refused: func() { refused = true },
		}
		for _, c := range []struct{ most, want int }{{2, 2}, {5, 1}, {5, 0}} {
			tasks = nil
			d.Poll(context.Background(), request, c.most)
			if len(tasks) != c.want {
				t.Errorf("a poll for %d brings %d runs, want %d", c.most, len(tasks), c.want)
			}
		}
		store.offline["w"] = true
		if d.Poll(context.Background(), request, 1); !refused {
			t.Error("a worker that is not online was not refused")
		}
	})
}
