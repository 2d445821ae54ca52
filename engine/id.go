package engine

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"time"
)

// ID names a run, an attempt of a step, and most other rows. It is a UUIDv7: ids made by one
// process grow with time, so rows are appended and newest-first is the order of the keys. The zero
// ID means none.
type ID [16]byte

// minted holds what NewID needs to make increasing ids.
var minted struct {
	sync.Mutex
	last uint64         // milliseconds and 12 bits of their fraction, of the last id
	rand *mathrand.Rand // set by SeedIDs; nil: the global source
}

// SeedIDs makes the ids and the jitter of this process depend on seed alone, as if it had made none
// before. It is for demos and tests with a reproducible result, in a process with a single server.
// Lease tokens and keys stay random.
func SeedIDs(seed uint64) {
	minted.Lock()
	defer minted.Unlock()
	minted.last, minted.rand = 0, mathrand.New(mathrand.NewPCG(seed, 0))
}

// Jitter returns a random number in [0,1), for delays that must not coincide.
func Jitter() float64 {
	minted.Lock()
	defer minted.Unlock()
	if minted.rand != nil {
		return minted.rand.Float64()
	}
	return mathrand.Float64()
}

// NewID returns a new ID for the time now. Ids from one process strictly increase, even if the
// clock steps back.
func NewID(now time.Time) ID {
	stamp := uint64(now.UnixMilli())<<12 | uint64(now.Nanosecond()%1e6)<<12/1e6
	minted.Lock()
	if stamp <= minted.last {
		stamp = minted.last + 1
	}
	minted.last = stamp
	draw := mathrand.Uint64
	if minted.rand != nil {
		draw = minted.rand.Uint64
	}
	random := draw()
	minted.Unlock()

	return idAt(stamp, random)
}

// FirstID returns the smallest ID that NewID can return at t, for bounds by time.
func FirstID(t time.Time) ID {
	if t.UnixMilli() < 0 {
		return ID{}
	}
	return idAt(uint64(t.UnixMilli())<<12, 0)
}

// MadeAt returns the time at which the id was made, in whole milliseconds.
func (id ID) MadeAt() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16)).UTC()
}

// DerivedID returns an ID computed from the time now, the ID of and the word why. Stores use it
// when a transaction makes rows for which the caller passed no id.
func DerivedID(now time.Time, of ID, why string) ID {
	sum := sha256.Sum256(append(of[:], why...))
	id := FirstID(now)
	copy(id[8:], sum[:8])
	id[8] = id[8]&0x3f | 0x80
	return id
}

func idAt(stamp, random uint64) ID {
	var id ID
	binary.BigEndian.PutUint64(id[:8], stamp>>12<<16|0x7000|stamp&0xfff)
	binary.BigEndian.PutUint64(id[8:], 0x8000000000000000|random>>2)
	return id
}

// IDsWith returns the first and the last ID whose text form begins with prefix. ok is false if
// there are none or prefix is empty.
func IDsWith(prefix string) (first, last ID, ok bool) {
	const low, high = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"
	if prefix == "" || len(prefix) > len(low) {
		return ID{}, ID{}, false
	}
	first, err := ParseID(prefix + low[len(prefix):])
	if err != nil {
		return ID{}, ID{}, false
	}
	last, err = ParseID(prefix + high[len(prefix):])
	return first, last, err == nil
}

// ParseID parses the UUID form with hyphens, in either case.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return ID{}, errNotUUID
	}
	digits := make([]byte, 0, 32)
	for i := range len(s) {
		if i != 8 && i != 13 && i != 18 && i != 23 {
			digits = append(digits, s[i])
		}
	}
	if _, err := hex.Decode(id[:], digits); err != nil {
		return ID{}, errNotUUID
	}
	return id, nil
}

var errNotUUID = errors.New("not a UUID")

// IsZero says whether there is no id.
func (id ID) IsZero() bool { return id == ID{} }

// LogValue makes every log format print what String returns.
func (id ID) LogValue() slog.Value { return slog.StringValue(id.String()) }

// String returns the UUID form in lower case; empty for the zero ID.
func (id ID) String() string {
	if id.IsZero() {
		return ""
	}
	var b [36]byte
	hex.Encode(b[:8], id[:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:], id[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// Token fences a lease. Each claim makes a new random one, and tokens are compared for equality
// only. A token is a secret of the worker that holds the lease: String hides it, only Wire returns
// it.
type Token [16]byte

// NewToken returns a new Token from the operating system's randomness.
func NewToken() Token {
	var t Token
	rand.Read(t[:]) // never returns an error: it crashes the process instead
	return t
}

// ParseToken parses the form that Wire returns.
func ParseToken(s string) (Token, error) {
	var t Token
	if len(s) != 2*len(t) {
		return Token{}, errNotToken
	}
	if _, err := hex.Decode(t[:], []byte(s)); err != nil {
		return Token{}, errNotToken
	}
	return t, nil
}

var errNotToken = errors.New("not a lease token: 32 hexadecimal digits")

// IsZero says whether there is no token.
func (t Token) IsZero() bool { return t == Token{} }

// Wire returns the token as workers send it.
func (t Token) Wire() string { return hex.EncodeToString(t[:]) }

func (t Token) String() string   { return "(lease token)" }
func (t Token) GoString() string { return "(lease token)" }

// Micros returns t as it is stored: UTC, whole microseconds.
func Micros(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

// MicrosUp is Micros rounded up: the result is not before any time stored in t's microsecond.
func MicrosUp(t time.Time) time.Time {
	if floor := Micros(t); floor.Before(t) {
		return floor.Add(time.Microsecond)
	}
	return Micros(t)
}
