-- How many places of a type's concurrency key are taken: by leases, and by open runs. Always one row.
select
    (select count(*)
     from leases
     where namespace = @namespace and workflow_type = @workflow_type and concurrency_key = @concurrency_key and concurrency_key <> '')
    + (select count(*)
       from runs
       where namespace = @namespace and workflow_type = @workflow_type and concurrency_key = @concurrency_key and has_place = 1 and finished_at is null)
