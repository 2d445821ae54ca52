-- Why the file is not to be served. No row: it may be.
select name, value from standing where name in ('moved', 'filling') order by name
