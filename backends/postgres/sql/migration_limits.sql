-- Limits of the transaction that migrates: it waits for a lock only as long as others may wait behind it, and is ended by no limit of the role.
select set_config('lock_timeout', @lock_timeout, true)
union all
select set_config(name, '0', true) from pg_settings where name = 'transaction_timeout'
