-- Locks a namespace that is to be changed, before anybody looks at it. No row: nothing has used it.
select namespace from namespaces where namespace = @namespace for no key update
