package sqlite3

// The versions of the library that the steps in doc.go were gone through with.
const (
	verifiedSQLite = "v1.60.1" // modernc.org/sqlite
	verifiedLibc   = "v1.77.1" // modernc.org/libc
)
