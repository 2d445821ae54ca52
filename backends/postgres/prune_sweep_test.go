package postgres

import (
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// If Postgres expects one row only, it would evaluate the subquery again for each row, and find
// others in place of deleted ones.
func TestPruneRecordsLimitHoldsForAnyPlan(t *testing.T) {
	now := time.Now()
	for _, c := range []struct{ table, insert string }{
		{"workers",
			`insert into workers (worker_id, namespace, status, queues, types, max_concurrent, registered_at, last_heartbeat_at, deregistered_at)
			select gen_random_uuid()::text, 'default', 3, '', '', 1, 1, 1, 1 from generate_series(1, $1::int)`},
		{"fires",
			"insert into fires select gen_random_uuid(), 1, gen_random_uuid(), 1 from generate_series(1, $1::int)"},
		{"audit", `insert into audit (event_id, at, actor, peer, method, namespace, subject, subject_id, outcome)
			select ('00000000-0000-7000-8000-' || lpad((n + $1::int * 10)::text, 12, '0'))::uuid, 1, '', '', '', '', '', '', '' from generate_series(1, $1::int) n`},
	} {
		t.Run(c.table, func(t *testing.T) {
			s := openAt(t, lentURL(t))
			insert := func(n int) {
				t.Helper()
				if _, err := s.pool.Exec(t.Context(), c.insert, n); err != nil {
					t.Fatal(err)
				}
			}
			insert(1)
			if _, err := s.pool.Exec(t.Context(), "analyze "+c.table); err != nil {
				t.Fatal(err)
			}
			insert(2)
			for i, want := range []bool{true, false} {
				more, err := s.PruneRecords(t.Context(),
					engine.PruneRecordsParams{Workers: now, Fires: now, Audit: now, Limit: 2})
				if err != nil || more != want {
					t.Errorf("sweep %d says more = %t (%v), want %t", i+1, more, err, want)
				}
			}
		})
	}
}
