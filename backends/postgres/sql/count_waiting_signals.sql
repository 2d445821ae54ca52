-- What count_signals counts, for several runs. One row per run.
select
    r.run_id,
    (select count(*) from signals where run_id = r.run_id and step_name = ''),
    coalesce((select max(sequence) from signals where run_id = r.run_id), 0)
from unnest(@run_ids::uuid[]) as r (run_id)
