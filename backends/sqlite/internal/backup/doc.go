// Package backup copies and replaces whole database files: backups of a file that is in use
// (backup.go, place.go), also before a migration (before_migration.go), restores (restore.go) with
// what they would lose (progress.go), new files with checksums (renew.go), and a file as one end of
// a copy between databases, with the fence of triggers around it (end.go, fence.go). It does not
// know the store: what it needs of the rows it is given as functions (CheckRows, Rows).
package backup
