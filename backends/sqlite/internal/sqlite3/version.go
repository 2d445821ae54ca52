package sqlite3

// The versions of the libraries that were verified by the steps in doc.go.
const (
	verifiedSQLite = "v1.60.1" // modernc.org/sqlite
	verifiedLibc   = "v1.77.1" // modernc.org/libc
)
