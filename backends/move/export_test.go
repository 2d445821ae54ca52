package move

// SetBatch makes batches small, so that tests have many.
func SetBatch(rows, bytes int) { batchRows, batchBytes = rows, bytes }
