-- Deletes the workers of a namespace that has no runs. No row: it had none.
delete from workers where namespace = @namespace returning worker_id, status
