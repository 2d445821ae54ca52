-- The bytes of unconsumed signals, by their metadata. No row: none waits.
select count(*), coalesce(sum(octet_length(payload)), 0)::bigint, payload_meta
from signals
where run_id = @run_id and step_name = ''
group by payload_meta
