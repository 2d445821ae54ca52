-- Records heartbeats, as in heartbeat.sql, of locked workers that are not OFFLINE, each once. Workers are looked up one
-- by one, and updated by ctid, even if the planner knew of few.
update workers w
set active = b.active, completed = w.completed + b.completed, failed = w.failed + b.failed,
    stats = case when b.stats = '' then w.stats else b.stats end,
    last_heartbeat_at = case when b.now < w.last_heartbeat_at then w.last_heartbeat_at + 1 else b.now end
from (
    select s.*, h.at
    from unnest(
        @worker_ids::text[], @active::bigint[], @completed::bigint[], @failed::bigint[], @stats::text[], @now::bigint[]
    ) as s (worker_id, active, completed, failed, stats, now)
    cross join lateral (select ctid as at from workers where worker_id = s.worker_id offset 0) h
) b
where w.ctid = b.at
