-- The open run that this run was retried as, or that such a run continued as. No row: none.
with recursive lives (run_id, status, continued_as) as (
    select run_id, status, continued_as from runs where retried_from = @run_id
    union
    select r.run_id, r.status, r.continued_as from lives cross join runs r on r.run_id = lives.continued_as
)
select run_id from lives where status <= 3 order by run_id limit 1
