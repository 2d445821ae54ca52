package sqlite3

import (
	"bytes"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
	lib "modernc.org/sqlite/lib"
)

// SQLite checks the structure of a file but not its content: a flipped bit in a payload, a key or a
// status is returned like any other value. So every page ends with a checksum of its number and the
// rest of the page, in bytes that SQLite reserves for extensions (byte 20 of the file says how
// many). It is written with every page of the file and its log, and checked on every read
// (checksum_file.go). It covers the number, so a page in another page's place fails the check, and
// so does a page of zeros.
//
// It cannot detect a page, or a file, that is intact but old, because a write was confirmed and
// then lost.
//
// Other programs can read such a file. Pages that they write have no checksum. In the log that does
// no harm, because SQLite has its own checksum there. In the file it counts as damage, until `kagzi
// db check --accept` accepts it.

// checksumBytes is the number of bytes reserved in each page: 8 of checksum and 8 of balance.
const checksumBytes = 16

// checksum returns the checksum of a page; page numbers begin with 1.
func checksum(page []byte, number uint32) uint64 {
	return xxhash.Sum64(page[:len(page)-checksumBytes]) ^ uint64(number)*0x9e3779b97f4a7c15
}

// PageHolds reports whether the page is unchanged since it was written with this number.
func PageHolds(page []byte, number uint32) bool {
	return binary.LittleEndian.Uint64(page[len(page)-checksumBytes:]) == checksum(page, number)
}

// IsBare reports whether the page has no checksum at all: another program wrote it. A page of zeros
// is one that was lost.
func IsBare(page []byte) bool {
	end := len(page) - checksumBytes
	return allZero(page[end:]) && !allZero(page[:end])
}

func allZero(text []byte) bool { return len(bytes.Trim(text, "\x00")) == 0 }

// Fields of the header that a copy by SQLite's own tools changes.
const (
	changesAt      = 24 // how often the file was changed
	cookieAt       = 40 // how often its schema was
	validForAt     = 92 // the changes at which the version was written
	versionAt      = 96 // of the library
	triedCookies   = 1 << 10
	triedChanges   = 1 << 6
	libraryVersion = lib.SQLITE_VERSION_NUMBER
)

// IsCopiedFirst reports whether the first page is one of this program's in which only fields of the
// header changed that SQLite's backup sets, as by the shell's .backup.
func IsCopiedFirst(page []byte) bool {
	if !isFirst(page) {
		return false
	}
	try := bytes.Clone(page)
	binary.BigEndian.PutUint32(try[versionAt:], libraryVersion)
	for changes := range uint32(triedChanges) {
		binary.BigEndian.PutUint32(try[changesAt:], changes)
		binary.BigEndian.PutUint32(try[validForAt:], changes)
		for cookie := range uint32(triedCookies) {
			binary.BigEndian.PutUint32(try[cookieAt:], cookie)
			if PageHolds(try, 1) {
				return true
			}
		}
	}
	return false
}

// putChecksum ends the page with its checksum. Before that, SQLite has computed its own sum of the
// page for the log. The balance after the checksum undoes what the checksum adds to that sum, so
// other programs, and SQLite when it recovers a log, find SQLite's sum correct.
//
// SQLite's sum takes two words of 32 bits at a time, a and b: s += a + t, t += b + s. If the words
// of the checksum change by x and y, then s has changed by 2x+y, and t by x+y more, when the two
// words of the balance follow.
func putChecksum(page []byte, number uint32, order binary.ByteOrder) {
	tail := page[len(page)-checksumBytes:]
	x, y := order.Uint32(tail), order.Uint32(tail[4:])
	binary.LittleEndian.PutUint64(tail, checksum(page, number))
	x, y = order.Uint32(tail)-x, order.Uint32(tail[4:])-y
	order.PutUint32(tail[8:], order.Uint32(tail[8:])-(2*x+y))
	order.PutUint32(tail[12:], order.Uint32(tail[12:])-(x+y))
}

// The header of a file, at the start of its first page.
const (
	fileMagic   = "SQLite format 3\x00"
	reservedAt  = 20 // one byte: how many bytes of each page are reserved
	pageSizeAt  = 16 // two bytes, of which 1 means 65536
	headerBytes = 100
	// readVersionAt is one byte: how the file is to be read.
	readVersionAt = 19
	withoutLog    = 1
	leastPage     = 512
	maxPage       = 65536
)

// isFirst reports whether these bytes are the start of a database file.
func isFirst(page []byte) bool {
	return len(page) >= headerBytes && string(page[:len(fileMagic)]) == fileMagic
}

// reservesChecksum reports whether the pages of the file whose first page this is have room for
// checksums, and therefore have them.
func reservesChecksum(page []byte) bool { return page[reservedAt] == checksumBytes }

// isPageSize reports whether SQLite allows that page size.
func isPageSize(n int32) bool { return n >= leastPage && n <= maxPage && n&(n-1) == 0 }
