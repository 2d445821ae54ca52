-- Counts what a namespace holds, of each kind up to a limit. Always one row.
select
    (select count(*) from (select 1 from runs where namespace = @namespace limit @limit)),
    (select count(*) from (select 1 from schedules where namespace = @namespace limit @limit)),
    (select count(*) from (select 1 from workers where namespace = @namespace and status <> 3 limit @limit)),
    (select count(*) from (select 1 from hooks where namespace = @namespace limit @limit))
