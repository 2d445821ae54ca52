-- Deletes a namespace that nothing is in. Always one row.
delete from namespaces where namespace = @namespace
