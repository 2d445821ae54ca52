-- The runs that have a lease, by id. No row: none.
select run_id from leases order by run_id
