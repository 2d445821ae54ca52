-- Deletes the lanes of a namespace that has no runs. No row changed: it never had any.
delete from lanes where namespace = @namespace
