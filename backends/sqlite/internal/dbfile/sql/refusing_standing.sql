-- Why the file must not be served. No row: it may be.
select name, value from standing where name in ('moved', 'filling') order by name
