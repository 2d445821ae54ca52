-- Open runs with a deadline or grace, earliest first, without locks. No row: none.
select run_id, expires_at
from runs
where expires_at is not null and finished_at is null
order by expires_at, run_id
limit @limit
