package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
)

func TestAKeyIsFoundWithoutReadingThePayloadsOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi.db")
	openAt(t, path).Close()
	const (
		rows  = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 100) "
		large = "zeroblob(65536)" // 17 pages
	)
	behindItsBack(t, path, "begin;"+
		rows+
		"insert into runs (run_id, namespace, lane_id, task_queue, workflow_type, status, created_at) select cast(i as blob), 'n', 1, 'q', 't', 1, 1 from n;"+
		rows+"insert into payloads (run_id, input, output) select cast(i as blob), "+large+", "+large+" from n;"+
		rows+
		"insert into requests (namespace, request_id, run_id, task_queue, workflow_type, external_id, input) select 'n', i, cast(i as blob), 'q', 't', '', "+large+" from n;"+
		rows+
		`insert into steps (step_id, run_id, name, kind, status, attempt, sequence, token, worker_id, created_at, input, output)
			select cast(i as blob), cast(i as blob), 's', 1, 3, 1, 1, x'01', 'w', 1, `+large+", "+large+" from n;"+
		rows+"insert into signals (run_id, sequence, name, received_at, payload) select cast(i as blob), 1, 's', 1, "+
		large+" from n;"+
		rows+
		`insert into schedules (schedule_id, namespace, cron_expr, enabled, task_queue, workflow_type, max_catchup, created_at, updated_at, input)
			select cast(i as blob), 'n', '@daily', 1, 'q', 't', 0, 1, 1, `+large+" from n;"+
		"commit")
	for table, query := range map[string]string{
		"payloads":  "select output_meta from payloads where run_id = cast(50 as blob)",
		"requests":  "select input_meta from requests where namespace = 'n' and request_id = '50'",
		"steps":     "select output_meta from steps where step_id = cast(50 as blob)",
		"signals":   "select payload_meta from signals where run_id = cast(50 as blob) and sequence = 1",
		"schedules": "select input_meta from schedules where schedule_id = cast(50 as blob)",
	} {
		t.Run(table, func(t *testing.T) {
			c, err := dbfile.OpenReader(path)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			found := 0
			if err := c.Query(t.Context(), &query, func(*sqlite3.Row) error { found++; return nil }); err != nil ||
				found != 1 {
				t.Fatalf("found %d rows (%v), want one", found, err)
			}
			read, err := c.PagesRead()
			if err != nil {
				t.Fatal(err)
			}
			if read >= 17 {
				t.Errorf("%d pages were read, want fewer than a single payload has", read)
			}
		})
	}
}
