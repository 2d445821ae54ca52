-- Which builds have diverged from runs of a queue that wait apart, where the marked build is none of them. One lookup for
-- each answer, however many runs wait. No row: no run waits that the build may have.
with recursive apart (diverged) as (
    select min(diverged) from runs where namespace = @namespace and task_queue = @task_queue and suspect_at is not null
    union all
    select (
        select min(r.diverged) from runs r
        where r.namespace = @namespace and r.task_queue = @task_queue and r.suspect_at is not null and r.diverged > a.diverged)
    from apart a
    where a.diverged is not null
)
select diverged from apart where diverged is not null and instr(diverged, @mark) = 0
