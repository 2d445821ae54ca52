-- Since when the oldest due run has been due. NULL: none is due.
select min(r.available_at)
from lanes l
join runs r on r.lane_id = l.lane_id and r.status in (1, 3) and r.available_at <= @now
where @namespace = '' or l.namespace = @namespace
