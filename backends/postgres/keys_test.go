package postgres

import (
	"testing"
	"time"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/migrations"
)

func makeRootKey(t *testing.T, s *Store) engine.APIKey {
	t.Helper()
	now := s.Now()
	k, err := s.CreateKey(t.Context(), engine.CreateKeyParams{
		Key:     engine.APIKey{ID: engine.NewID(now), Name: "root", Role: engine.RoleAdmin, Hash: [32]byte{1}},
		AuditID: engine.NewID(now), Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestAUseThatMovesNothingForwardWritesNothing(t *testing.T) {
	s := openAt(t, lentURL(t))
	root := makeRootKey(t, s)
	note := func(at time.Time) (changed bool) {
		t.Helper()
		before := rowOfKey(t, s, root.ID)
		uses := []engine.KeyUse{{ID: root.ID, At: at}, {ID: engine.NewID(at), At: at}}
		if err := s.NoteKeyUse(t.Context(), uses); err != nil {
			t.Fatal(err)
		}
		return rowOfKey(t, s, root.ID) != before
	}
	now := s.Now()
	if !note(now) {
		t.Fatal("the first use was not written")
	}
	for what, at := range map[string]time.Time{"the same": now, "an older one": now.Add(-time.Second)} {
		if note(at) {
			t.Errorf("%s was written", what)
		}
	}
	if !note(now.Add(time.Second)) {
		t.Error("a later one was not written")
	}
}

// rowOfKey returns the row's location, and the transactions that wrote or locked it last.
func rowOfKey(t *testing.T, s *Store, id engine.ID) (row string) {
	t.Helper()
	err := s.pool.QueryRow(t.Context(), "select concat_ws(' ', ctid, xmin, xmax) from api_keys where key_id = $1",
		[16]byte(id)).Scan(&row)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func TestADatabaseOfTheSecondSchemaGoesOnWithoutKeys(t *testing.T) {
	list, err := migrations.List("postgres")
	if err != nil {
		t.Fatal(err)
	}
	url := pgtest.URL(t)
	admin := adminConnection(t, url)
	script := createMigrationsSQL + ";" + list[0].SQL + ";" + list[1].SQL + `;
		insert into namespaces (namespace, id, created_at, updated_at) values ('default', '01900000-0000-7000-8000-000000000009', 1, 1);
		insert into lanes (namespace, task_queue, workflow_type, requirements, priority) values ('default', 'q', 't', '', 0);
		insert into workers
			(worker_id, namespace, status, queues, types, max_concurrent, registered_at, last_heartbeat_at)
		values ('w1', 'default', 1, '["q"]', '["t"]', 1, 1, 1);
		insert into runs (run_id, namespace, lane_id, task_queue, workflow_type, status, created_at, worker_id)
		select '01900000-0000-7000-8000-000000000001', 'default', lane_id, 'q', 't', 2, 1, 'w1' from lanes;
		insert into payloads (run_id) select run_id from runs;
		insert into leases (run_id, token, worker_id, namespace, task_queue, workflow_type, claimed_at, steps, bytes)
		values ('01900000-0000-7000-8000-000000000001', '00000000-0000-0000-0000-000000000007', 'w1', 'default', 'q', 't', 1, 0, 0);
		insert into audit (event_id, at, actor, peer, method, namespace, subject, subject_id, outcome)
		values ('01900000-0000-7000-8000-000000000002', 1, 'local', '', 'PauseWorkflow', 'default', 'run', '', 'ok')`
	if _, err := admin.Exec(t.Context(), script); err != nil {
		t.Fatal(err)
	}
	for _, m := range list[:2] {
		if _, err := admin.Exec(t.Context(), insertMigrationSQL,
			args{"number": m.Number, "name": m.Name, "checksum": checksum(m)}); err != nil {
			t.Fatal(err)
		}
	}
	s := openAt(t, url)
	expectSound(t, url)
	if keys, err := s.Keyring(t.Context()); err != nil || len(keys) != 0 {
		t.Fatalf("keys = %v (%v), want none", keys, err)
	}
	held, err := s.HeldBy(t.Context(), "w1")
	if err != nil || len(held) != 1 {
		t.Fatalf("leases = %v (%v), want one", held, err)
	}
	if _, err := s.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: held[0].Lease, Now: s.Now()}); err != nil {
		t.Fatal(err)
	}
	makeRootKey(t, s)
	for namespace, want := range map[string]string{"default": "PauseWorkflow", "": "CreateKey"} {
		events, _, err := s.ListAuditEvents(t.Context(), engine.AuditFilter{Namespace: namespace},
			engine.Page{Limit: 10})
		if err != nil || len(events) != 1 || events[0].Method != want {
			t.Errorf("audit of %q = %v (%v), want %s", namespace, events, err, want)
		}
	}
}
