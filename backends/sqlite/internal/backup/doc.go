// Package backup copies and replaces whole database files: backups of a file that is in use
// (backup.go, place.go) and before a migration (before_migration.go), restores (restore.go) and
// what they would lose (progress.go), rewriting with checksums (renew.go), and a file as one end of
// a copy between databases (end.go), with its fence of triggers (fence.go). It does not know the
// store; callers pass in what it needs to know of the rows (CheckRows, Rows).
package backup
