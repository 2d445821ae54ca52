-- Limits of a migration's transaction: it waits for a lock only as long as others may wait behind it, and the role's
-- own limits do not end it.
select set_config('lock_timeout', @lock_timeout, true)
union all
select set_config(name, '0', true) from pg_settings where name = 'transaction_timeout'
