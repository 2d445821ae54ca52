-- Runs that ended before a time, oldest first, except pinned runs, runs imported since, and runs that an open run
-- refers to; with the approximate number of rows of each, overflow pages of large values included. No row: none.
select r.run_id, r.steps + r.attempts + r.bytes / 4096
from runs r
where r.namespace = @namespace and r.status = @status and r.status > 3 and r.finished_at < @before and r.pinned = 0
  and (r.origin <> 3 or r.run_id < @imported_before)
  and not exists (select 1 from runs x where x.run_id = r.parent_run_id and x.status <= 3)
  and not exists (select 1 from runs x where x.run_id = r.continued_as and x.status <= 3)
  and not exists (select 1 from runs x where x.parent_run_id = r.run_id and x.status <= 3)
  and not exists (select 1 from runs x where x.failed_run_id = r.run_id and x.status <= 3)
  and not exists (select 1 from runs x where x.retried_from = r.run_id and x.status <= 3)
order by r.finished_at, r.run_id
limit @limit
