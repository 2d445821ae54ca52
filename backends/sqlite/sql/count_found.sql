-- How many external ids and run ids a search finds, at most @limit of each. Always one row.
select
    (select count(*) from (
        select 1 from runs
        where namespace = @namespace and external_id <> '' and external_id >= @search and external_id < @search || char(127)
        limit @limit))
    + (select count(*) from (
        select 1 from runs where namespace = @namespace and run_id >= @search_first and run_id <= @search_last limit @limit))
