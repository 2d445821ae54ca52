package bench

// openFiles is unknown: there is no such limit.
func openFiles() uint64 { return 0 }
