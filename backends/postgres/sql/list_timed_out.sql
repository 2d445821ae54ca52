-- Attempts that ran too long, oldest first, not locked. No row: none did.
select step_id, run_id
from steps
where status = 2 and timeout_at is not null and timeout_at <= @now
order by timeout_at, step_id
limit @limit
