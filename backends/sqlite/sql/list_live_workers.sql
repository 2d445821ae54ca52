-- Who is to be heard from. No row: nobody.
select worker_id, last_heartbeat_at from workers where status <> 3 order by worker_id
