-- Of which losses the suspects are that a worker holds, but for those that have had their time. No row: it holds none.
select r.suspect
from leases l
cross join runs r on r.run_id = l.run_id
where l.worker_id = @worker_id and l.suspect = 1 and l.progressed = 0 and l.claimed_at > @since and r.suspect <> ''
