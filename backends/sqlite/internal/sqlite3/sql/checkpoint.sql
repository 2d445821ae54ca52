-- Checkpoint what readers allow. One row: whether it was kept from finishing, pages in the log, pages in the file.
pragma wal_checkpoint(passive)
