-- Reads one page, used or not.
select pgno
from sqlite_dbpage
where pgno = @page and data is not null
