-- All workers, counted. No row: there are none.
select status, count(*) from workers where @namespace = '' or namespace = @namespace group by status
