-- Signals by their senders' ids. No row: the runs have received none with those ids.
select s.run_id, s.sequence, s.name, s.signal_id, s.received_at, s.step_name, s.payload, s.payload_meta
from unnest(@run_ids::uuid[], @signal_ids::text[]) as n (run_id, signal_id)
cross join lateral (select * from signals where run_id = n.run_id and signal_id = n.signal_id and signal_id <> '' offset 0) s
