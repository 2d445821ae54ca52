package sqlite

import "github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"

// FatalError is why nothing may be acknowledged any more.
type FatalError = dbfile.FatalError

var errExhausted = dbfile.ErrExhausted
