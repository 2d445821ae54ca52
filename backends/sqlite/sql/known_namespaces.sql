-- All namespaces, and whether they are enabled, for the writer's cache.
select namespace, enabled from namespaces
