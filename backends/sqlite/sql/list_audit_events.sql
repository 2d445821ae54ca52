-- A page of audit events, newest first, one more than asked for; a page backwards is in reverse order. No row: none.
select event_id, at, actor, peer, method, namespace, subject, subject_id, outcome, reason, detail
from audit
where namespace = @namespace and (@subject_id = '' or subject_id = @subject_id)
  and event_id > @above and event_id < @below
order by event_id desc
limit @limit
