-- Each page as it is in the file, in order.
select pgno, data
from sqlite_dbpage
order by pgno
