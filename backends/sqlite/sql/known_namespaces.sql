-- All namespaces, and whether they are enabled, for the writer to remember.
select namespace, enabled from namespaces
