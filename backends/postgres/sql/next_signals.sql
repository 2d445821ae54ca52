-- The oldest signals of some names that no step has consumed, as next_signal finds them. No row: none waits.
select s.run_id, s.sequence, s.name, s.signal_id, s.received_at, s.step_name, s.payload, s.payload_meta
from unnest(@run_ids::uuid[], @names::text[]) as n (run_id, name)
cross join lateral (
    select * from signals
    where run_id = n.run_id and name >= n.name and name <= n.name and step_name = ''
    order by name, sequence
    limit @heads
) s
