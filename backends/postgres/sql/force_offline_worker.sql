-- Makes the worker OFFLINE. Always one row.
update workers
set status = 3, reason = @reason::smallint, deregistered_at = @now::bigint,
    last_heartbeat_at = least(last_heartbeat_at, @now::bigint), -- the clock may have been set back
    lost_runs = case when @reason::smallint = 2 then (select count(*) from leases l where l.worker_id = @worker_id::text) else 0 end,
    lost_suspects = case when @reason::smallint = 2 then (
        select count(*) from leases l
        join runs r on r.run_id = l.run_id and r.suspect <> ''
        where l.worker_id = @worker_id::text and l.suspect and not l.progressed
          and l.claimed_at > least(last_heartbeat_at, @now::bigint) - @suspect_us::bigint) else 0 end
where worker_id = @worker_id::text
