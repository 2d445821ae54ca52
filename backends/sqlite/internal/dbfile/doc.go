// Package dbfile handles a database file before its rows are read: where it is and who may use it
// (path.go, private_*.go, owner_*.go, network_*.go), the lock that keeps other processes out
// (lock*.go), whether it is still the file that was opened (file_identity.go), its schema and
// states (schema.go, state.go), read-only connections, also while another process runs a server on
// it (reader.go), leftovers of killed processes (leftover.go), free disk space (disk_space.go),
// durable renames (rename_*.go), and which SQLite errors end a server (errors.go).
package dbfile
