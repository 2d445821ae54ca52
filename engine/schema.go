package engine

import "log/slog"

// OpenOptions says how a store is opened. The zero value migrates and logs nothing.
type OpenOptions struct {
	KeepSchema bool // refuse an old schema instead of migrating it
	Log        *slog.Logger
}

// SchemaStatus compares a database with the migrations that this program has.
type SchemaStatus struct {
	Applied int      // number of the newest migration applied; 0: an empty database
	Newest  int      // number of the newest that this program has
	Pending []string // names of those to come, in order
}

// Finding is something that is wrong in a database.
type Finding struct {
	Subject string // "run 0198…", "index runs_claim"
	Text    string
}
