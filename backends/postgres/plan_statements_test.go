package postgres

import (
	"io/fs"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// planned is a hot statement with arguments of the right types.
type planned struct {
	statement
	arguments args
}

// indexOf names the index that some of them must use, because the cost of another one would grow.
var indexOf = map[string]string{
	"first_gated": "runs_gate", "list_expiring": "runs_expiry", "due_schedules": "schedules_due",
	"list_prunable": "runs_ended",
	"next_of_group": "steps_open", "list_waiting": "steps_awaited", "list_child_steps": "steps_child",
	"open_children": "runs_parent",
	"list_due":      "runs_claim", "claim_chosen": "steps_awaited", "count_keys": "runs_places",
	"list_holders": "runs_places",
	"count_queue":  "leases_slot",
	"open_of":      "runs_schedule_open", "open_retry": "runs_retried", "list_retried": "runs_retried",
	"next_signal": "signals_waiting",
	"get_signal":  "signals_id", "count_signals": "signals_waiting", "prune_fires": "fires_old",
	"prune_audit": "audit_pkey", "list_timed_out": "steps_timeout",
	"requested": "runs_request", "open_external": "runs_external_active", "held_by": "leases_worker",
	"held_to_free": "leases_worker", "list_left_behind": "leases_worker",
	"lock_beating": "workers_pkey", "heartbeats": "workers_pkey",
}

func hotStatements(t *testing.T) map[string]planned {
	t.Helper()
	id := [][16]byte{engine.NewID(time.Now())}
	run := args{"run_id": id[0]}
	runs := args{"run_ids": id}
	now := time.Now().UnixMicro()
	workers := []string{"w1", "w2"}
	meet := args{"namespace": "default", "task_queue": "orders", "types": []string{"order"},
		"offer_keys":   []string{"gpu"},
		"offer_values": []string{""}, "mark": engine.BuildMark("b1"), "now": now}
	key := args{"namespace": "default", "workflow_type": "order", "concurrency_key": "k"}
	hots := map[string]planned{
		"claim": {claimSQL, merge(meet, args{"workers": []string{"w1"}, "slot_workers": []string{"w1"}, "tokens": id,
			"limited_types": []string{"order"},
			"type_limits":   []int64{5}, "queue_limit": int64(9), "floor_lanes": []int64{1}, "floors": []int64{1},
			"heads": int64(10), "by_age": int64(1), "prefer": false})},
		"claim_chosen": {claimChosenSQL, args{"run_ids": id, "workers": []string{"w1"}, "tokens": id, "now": now}},
		"lock_runs":    {lockRunsSQL, runs},
		"lock_leases":  {lockLeasesSQL, runs},
		"complete_run": {completeRunSQL, args{
			"run_ids": id, "tokens": id, "namespaces": []string{""}, "outputs": [][]byte{{1}},
			"output_metas": []string{""}, "sizes": []int64{1}, "now": []int64{now}, "behind": id,
			"max_bytes": int64(1)}},
		"get_whole_runs": {getWholeRunsSQL, runs},
		"complete_new_step": {completeNewStepSQL,
			args{"run_ids": id, "tokens": id, "namespaces": []string{""}, "step_ids": id,
				"names": []string{"pay"}, "outputs": [][]byte{{1}}, "output_metas": []string{""}, "places": []int64{1},
				"sizes": []int64{1}, "lasts": []bool{true},
				"started_at": []int64{now}, "now": []int64{now}, "branches": []string{""}, "max_steps": int64(1), "max_bytes": int64(1)}},
		"insert_run": {insertRunSQL, oneStart()},
		"check_started": {checkStartedSQL, args{
			"run_ids": id, "namespaces": []string{"default"}, "external_ids": []string{"e"},
			"request_ids": []string{"r"},
			"never":       []bool{true}}},
		"history": {historySQL, merge(run, args{"sequence": int64(0), "bytes": int64(1000)})},
	}
	for name, a := range map[string]args{
		"get_run_state": runs, "get_lease": runs, "held_by": {"worker_ids": workers},
		"held_to_free":     {"worker_id": "w1", "heard_at": now, "now": now, "limit": 100},
		"list_left_behind": {"limit": 101},
		"list_due":         merge(meet, args{"heads": 10, "apart": 1000}),
		"gate_runs":        merge(runs, args{"now": now}),
		"lock_beating":     {"worker_ids": workers},
		"heartbeats": {"worker_ids": workers, "active": []int64{1, 2}, "completed": []int64{1, 2},
			"failed": []int64{1, 2}, "stats": workers, "now": []int64{now, now}},
		"count_queue": {"namespace": "default", "task_queue": "orders"}, "first_gated": key,
		"count_keys":    {"namespace": "default", "types": []string{"order"}, "keys": []string{"k"}},
		"list_holders":  {"run_id": id[0], "limit": 5},
		"list_expiring": {"limit": 100}, "list_timed_out": {"limit": 100}, "due_schedules": {"limit": 100},
		"list_prunable": {"namespace": "default", "status": 4, "before": now, "imported_before": id[0], "limit": 100},
		"list_retried":  runs,
		"prune_steps":   runs, "prune_signals": runs, "prune_payload": runs, "prune_tags": runs, "prune_requests": runs,
		"prune_receipts": runs,
		"prune_run":      runs, "prune_fires": {"before": now, "limit": 100},
		"prune_audit":   {"before": id[0], "limit": 100},
		"open_children": run, "open_retry": run, "open_of": {"schedule_id": "s", "but": id[0]},
		"open_external": {"namespace": "default", "external_id": "e"},
		"requested":     {"namespace": "default", "request_id": "r"},
		"get_external":  {"namespace": "default", "external_id": "e", "never": true},
		"get_request":   merge(run, args{"namespace": "default", "request_id": "r"}),
		"list_waiting":  run, "next_of_group": merge(run, args{"awaited": 2}),
		"list_child_steps":   merge(run, args{"children": id}),
		"get_latest_attempt": merge(run, args{"name": "pay"}), "wake_steps": merge(run, args{"now": now}),
		"interrupt_steps":      merge(run, args{"error": "", "now": now}),
		"end_steps":            merge(run, args{"error": "", "now": now}),
		"get_attempt":          merge(run, args{"step_id": id[0]}),
		"get_attempt_of_lease": merge(run, args{"name": "pay", "token": id[0]}),
		"list_results":         run, "list_unconsumed": run, "list_late_steps": {"step_ids": id, "now": now},
		"await_steps":    {"step_ids": id, "awaited": 1},
		"lock_free_runs": runs, "still_due": merge(runs, args{"now": now}),
		"next_signal": merge(run, args{"name": "go"}), "get_signal": merge(run, args{"signal_id": "1"}),
		"count_signals": run,
	} {
		text, err := fs.ReadFile(allStatements, "sql/"+name+".sql")
		if err != nil {
			t.Fatal(err)
		}
		hots[name] = planned{hot(runColumns.Expand(string(text))), a}
	}
	return hots
}

func oneStart() args {
	var columns startColumns
	run := engine.StartRun{Run: engine.Run{ID: engine.NewID(time.Now()), Namespace: "default", Queue: "orders",
		Type:      "order",
		RequestID: "r", ExternalID: "e", Tags: map[string]string{"k": "v"}, CreatedAt: time.Now(),
		AvailableAt: time.Now()}}
	columns.add(0, &startCall{starts: []engine.StartRun{run}, lanes: []int64{1}})
	return columns.args()
}
