-- Of which losses the suspects are that workers hold, but for those that have had their time. No row: they hold none.
select l.worker_id, r.suspect
from leases l
join runs r on r.run_id = l.run_id
where l.worker_id = any(@workers::text[]) and l.suspect and not l.progressed and l.claimed_at > @since and r.suspect <> ''
