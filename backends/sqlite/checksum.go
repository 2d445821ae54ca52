package sqlite

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// SQLite checks the structure of a file and not what stands in it: a bit that turns in a payload, a key or a status is an answer like any
// other. So every page ends with a checksum of the rest of it and of its number, in bytes that SQLite keeps free for such things (reserved
// bytes: byte 20 of the file says how many). It is put there where pages are written to the file and to the log beside it, and looked at
// where they are read (checksum_vfs.go). The number is in it, so a page that stands in another's place does not hold, nor does one of zeros.
//
// What it cannot tell is a page, or a file, that is whole and old: a write that the disk confirmed and lost.
//
// Other programs read such a file as any other. What they write has no checksum of ours. In the log that is no harm, as SQLite has a
// checksum of its own on what stands there; in the file it is damage, until `kagzi db check --accept` takes it for right.

// checksumBytes is how many bytes of each page are kept for it: 8 of checksum and 8 of balance.
const checksumBytes = 16

// checksum is that of a page with this number, which begins with 1.
func checksum(page []byte, number uint32) uint64 {
	return xxhash.Sum64(page[:len(page)-checksumBytes]) ^ uint64(number)*0x9e3779b97f4a7c15
}

// holds says that the page is what was written with this number.
func holds(page []byte, number uint32) bool {
	return binary.LittleEndian.Uint64(page[len(page)-checksumBytes:]) == checksum(page, number)
}

// putChecksum ends the page with its checksum. SQLite has summed up the page, for its log, before it comes here, and words in this order. So
// what the new checksum adds to that sum the balance behind it takes away again, and the log is as SQLite would have it: other programs, and
// SQLite where it recovers, find their own sum to be right.
//
// That sum goes through the page by two words of 32 bits, a and b: s += a + t, t += b + s. What the words of the checksum change by, x and y,
// has come to 2x+y in s and x+y more in t when it meets the two words of the balance.
func putChecksum(page []byte, number uint32, order binary.ByteOrder) {
	tail := page[len(page)-checksumBytes:]
	x, y := order.Uint32(tail), order.Uint32(tail[4:])
	binary.LittleEndian.PutUint64(tail, checksum(page, number))
	x, y = order.Uint32(tail)-x, order.Uint32(tail[4:])-y
	order.PutUint32(tail[8:], order.Uint32(tail[8:])-(2*x+y))
	order.PutUint32(tail[12:], order.Uint32(tail[12:])-(x+y))
}

// The header of a file, which its first page begins with.
const (
	fileMagic   = "SQLite format 3\x00"
	reservedAt  = 20 // one byte: how many bytes of each page are kept free
	pageSizeAt  = 16 // two bytes, of which 1 means 65536
	headerBytes = 100
	// readVersionAt is one byte: how the file is to be read.
	readVersionAt = 19
	withoutLog    = 1
	leastPage     = 512
	maxPage       = 65536
)

// isFirst says that these bytes begin a file.
func isFirst(page []byte) bool {
	return len(page) >= headerBytes && string(page[:len(fileMagic)]) == fileMagic
}

// hasRoom says that the pages of the file that begins with page have room for checksums, so that they have one.
func hasRoom(page []byte) bool { return page[reservedAt] == checksumBytes }

// isPageSize says that a page of SQLite may be of so many bytes.
func isPageSize(n int32) bool { return n >= leastPage && n <= maxPage && n&(n-1) == 0 }
