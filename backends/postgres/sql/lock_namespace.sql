-- Locks a namespace before it is read for a change. No row: nothing has used it.
select namespace from namespaces where namespace = @namespace for no key update
