package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/migrations"
)

func TestFirstSchemaContinuesRuns(t *testing.T) {
	list, err := migrations.List("sqlite")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kagzi.db")
	behindItsBack(t, path, "begin;"+list[0].SQL+`;
		pragma application_id = 0x4b61677a;
		pragma user_version = 1;
		insert into namespaces (namespace, id, created_at, updated_at) values ('default', x'01', 1, 1);
		insert into lanes values (1, 'default', 'q', 't', '', 0);
		insert into workers
			(worker_id, namespace, status, queues, types, max_concurrent, registered_at, last_heartbeat_at)
		values ('w1', 'default', 1, '["q"]', '["t"]', 1, 1, 1);
		insert into runs (run_id, namespace, lane_id, task_queue, workflow_type, status, created_at, available_at,
			deadline_at, worker_id, concurrency_key, concurrency_limit)
		values
			(x'01900000000070008000000000000001', 'default', 1, 'q', 't', 2, 1, null, 4000000000000000, 'w1', 'customer', 1),
			(x'01900000000070008000000000000002', 'default', 1, 'q', 't', 1, 1, 2, null, '', 'customer', 1);
		insert into payloads (run_id) select run_id from runs;
		insert into leases (run_id, token, worker_id, namespace, task_queue, workflow_type, claimed_at, steps, bytes)
		values (x'01900000000070008000000000000001', x'00000000000000000000000000000007', 'w1', 'default', 'q', 't', 1, 0, 0);
		commit`)
	s := openAt(t, path)
	if findings, err := Check(t.Context(), path); err != nil || len(findings) > 0 {
		t.Fatalf("findings = %v (%v), want none", findings, err)
	}
	held, err := s.HeldBy(t.Context(), "w1")
	if err != nil || len(held) != 1 {
		t.Fatalf("leases = %v (%v), want one", held, err)
	}
	claim := func() []engine.Task {
		t.Helper()
		claimed, err := s.Claim(t.Context(), engine.ClaimParams{
			Namespace: "default", Queue: "q", Types: []string{"t"},
			Slots: []engine.ClaimSlot{{WorkerID: "w1", Token: engine.NewToken()}}, Now: s.Now(),
		})
		if err != nil {
			t.Fatal(err)
		}
		return claimed.Tasks
	}
	if tasks := claim(); len(tasks) != 0 {
		t.Fatal("the key's second run was claimed beside its first")
	}
	if e, err := s.EndExpired(t.Context(), engine.EndExpiredParams{Now: s.Now(), Limit: 1}); err != nil ||
		!e.Next.Equal(time.UnixMicro(4000000000000000)) {
		t.Fatalf("next to expire at %s (%v), want the deadline of the old run", e.Next, err)
	}
	if _, err := s.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: held[0].Lease, Now: s.Now()}); err != nil {
		t.Fatal(err)
	}
	if tasks := claim(); len(tasks) != 1 {
		t.Fatal("the key's second run was not claimed after its first")
	}
}
