-- Runs that ended before a time, oldest first, except pinned runs, runs imported since, runs that an open run refers
-- to, and runs that another transaction has locked; with the approximate number of rows of each, chunks of large values
-- included. No row: none.
--
-- Subqueries instead of "not exists" look up each run in an index; a join may read all of one.
select r.run_id, r.steps + r.attempts + r.bytes / 2000
from runs r
where r.namespace = @namespace and r.status = @status and r.status > 3 and r.finished_at < @before and not r.pinned
  and (r.origin <> 3 or r.run_id < @imported_before)
  and not exists (select from runs x where x.run_id = r.parent_run_id and x.status + 0 <= 3)
  and not exists (select from runs x where x.run_id = r.continued_as and x.status + 0 <= 3)
  and (select x.run_id from runs x where x.parent_run_id = r.run_id and x.status + 0 <= 3 limit 1) is null
  and (select x.run_id from runs x where x.failed_run_id = r.run_id and x.status + 0 <= 3 limit 1) is null
  and (select x.run_id from runs x where x.retried_from = r.run_id and x.status + 0 <= 3 limit 1) is null
order by r.finished_at, r.run_id
limit @limit
for update of r skip locked
