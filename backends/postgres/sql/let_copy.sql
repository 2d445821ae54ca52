-- The transaction belongs to this copy, whose fence lets it pass. Always one row.
select set_config('kagzi.copy', @copy, true)
