-- Deletes all hooks of a namespace. One row for each; none: there were none.
delete from hooks where namespace = @namespace
