-- reads one page, whatever is on it
select pgno
from sqlite_dbpage
where pgno = @page and data is not null
