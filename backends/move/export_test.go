package move

// SetBatch makes batches as small as a test needs them to be many.
func SetBatch(rows, bytes int) { batchRows, batchBytes = rows, bytes }
