-- Checkpoints everything and truncates the log. One row, as for checkpoint.sql.
pragma wal_checkpoint(truncate)
