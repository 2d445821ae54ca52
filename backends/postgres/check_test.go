package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/backends/postgres/pgtest"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/migrations"
)

// busyDatabase returns the address of a database with runs in every state.
func busyDatabase(t *testing.T) string {
	t.Helper()
	url := lentURL(t)
	s := openAt(t, url)
	register(t, s, "w1")
	start(t, s, 5)
	claimed, err := s.Claim(t.Context(), claimParams(s, "w1", 4))
	if err != nil || len(claimed.Tasks) != 4 {
		t.Fatalf("claimed %d runs, %v", len(claimed.Tasks), err)
	}
	now := s.Now()
	for i, task := range claimed.Tasks {
		l := task.Lease
		step := engine.CompleteStepParams{Lease: l, Step: engine.StepRef{Name: "pay"}, ID: engine.NewID(now), Now: now}
		if _, err := s.CompleteStep(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		switch i {
		case 0:
			_, err = s.CompleteRun(t.Context(), engine.CompleteRunParams{Lease: l, Now: now})
		case 1:
			_, err = s.FailRun(t.Context(), engine.FailRunParams{
				Lease: l, Failure: engine.Failure{Message: "no"}, Now: now})
		case 2:
			_, err = s.Sleep(t.Context(), engine.SleepParams{
				Lease: l, Step: engine.StepRef{Name: "nap"}, ID: engine.NewID(now), Duration: 1e12, Now: now})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return url
}

func TestCheckFindsWhatContradictsItself(t *testing.T) {
	url := busyDatabase(t)
	expectSound(t, url)
	for _, broken := range []struct{ name, script, want string }{
		{"a run without its lease", "delete from leases", "is RUNNING without a lease"},
		{"a lease without its run", "update runs set status = 1, available_at = 1 where status = 2",
			"is for a run that is not RUNNING"},
		{"a waiting run that is never due", "update runs set available_at = null where status = 3",
			"no time at which it is due"},
		{"an ended run that is due", "update runs set available_at = 1 where status = 4",
			"has a time at which it is due"},
		{"an ended run without an end", "update runs set finished_at = null where status = 4", "at no time"},
		{"a run in another's lane", "update lanes set workflow_type = 'other'", "stands in no lane"},
		{"a step without a run", "delete from runs where status = 4", "is left over"},
		{"a run without payloads", "delete from payloads", "has no payload row"},
		{"a step without a latest attempt", "update steps set latest = false", "latest attempts"},
		{"a wrong count of steps", "update runs set steps = 7 where status = 4", "counts 7 steps and has 1"},
		{"an open step of an ended run",
			"update steps set status = 1 where run_id in (select run_id from runs where status = 4)",
			"is open in a run that has ended"},
		{"a step that runs without a holder",
			"update steps set status = 2 where run_id in (select run_id from runs where status = 3) and kind = 1",
			"nobody holds"},
		{"a run that is due in spite of a pause", "update runs set paused = true where status = 3",
			"is kept from the workers, but has a time"},
		{"a gated run without a key", "update runs set gated = true, held_at = 1, available_at = null where status = 3",
			"has no key"},
		{"a gated run that nothing is in the way of",
			"update runs set gated = true, held_at = 1, available_at = null, concurrency_key = 'k', tied = true where status = 3", "nothing has one"},
		{"a pause of a run that has ended", "update runs set paused = true where status = 4", "but does not wait"},
		{"a place in a line that is none", "update runs set held_at = 1 where status = 3",
			"nothing keeps it from the workers"},
		{"a run that expires at another time", "update runs set deadline_at = 1 where status = 3",
			"expires at another time"},
		{"a keyed run that is not tied", "update runs set concurrency_key = 'k' where status = 4",
			"does not say that its end concerns others"},
		{"a parent that is not tied",
			"update steps set kind = 3, status = 2, child_run_id = run_id where run_id in (select run_id from runs where status = 3)", "concerns the children"},
		{"a lease that is not tied", "update runs set tied = true where status = 2", "does not say of the run"},
		{"a lease without its key",
			"update runs set concurrency_key = 'k', tied = true where status = 2; update leases set tied = true",
			"does not say of the run"},
		{"more leases than a key allows",
			"update runs set status = 2, available_at = null, worker_id = 'w1', concurrency_key = 'k', concurrency_limit = 1, tied = true where status in (1, 2); " +
				"delete from leases; insert into leases (run_id, token, worker_id, namespace, task_queue, workflow_type, claimed_at, steps, bytes, tied, concurrency_key) " +
				"select run_id, run_id, worker_id, namespace, task_queue, workflow_type, 1, 0, 0, true, 'k' from runs where status = 2", "more than any of their runs allows"},
		{"more places than a key has",
			"update runs set concurrency_key = 'k', concurrency_limit = 1, concurrency_scope = 1, has_place = true, tied = true where status = 3; " +
				"update runs set concurrency_key = 'k', concurrency_limit = 1, tied = true where status = 2; update leases set concurrency_key = 'k', tied = true",
			"places of a concurrency key"},
		{"a place without a key", "update runs set has_place = true where status = 3", "does not need one of"},
		{"a run that holds its lease without a place",
			"update runs set concurrency_key = 'k', concurrency_limit = 1, concurrency_scope = 1, tied = true where status = 2; update leases set tied = true",
			"was claimed, but has no place of its key"},
		{"a run that waits without the place that it took",
			"update runs set concurrency_key = 'k', concurrency_limit = 1, concurrency_scope = 1, tied = true where status = 3",
			"was claimed, but has no place of its key"},
		{"a run that waits in line although it had a place",
			"update runs set concurrency_key = 'k', concurrency_limit = 1, concurrency_scope = 1, tied = true, gated = true, held_at = 1, available_at = null where status = 3",
			"was claimed, but has no place of its key"},
		{"a run that lost its worker and its place",
			"update runs set concurrency_key = 'k', concurrency_limit = 1, concurrency_scope = 1, tied = true, started_at = 1 where status = 1",
			"was claimed, but has no place of its key"},
		{"a place before the first claim",
			"update runs set concurrency_key = 'k', concurrency_limit = 1, concurrency_scope = 1, tied = true, has_place = true, started_at = null where status = 1", "was not claimed and continues no run"},
		{"a lease with the key of an open run",
			"update runs set concurrency_key = 'k', concurrency_limit = 9, concurrency_scope = 1, has_place = true, tied = true where status = 2; " +
				"update leases set concurrency_key = 'k', tied = true", "does not say of the run"},
		{"a signal without a run",
			"insert into signals (run_id, sequence, name, received_at) values (gen_random_uuid(), 1, 's', 1)",
			"is left over"},
		{"a signal that nothing consumed",
			"insert into signals (run_id, sequence, name, received_at, step_name) select run_id, 1, 's', 1, 'nobody' from runs limit 1", "consumed by a step that is not there"},
		{"a tick without a schedule", "insert into fires values (gen_random_uuid(), 1, gen_random_uuid(), 1)",
			"is left over"},
		{"a schedule without a namespace",
			"insert into schedules (schedule_id, namespace, cron_expr, enabled, task_queue, workflow_type, max_catchup, created_at, updated_at) " +
				"values (gen_random_uuid(), 'nowhere', '* * * * *', true, 'q', 't', 1, 1, 1)",
			"namespace that is not there"},
		{"a wait for a child that has ended",
			"update steps set kind = 3, status = 2, child_run_id = (select run_id from runs where status = 4) where run_id in (select run_id from runs where status = 3)", "waits for a child that has ended"},
		{"a wait for a child that is not there",
			"update steps set kind = 3, status = 2, child_run_id = gen_random_uuid() where run_id in (select run_id from runs where status = 3)", "waits for a child that is not there"},
		{"a wait that is over unnoticed",
			"update runs set available_at = null, waiting_for = 'signal:s' where status = 3; " +
				"update steps set awaited = 1 where run_id in (select run_id from runs where status = 3) and status = 3",
			"is awaited although it has ended"},
		{"a wait for nothing", "update runs set available_at = null, waiting_for = 'signal:s' where status = 3",
			"none of its steps does"},
		{"a wait of several that is over unnoticed",
			"update runs set available_at = null, waiting_for = 'child:c' where status = 3; " +
				"update steps set awaited = 2 where run_id in (select run_id from runs where status = 3) and status = 3",
			"none of its steps does"},
		{"a paused run that waits for nothing",
			"update runs set available_at = null, paused = true, waiting_for = 'signal:s' where status = 3",
			"none of its steps does"},
		{"a paused run that would never be due", "update runs set available_at = null, paused = true where status = 3",
			"no time at which it would be due"},
		{"a migration that is not ours", "update schema_migrations set checksum = 'x'", "another text"},
		{"an attempt without a number",
			"update steps set attempt = 0 where run_id in (select run_id from runs where status = 4)",
			"not numbered one after the other"},
		{"two steps at one place", "update steps set sequence = 1", "two steps at place 1"},
		{"steps at wrong places", "update steps set sequence = sequence + 1", "at places other than 1 to"},
		{"a wrong count of bytes",
			"update steps set output = decode(repeat('00', 9999), 'hex') where run_id in (select run_id from runs where status = 4)", "counts fewer bytes"},
		{"a schedule that counted backwards",
			"insert into schedules (schedule_id, namespace, cron_expr, enabled, task_queue, workflow_type, max_catchup, created_at, updated_at, skipped) values (gen_random_uuid(), 'default', '* * * * *', true, 'q', 't', 1, 1, 1, -1)", "less than nothing"},
		{"a schedule with more ends than runs",
			"insert into schedules (schedule_id, namespace, cron_expr, enabled, task_queue, workflow_type, max_catchup, created_at, updated_at, failed) values (gen_random_uuid(), 'default', '* * * * *', true, 'q', 't', 1, 1, 1, 1)", "more runs that have ended"},
		{"a tick that nothing fired",
			"insert into schedules (schedule_id, namespace, cron_expr, enabled, task_queue, workflow_type, max_catchup, created_at, updated_at, fired) values (gen_random_uuid(), 'default', '* * * * *', true, 'q', 't', 1, 1, 1, 0); insert into fires select schedule_id, 1, schedule_id, 1 from schedules", "more of its ticks have their record"},
		{"a tick kept back for nothing",
			"insert into schedules (schedule_id, namespace, cron_expr, enabled, task_queue, workflow_type, max_catchup, created_at, updated_at, buffered) values (gen_random_uuid(), 'default', '* * * * *', true, 'q', 't', 1, 1, 1, 1)", "none of its ticks has to wait"},
		{"a tick with another's run",
			"insert into schedules (schedule_id, namespace, cron_expr, enabled, task_queue, workflow_type, max_catchup, created_at, updated_at, fired) values (gen_random_uuid(), 'default', '* * * * *', true, 'q', 't', 1, 1, 1, 1); insert into fires select s.schedule_id, 1, run_id, 1 from schedules s, runs where runs.status = 4", "a run that another has started"},
		{"a session without its hash",
			"insert into sessions (session_id, key_id, hash, created_at, used_at, expires_at) values (gen_random_uuid(), gen_random_uuid(), decode('00', 'hex'), 1, 1, 2)", "no SHA-256"},
		{"a session that ended before it began",
			"insert into sessions (session_id, key_id, hash, created_at, used_at, expires_at) values (gen_random_uuid(), gen_random_uuid(), decode(repeat('00', 32), 'hex'), 2, 2, 1)", "before it was made"},
		{"a session of no key",
			"insert into sessions (session_id, key_id, hash, created_at, used_at, expires_at) values (gen_random_uuid(), gen_random_uuid(), decode(repeat('00', 32), 'hex'), 1, 1, 2)", "a key that is not there"},
		{"a key of no role",
			"insert into api_keys (created_at, name, key_id, role, namespaces, queues, hash) values (1, 'k', gen_random_uuid(), 9, '', '', decode(repeat('00', 32), 'hex'))", "a role that is not known"},
		{"a key without its hash",
			"insert into api_keys (created_at, name, key_id, role, namespaces, queues, hash) values (1, 'k', gen_random_uuid(), 1, '', '', decode('00', 'hex'))", "no SHA-256"},
		{"a key for everything",
			"insert into api_keys (created_at, name, key_id, role, namespaces, queues, hash) values (1, 'k', gen_random_uuid(), 2, '', '', decode(repeat('00', 32), 'hex'))", "only an admin's is"},
		{"an admin for one queue",
			"insert into api_keys (created_at, name, key_id, role, namespaces, queues, hash) values (1, 'k', gen_random_uuid(), 1, '', '[\"q\"]', decode(repeat('00', 32), 'hex'))", "only a worker's is"},
		{"a hook of no scheme",
			"insert into hooks (hook_id, namespace, name, task_queue, workflow_type, scheme, secret, created_at) values (gen_random_uuid(), 'default', 'h', 'q', 't', 9, '0123456789abcdef', 1)", "a scheme that is not known"},
		{"a hook with a short secret",
			"insert into hooks (hook_id, namespace, name, task_queue, workflow_type, scheme, secret, created_at) values (gen_random_uuid(), 'default', 'h', 'q', 't', 1, 'short', 1)", "no secret that it may have"},
		{"a hook without a type",
			"insert into hooks (hook_id, namespace, name, task_queue, workflow_type, scheme, secret, created_at) values (gen_random_uuid(), 'default', 'h', 'q', '', 1, '0123456789abcdef', 1)", "no name, queue or type"},
		{"an earlier secret without an end",
			"insert into hooks (hook_id, namespace, name, task_queue, workflow_type, scheme, secret, created_at, old_secret) values (gen_random_uuid(), 'default', 'h', 'q', 't', 1, '0123456789abcdef', 1, 'old')", "an earlier secret without an end"},
		{"a hook rotated before it was made",
			"insert into hooks (hook_id, namespace, name, task_queue, workflow_type, scheme, secret, created_at, rotated_at) values (gen_random_uuid(), 'default', 'h', 'q', 't', 1, '0123456789abcdef', 2, 1)", "was rotated before it was made"},
		{"tags that are no text of ours", "update runs set tags = 'x' where status = 4", "its tags cannot be read"},
		{"a worker's queues that are none", "update workers set queues = ''", "its queues cannot be read"},
		{"a worker that is gone", "delete from workers", "held by a worker that is not there"},
	} {
		t.Run(broken.name, func(t *testing.T) { expectFinding(t, url, broken.script, broken.want) })
	}
}

// expectFinding damages the database in a transaction, checks it, and rolls back.
func expectFinding(t *testing.T, url, script, want string) {
	t.Helper()
	ctx := context.Background()
	tx, err := adminConnection(t, url).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, script, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	findings, err := check(ctx, tx)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if strings.Contains(f.Text, want) {
			return
		}
	}
	t.Errorf("findings = %v, want one that says %q", findings, want)
}

func TestOfAnOlderSchemaNoRowsAreChecked(t *testing.T) {
	url := pgtest.URL(t)
	list, err := migrations.List("postgres")
	if err != nil {
		t.Fatal(err)
	}
	admin := adminConnection(t, url)
	err = pgx.BeginFunc(t.Context(), admin, func(tx pgx.Tx) error {
		a := &address{place: place{byPath: true}}
		_, err := a.migrateOnce(t.Context(), tx, list[:2])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if findings, err := Check(t.Context(), url); err == nil ||
		!strings.Contains(err.Error(), "run `kagzi db migrate`") {
		t.Errorf("findings = %v (%v), want to be told what to do first", findings, err)
	}
}
