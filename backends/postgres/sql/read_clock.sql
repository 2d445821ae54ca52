-- The database's clock in microseconds, at the moment of reading and not of the transaction.
select (extract(epoch from clock_timestamp()) * 1000000)::bigint
