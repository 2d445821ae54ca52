-- Deletes a hook. One row, or none if it is gone.
delete from hooks where hook_id = @hook_id
