-- Makes the worker OFFLINE. Always one row.
update workers
set status = 3, reason = @reason, deregistered_at = @now,
    last_heartbeat_at = min(last_heartbeat_at, @now), -- the clock may have been set back
    lost_runs = case when @reason = 2 then (select count(*) from leases l where l.worker_id = @worker_id) else 0 end,
    lost_suspects = case when @reason = 2 then (
        select count(*) from leases l
        join runs r on r.run_id = l.run_id and r.suspect <> ''
        where l.worker_id = @worker_id and l.suspect = 1 and l.progressed = 0
          and l.claimed_at > min(last_heartbeat_at, @now) - @suspect_us) else 0 end
where worker_id = @worker_id
