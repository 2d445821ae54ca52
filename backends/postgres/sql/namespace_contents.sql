-- Counts what a namespace holds, of each kind up to a limit. Always one row.
select
    (select count(*) from (select from runs where namespace = @namespace limit @limit) r),
    (select count(*) from (select from schedules where namespace = @namespace limit @limit) s),
    (select count(*) from (select from workers where namespace = @namespace and status <> 3 limit @limit) w),
    (select count(*) from (select from hooks where namespace = @namespace limit @limit) h)
