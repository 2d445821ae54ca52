-- Checkpoints what readers allow. One row: whether another connection blocked it, pages in the log, pages copied.
pragma wal_checkpoint(passive)
