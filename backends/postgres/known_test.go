package postgres

import (
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// A promoted standby may lack what its predecessor committed last, although the server has cached
// it.
func TestClaimAfterFailoverLostLane(t *testing.T) {
	s := openAt(t, lentURL(t))
	register(t, s, "wa")
	start(t, s, 1)
	lose := func() {
		t.Helper()
		for _, table := range []string{"leases", "payloads", "runs", "lanes", "namespaces"} {
			if _, err := s.pool.Exec(t.Context(), "delete from "+table); err != nil {
				t.Fatal(err)
			}
		}
	}
	lose()
	start(t, s, 1)
	claimed, err := s.Claim(t.Context(), claimParams(s, "wa", 1))
	if err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("claimed %d runs (%v), want 1", len(claimed.Tasks), err)
	}
	child := newStart(s)
	if _, err := s.pool.Exec(t.Context(), "delete from lanes"); err != nil {
		t.Fatal(err)
	}
	p := engine.StartChildParams{Lease: claimed.Tasks[0].Lease, Step: "child", ID: engine.NewID(s.Now()), Child: child,
		Now: s.Now()}
	if _, err := s.StartChild(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	claimed, err = s.Claim(t.Context(), claimParams(s, "wa", 1))
	if err != nil || len(claimed.Tasks) != 1 || claimed.Tasks[0].Run.ID != child.ID {
		t.Fatalf("claimed %d runs (%v), want the child", len(claimed.Tasks), err)
	}
}
