-- Marks the transaction as this copy's own, so that the fence lets it pass. Always one row.
select set_config('kagzi.copy', @copy, true)
