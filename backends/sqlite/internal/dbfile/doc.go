// Package dbfile is the life of a database file before anybody reads its rows: where it really is
// and who may use it (path.go, private_*.go, owner_*.go, network_*.go), the lock that keeps a
// second process out (lock*.go), whether it is still the file that was opened (file_identity.go),
// its schema and what it says of itself (schema.go, state.go), connections that only read, also
// beside a server of another process (reader.go), leftovers of killed processes (leftover.go), free
// space of its disk (disk_space.go), durable renames (rename_*.go), and which of SQLite's errors
// end a server (errors.go).
package dbfile
