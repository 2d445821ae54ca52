package dbfile

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"

	"github.com/kagzi/kagzi/backends/sqlite/internal/sqlite3"
)

// Diagnosis tells what pages of a file are not as this program wrote them, and why that may be.
type Diagnosis struct {
	Path       string
	Pages      int64
	Bare       []int64 // pages without a checksum, which another program wrote
	Wrong      []int64 // pages that do not match their checksum
	Sound      bool    // SQLite finds the file sound, whatever the checksums say
	Litestream bool    // it has Litestream's tables
}

//go:embed sql/page_content.sql
var pageContentSQL string

//go:embed sql/litestream_tables.sql
var litestreamTablesSQL string

// Diagnose reads all pages of the file at path. It returns nil if that is not possible, the file is
// larger than maxBytes (0: no limit), or has no checksums.
func Diagnose(ctx context.Context, path string, maxBytes int64) *Diagnosis {
	path, err := filepath.Abs(path) // a DSN has no relative paths
	if err != nil {
		return nil
	}
	c, err := openReadOnly(path, nil, "&"+sqlite3.UncheckedParam+"=1")
	if err != nil {
		return nil
	}
	defer c.Close()
	size, _, err := c.Size(ctx)
	if checked, failure := c.HasChecksums(); err != nil || failure != nil || !checked || maxBytes > 0 &&
		size > maxBytes {
		return nil
	}
	d := &Diagnosis{Path: path}
	err = c.Query(ctx, &pageContentSQL, func(r *sqlite3.Row) error {
		number, page := r.Int(), r.View()
		d.Pages++
		switch {
		case sqlite3.PageHolds(page, uint32(number)):
		case sqlite3.IsBare(page), number == 1 && sqlite3.IsCopiedFirst(page):
			d.Bare = append(d.Bare, number)
		default:
			d.Wrong = append(d.Wrong, number)
		}
		return nil
	})
	if err != nil || len(d.Bare)+len(d.Wrong) == 0 {
		return nil
	}
	lines := 0
	integrity := "pragma integrity_check(1)"
	err = c.Query(ctx, &integrity, func(r *sqlite3.Row) error {
		d.Sound = lines == 0 && r.Text() == "ok"
		lines++
		return nil
	})
	if d.Sound = d.Sound && err == nil; d.Sound {
		// what cannot be read is no reason to say less
		_ = c.Query(ctx, &litestreamTablesSQL, func(*sqlite3.Row) error {
			d.Litestream = true
			return nil
		})
	}
	return d
}

// ByAnother reports whether another program made the file, and no page is damaged.
func (d *Diagnosis) ByAnother() bool { return d != nil && d.Sound && len(d.Wrong) == 0 }

// String says what happened to the file, and what to do.
func (d *Diagnosis) String() string {
	accept := "kagzi db check --accept --db sqlite:" + d.Path
	copied := "sqlite3's .backup and VACUUM INTO, and Litestream, write such files"
	if d.Litestream {
		copied = "it has tables of Litestream"
	}
	switch {
	case d.ByAnother():
		return fmt.Sprintf(
			"another program wrote the file: %d of %d pages have no checksum of Kagzi, the others match "+
				"theirs, and SQLite finds the file sound (%s). If it is the file you want, accept it with the server "+
				"stopped: %s. Copies by kagzi db backup need no such step", len(d.Bare), d.Pages, copied, accept)
	case d.Sound:
		return fmt.Sprintf(
			"%d of %d pages do not match their checksum (the first is page %d) and %d have none, but SQLite "+
				"finds the file sound: the pages are damaged, or another program changed them (%s). If you know that "+
				"program did, accept the file with the server stopped: %s. Otherwise restore a backup: kagzi db restore",
			len(d.Wrong), d.Pages, first(d.Wrong), len(d.Bare), copied, accept)
	}
	return fmt.Sprintf(
		"the file is damaged: %d of %d pages do not match their checksum, %d have none, and SQLite finds "+
			"it unsound; restore a backup: kagzi db restore", len(d.Wrong), d.Pages, len(d.Bare))
}

func first(numbers []int64) int64 {
	if len(numbers) == 0 {
		return 0
	}
	return numbers[0]
}
