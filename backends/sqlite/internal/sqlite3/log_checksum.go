package sqlite3

import (
	"encoding/binary"
	"io"
)

// A log (write-ahead log) is a header and frames; a frame is a frame header and a page. The
// checksum of each frame continues that of the one before it. After a crash SQLite takes the frames
// before the first broken one as committed, and the broken one as cut short by the crash. A damaged
// frame looks the same, and everything behind it would be lost silently.
//
// This file tells them apart. Every commit is synced before the next one is written, so a crash can
// cut only the last one short. A broken frame before a commit that another frame continues was
// therefore once complete and on disk: it is damaged. Damage to the last commit looks like a crash.

const (
	LogHeaderBytes   = 32
	FrameHeaderBytes = 24
	logMagic         = 0x377f0682 // one more for big-endian words
)

// logSums is SQLite's running checksum of a log.
type logSums struct{ s, t uint32 }

// of continues the checksum over data, whose length is a multiple of 8.
func (c logSums) of(order binary.ByteOrder, data []byte) logSums {
	for ; len(data) >= 8; data = data[8:] {
		c.s += order.Uint32(data) + c.t
		c.t += order.Uint32(data[4:]) + c.s
	}
	return c
}

// storedSums are always big-endian.
func storedSums(at []byte) logSums {
	return logSums{binary.BigEndian.Uint32(at), binary.BigEndian.Uint32(at[4:])}
}

// frame is a frame header with the page behind it.
type frame []byte

func (f frame) number() uint32 { return binary.BigEndian.Uint32(f) }

// commits reports whether the frame is the last of a transaction.
func (f frame) commits() bool { return binary.BigEndian.Uint32(f[4:]) != 0 }

func (f frame) salts() string { return string(f[8:16]) }

func (f frame) stored() logSums { return storedSums(f[16:]) }

func (f frame) page() []byte { return f[FrameHeaderBytes:] }

// sums returns the checksum of a frame that continues the one with these sums.
func (f frame) sums(order binary.ByteOrder, from logSums) logSums {
	return from.of(order, f[:8]).of(order, f.page())
}

// wordOrder returns the byte order of the words that a log with this header sums up.
func wordOrder(header []byte) binary.ByteOrder {
	if header[3]&1 != 0 {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// soundLogHeader reports whether SQLite accepts the header.
func soundLogHeader(header []byte) bool {
	return binary.BigEndian.Uint32(header)&^1 == logMagic && isPageSize(int32(binary.BigEndian.Uint32(header[8:]))) &&
		(logSums{}).of(wordOrder(header), header[:24]) == storedSums(header[24:])
}

// DamagedLog reports whether a log of that many bytes held more commits than SQLite would find in
// it.
func DamagedLog(log io.ReaderAt, size int64) (bool, error) {
	if size < LogHeaderBytes {
		return false, nil
	}
	header := make([]byte, LogHeaderBytes)
	if _, err := log.ReadAt(header, 0); err != nil {
		return false, err
	}
	pageSize := int32(binary.BigEndian.Uint32(header[8:]))
	if soundLogHeader(header) {
		return commitsBehind(log, size, pageSize, wordOrder(header), header)
	}
	// The header is written at once, within a sector, and synced before the first frame. So either
	// this was never a log, or it is damaged.
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, pageSize := range []int32{4096, pageSize} {
			if !isPageSize(pageSize) {
				continue
			}
			if damaged, err := commitsBehind(log, size, pageSize, order, nil); damaged || err != nil {
				return damaged, err
			}
		}
	}
	return false, nil
}

// commitsBehind reports whether a commit, and a frame that continues it, follow a broken frame or,
// without a valid header, the header.
func commitsBehind(log io.ReaderAt, size int64, pageSize int32, order binary.ByteOrder, header []byte) (bool, error) {
	var salts string // the log's or, without a header, those of the frame before
	var stored, summed logSums
	if header != nil {
		salts, stored = string(header[16:24]), storedSums(header[24:])
		summed = stored // equal as long as frames are undamaged
	}
	f := make(frame, FrameHeaderBytes+pageSize)
	broken, committed := header == nil, false
	for at := int64(LogHeaderBytes); at+int64(len(f)) <= size; at += int64(len(f)) {
		if _, err := log.ReadAt(f, at); err != nil {
			return false, err
		}
		ours, sums := f.salts() == salts, f.sums(order, stored)
		follows := sums == f.stored()
		if !follows && summed != stored { // the frame before may be the damaged one
			sums = f.sums(order, summed)
			follows = sums == f.stored()
		}
		if broken && committed && ours && follows {
			return true, nil
		}
		broken = broken || !ours || !follows || f.number() == 0
		committed = f.commits() && (ours || follows || header == nil)
		stored, summed = f.stored(), sums
		if header == nil {
			salts = f.salts()
		}
	}
	return false, nil
}
