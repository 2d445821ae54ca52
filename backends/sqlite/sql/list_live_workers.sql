-- Workers that are not OFFLINE, with their last heartbeat. No row: none.
select worker_id, last_heartbeat_at from workers where status <> 3 order by worker_id
