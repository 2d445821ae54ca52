-- The open run that this run was retried as, or that such a run continued as. No row: none. Sorted after the search, as
-- in open_children.
with recursive lives as (
    select run_id, status, continued_as from runs where retried_from = @run_id
    union
    select r.run_id, r.status, r.continued_as from lives l join runs r on r.run_id = l.continued_as
)
select run_id from lives where status <= 3 order by run_id limit 1
