-- What the writer's connection promises about the disk. Always one row.
select j.journal_mode, s.synchronous from pragma_journal_mode j, pragma_synchronous s
