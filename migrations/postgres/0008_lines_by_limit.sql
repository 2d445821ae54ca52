-- In the line of a concurrency key the runs of each limit stand by themselves: one whose limit leaves no room is not to keep back those whose does.
drop index runs_gate;
create index runs_gate on runs (namespace, workflow_type, concurrency_key, lane_id, concurrency_limit, held_at, run_id) where gated;
