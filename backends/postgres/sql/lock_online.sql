-- Locks workers that are about to get leases, so that none is deregistered meanwhile. Rows are the ONLINE ones.
select worker_id from workers where worker_id = any(@workers::text[]) and status + 0 = 1 order by worker_id for key share
