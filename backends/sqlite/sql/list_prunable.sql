-- Runs that ended long ago, oldest first. No row: there are none.
select run_id
from runs
where status > 3 and finished_at < @before
order by finished_at, run_id
limit @limit
