-- Open runs of a namespace that is being emptied, by id. No row: none.
select run_id from runs where namespace = @namespace and status <= 3 order by run_id limit @limit
