package sqlite

import (
	"context"
	"fmt"
	"os"

	"github.com/kagzi/kagzi/backends/sqlite/internal/backup"
	"github.com/kagzi/kagzi/backends/sqlite/internal/dbfile"
	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
)

const (
	// maxRenewedAtStart is up to which size a server adds checksums to a database when it starts, which takes some seconds.
	maxRenewedAtStart = 256 << 20
	anySize           = 1 << 62
)

// withChecksums is c, or a new connection to the file that has taken the place of one without checksums. Where that cannot be had the file
// stays as it is, which is an error only when it is to be of any size.
func (s *Store) withChecksums(ctx context.Context, c *sqlite3.Conn, largest int64) (*sqlite3.Conn, error) {
	checked, err := c.HasChecksums()
	if s.checked = checked; checked || err != nil {
		return c, err
	}
	size, _, err := c.Size(ctx)
	if err != nil {
		return c, err
	}
	if size > largest {
		s.log.Warn("the database has no checksums, so damage to it may go unnoticed; `kagzi db migrate` adds them while no server is at work", "size", dbfile.BytesText(size))
		return c, nil
	}
	s.log.Info("adding checksums to the database, which writes it anew", "size", dbfile.BytesText(size))
	next, err := backup.Renew(ctx, c, s.path, size)
	if failure := dbfile.AsFatal(err, true); err != nil && largest != anySize && failure == nil && ctx.Err() == nil {
		s.log.Warn("the database keeps being without checksums, so damage to it may go unnoticed", "error", err)
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("add checksums to the database: %w", err)
	}
	if err := c.Close(); err != nil {
		return c, err
	}
	err = backup.TakePlace(next, s.path)
	if dbfile.InUse(err) && largest != anySize {
		s.log.Warn("the database keeps being without checksums, so damage to it may go unnoticed; another program has it open", "error", err)
		err = os.Remove(next)
	}
	if err != nil {
		return c, err
	}
	if c, err = connectWriter(s.path, s.log); err != nil {
		return c, err
	}
	s.checked, err = c.HasChecksums()
	return c, err
}
