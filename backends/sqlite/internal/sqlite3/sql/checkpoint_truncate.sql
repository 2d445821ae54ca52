-- Checkpoint everything and cut the log to nothing. One row, as with a passive one.
pragma wal_checkpoint(truncate)
