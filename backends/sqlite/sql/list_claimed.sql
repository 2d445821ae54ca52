-- The runs that were just claimed, with payloads. One row each, in no order.
select
    {r.run_columns},
    r.lease_losses, r.steps, r.bytes,
    p.input, p.input_meta, p.output, p.output_meta
from json_each(@run_ids) id
join runs r on r.run_id = unhex(id.value)
join payloads p on p.run_id = r.run_id
