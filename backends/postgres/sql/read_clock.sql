-- The database's clock in microseconds, at the moment of reading instead of the transaction's start.
select (extract(epoch from clock_timestamp()) * 1000000)::bigint
