-- The journal mode and synchronous level of the connection. Always one row.
select j.journal_mode, s.synchronous from pragma_journal_mode j, pragma_synchronous s
