package engine

import "log/slog"

// OpenOptions says how a store is opened. The zero value migrates and logs nothing.
type OpenOptions struct {
	KeepSchema bool // refuse an old schema instead of migrating it
	// ReadOnly opens the database for reading only, also while another process serves it: nothing of it is changed, an old schema is
	// refused, and every verb that would write fails with ErrReadOnly. Health is nil while the store is open, and Listen notifies nothing but
	// NotifyAll, shortly after another process has changed something. SQLite only, and not in the process that serves the database.
	ReadOnly bool
	// Serving says that the store is for a server and not for a command that is soon over: SQLite lengthens its log ahead of the commits (18 MiB).
	Serving bool
	// Volatile says that nothing need survive the program, as in demos and tests: only then is "memory:" opened.
	Volatile bool
	Log      *slog.Logger
}

// SchemaStatus compares a database with the migrations that this program has.
type SchemaStatus struct {
	Applied int      // number of the newest migration applied; 0: an empty database
	Newest  int      // number of the newest that this program has
	Pending []string // names of those to come, in order
	Missing bool     // there is no database file; migrations make it
	// Standing is StandingMoved or StandingFilling where the database is not to be served, and Refusal then says why and what to do.
	Standing string
	Refusal  string
}

// Refuse notes that the database stands as name, with that value.
func (s *SchemaStatus) Refuse(name, value string) {
	s.Standing, s.Refusal = name, ServingRefused(name, value).Error()
}

// Finding is something that is wrong in a database.
type Finding struct {
	Subject string // "run 0198…", "index runs_claim"
	Text    string
}
