-- The inputs and outputs of runs. No row: there is no such run.
select p.run_id, p.input, p.input_meta, p.output, p.output_meta
from unnest(@run_ids::uuid[]) as r (run_id)
cross join lateral (select * from payloads where run_id = r.run_id offset 0) p
