package watch

import (
	"testing"

	"github.com/kagzi/kagzi/engine"
)

func TestFresh(t *testing.T) {
	run := func(n byte) engine.StartRun {
		return engine.StartRun{Run: engine.Run{ID: engine.ID{n, 1}, Namespace: "here"}}
	}
	t.Run("a run is recent from its start until its end is received", func(t *testing.T) {
		var f recentStarts
		f.add([]engine.StartRun{run(1), run(2)})
		if !f.has("here", run(1).ID) || !f.has("here", run(2).ID) || f.has("there", run(1).ID) ||
			f.has("here", run(3).ID) {
			t.Fatal("not those that were started")
		}
		f.drop(run(1).ID)
		if f.has("here", run(1).ID) || !f.has("here", run(2).ID) {
			t.Fatal("not that which has ended was dropped")
		}
		f.dropAll()
		if f.has("here", run(2).ID) {
			t.Fatal("fresh although anything may have happened")
		}
	})
	t.Run("only the latest runs are remembered", func(t *testing.T) {
		var f recentStarts
		first := run(1)
		f.add([]engine.StartRun{first})
		for i := range maxRecent {
			if !f.has("here", first.ID) {
				t.Fatalf("forgotten after %d more", i)
			}
			f.add([]engine.StartRun{{Run: engine.Run{ID: engine.ID{2, byte(i), byte(i >> 8)}, Namespace: "here"}}})
		}
		if f.has("here", first.ID) || len(f.namespaces) != maxRecent {
			t.Fatalf("remembers %d, the first of all: %t", len(f.namespaces), f.has("here", first.ID))
		}
	})
}
