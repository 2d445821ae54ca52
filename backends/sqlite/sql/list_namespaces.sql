-- All names, for the writer to remember.
select namespace from namespaces
