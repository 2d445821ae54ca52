-- All schedules, counted. No row: there are none.
select enabled, count(*) from schedules where @namespace = '' or namespace = @namespace group by enabled
