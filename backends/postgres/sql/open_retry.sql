-- The open run that a run was tried again as, or that goes on for such a run. No row: there is none. They are sorted once they are found, as
-- open children are.
with recursive lives as (
    select run_id, status, continued_as from runs where retried_from = @run_id
    union
    select r.run_id, r.status, r.continued_as from lives l join runs r on r.run_id = l.continued_as
)
select run_id from lives where status <= 3 order by run_id limit 1
