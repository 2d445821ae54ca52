-- The length of the whole list. Always one row.
select count(*) from audit where namespace = @namespace and (@subject_id = '' or subject_id = @subject_id)
