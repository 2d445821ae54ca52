//go:build linux || darwin || freebsd

package sqlite3

// lockless is the name of SQLite's VFS without locks.
const lockless = "unix-none"
