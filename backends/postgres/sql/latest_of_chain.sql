-- The newest run of those that continue a chain: the one that goes on, or the last that is kept. No row: there is none.
select run_id from runs
where namespace = @namespace and first_run_id = @first
order by continued_as is not null, run_id desc
limit 1
