package world

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"time"
)

// mint makes UUIDv7s out of the world's own time and its seed. They grow strictly, so that newest first is the order of the ids.
type mint struct {
	luck *rand.Rand
	last uint64 // milliseconds and 12 bits of their fraction, of the id minted last
}

func (m *mint) id(now time.Time) string {
	stamp := max(idStamp(now), m.last+1)
	m.last = stamp
	return idAt(stamp, m.luck.Uint64())
}

func idStamp(t time.Time) uint64 {
	return uint64(t.UnixMilli())<<12 | uint64(t.Nanosecond()%1e6)<<12/1e6
}

func idAt(stamp, luck uint64) string {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], stamp>>12<<16|0x7000|stamp&0xfff)
	binary.BigEndian.PutUint64(id[8:], 0x8000000000000000|luck>>2)
	var b [36]byte
	hex.Encode(b[:8], id[:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:], id[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// idTime is the millisecond in which an id was minted.
func idTime(id string) time.Time {
	raw, err := hex.DecodeString(id[:8] + id[9:13])
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(append([]byte{0, 0}, raw...)))).UTC()
}

// isID says that text is a UUID in its usual form.
func isID(s string) bool {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		hex := '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
		if !hex && i != 8 && i != 13 && i != 18 && i != 23 {
			return false
		}
	}
	return true
}

// luck is the world's dice.
type luck struct{ *rand.Rand }

func newLuck(seed, stream uint64) luck { return luck{rand.New(rand.NewPCG(seed, stream))} }

// between is a length of time from a to b, both included, in whole milliseconds; with b before a it is a.
func (l luck) between(a, b time.Duration) time.Duration {
	if b <= a {
		return a
	}
	return a + time.Duration(l.Int64N(int64((b-a)/time.Millisecond)+1))*time.Millisecond
}

func (l luck) chance(p float64) bool { return l.Float64() < p }

// pick is one of several.
func pick[T any](l luck, of []T) T { return of[l.IntN(len(of))] }

// mix is a number that follows from others and looks like luck: for facts that are worked out whenever they are asked for.
func mix(numbers ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, n := range numbers {
		h ^= n
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}
