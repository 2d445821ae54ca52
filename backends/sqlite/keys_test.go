package sqlite

import (
	"os"
	"path/filepath"
	"testing"
	"time"

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
	s := fresh(t)
	root := makeRootKey(t, s)
	log := func() string {
		t.Helper()
		text, err := os.ReadFile(s.path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	note := func(at time.Time) (changed bool) {
		t.Helper()
		before := log()
		uses := []engine.KeyUse{{ID: root.ID, At: at}, {ID: engine.NewID(at), At: at}}
		if err := s.NoteKeyUse(t.Context(), uses); err != nil {
			t.Fatal(err)
		}
		return log() != before
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

func TestADatabaseOfTheSecondSchemaGoesOnWithoutKeys(t *testing.T) {
	list, err := migrations.List("sqlite")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kagzi.db")
	behindItsBack(t, path, "begin;"+list[0].SQL+";"+list[1].SQL+`;
		pragma application_id = 0x4b61677a;
		pragma user_version = 2;
		insert into namespaces (namespace, id, created_at, updated_at) values ('default', x'01', 1, 1);
		insert into lanes values (1, 'default', 'q', 't', '', 0);
		insert into workers
			(worker_id, namespace, status, queues, types, max_concurrent, registered_at, last_heartbeat_at)
		values ('w1', 'default', 1, '["q"]', '["t"]', 1, 1, 1);
		insert into runs (run_id, namespace, lane_id, task_queue, workflow_type, status, created_at, worker_id)
		values (x'01900000000070008000000000000001', 'default', 1, 'q', 't', 2, 1, 'w1');
		insert into payloads (run_id) select run_id from runs;
		insert into leases (run_id, token, worker_id, namespace, task_queue, workflow_type, claimed_at, steps, bytes)
		values (x'01900000000070008000000000000001', x'00000000000000000000000000000007', 'w1', 'default', 'q', 't', 1, 0, 0);
		insert into audit (event_id, at, actor, peer, method, namespace, subject, subject_id, outcome)
		values (x'01900000000070008000000000000002', 1, 'local', '', 'PauseWorkflow', 'default', 'run', '', 'ok');
		commit`)
	s := openAt(t, path)
	if findings, err := Check(t.Context(), path); err != nil || len(findings) > 0 {
		t.Fatalf("findings = %v (%v), want none", findings, err)
	}
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
