-- Fold what readers allow. One row: whether it was kept from finishing, pages in the log, pages folded.
pragma wal_checkpoint(passive)
