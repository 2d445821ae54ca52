-- The runs that are held, by id. No row: none is.
select run_id from leases order by run_id
