-- The commit of this transaction does not wait for the disk. If a crash loses announcements of steps, no harm is done: a
-- step whose code has begun runs again in any case, and a later result makes a new attempt. Always one row.
select set_config('synchronous_commit', 'off', true)
