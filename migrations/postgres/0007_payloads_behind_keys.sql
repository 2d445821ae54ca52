-- Payloads stand apart from the rows here, and keys in indexes of their own: what SQLite's twin does about them, nothing does here.

alter table runs add column named_deadline_at bigint; -- the deadline that the starter named, beside execution_us
alter table runs alter column named_deadline_at set statistics 0; -- as nobody filters by it
