// Package secret makes and parses the secrets of API keys and of their sessions, and makes those of hooks.
package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"math/big"
	"math/bits"
	"strings"

	"github.com/kagzi/kagzi/engine"
)

// A secret is sent with each call that needs a key. Its prefix and checksum let secret scanners
// find it with few false positives:
//
//	kz_ROLE_ID_RANDOM_SUM
//
// ID is the key's id in 22 base-62 digits, RANDOM 256 random bits in 43 digits, and SUM the CRC-32
// of everything before it in 6 digits. The secret of a session has the session's id, another mark and
// no role.
const (
	secretMark   = "kz"
	sessionMark  = "kzs"
	idDigits     = 22
	randomDigits = 43
	sumDigits    = 6
	MaxLength    = 128 // bytes; no role's name is so long that a secret passes it
)

// New returns a new secret for a key, and the hash to store.
func New(role engine.KeyRole, id engine.ID) (secret string, hash [32]byte) {
	var random [32]byte
	rand.Read(random[:]) // never fails: it ends the process instead
	secret = strings.Join([]string{secretMark, role.String(), base62(id[:], idDigits), base62(random[:], randomDigits)},
		"_")
	secret += "_" + sumOf(secret)
	return secret, Hash(secret)
}

// NewForHook returns a new secret for a hook: 256 random bits in 43 digits after kzh_.
func NewForHook() string {
	var random [32]byte
	rand.Read(random[:])
	return "kzh_" + base62(random[:], randomDigits)
}

// Parse returns the id of the key that a secret belongs to. It is cheap, and does not check whether
// the key exists.
func Parse(secret string) (engine.ID, bool) {
	if len(secret) > MaxLength {
		return engine.ID{}, false
	}
	parts := strings.Split(secret, "_")
	if len(parts) != 5 || parts[0] != secretMark || len(parts[2]) != idDigits || len(parts[3]) != randomDigits {
		return engine.ID{}, false
	}
	if sumOf(strings.TrimSuffix(secret, "_"+parts[4])) != parts[4] {
		return engine.ID{}, false
	}
	return parseBase62(parts[2])
}

// NewSession returns a new secret for a session, and the hash to store.
func NewSession(id engine.ID) (secret string, hash [32]byte) {
	var random [32]byte
	rand.Read(random[:]) // never fails: it ends the process instead
	secret = sessionMark + "_" + base62(id[:], idDigits) + "_" + base62(random[:], randomDigits)
	secret += "_" + sumOf(secret)
	return secret, Hash(secret)
}

// ParseSession returns the id of the session that a secret belongs to, as Parse does for keys.
func ParseSession(secret string) (engine.ID, bool) {
	parts := strings.SplitN(secret, "_", 5)
	if len(secret) > MaxLength || len(parts) != 4 || parts[0] != sessionMark || len(parts[1]) != idDigits ||
		len(parts[2]) != randomDigits || sumOf(strings.TrimSuffix(secret, "_"+parts[3])) != parts[3] {
		return engine.ID{}, false
	}
	return parseBase62(parts[1])
}

// Hash returns the hash of a secret to store. It needs no salt and no slow function, because 256
// random bits cannot be guessed.
func Hash(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

func sumOf(text string) string {
	return base62(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))), sumDigits)
}

// base62 returns a number with that many digits.
func base62(number []byte, digits int) string {
	text := new(big.Int).SetBytes(number).Text(62)
	return strings.Repeat("0", digits-len(text)) + text
}

// parseBase62 parses an id that base62 wrote. A number too large for an id is refused.
func parseBase62(text string) (id engine.ID, ok bool) {
	var high, low uint64
	for i := range len(text) {
		digit := strings.IndexByte(digits62, text[i])
		if digit < 0 {
			return id, false
		}
		carry, lower := bits.Mul64(low, 62)
		over, higher := bits.Mul64(high, 62)
		var c uint64
		low, c = bits.Add64(lower, uint64(digit), 0)
		high, c = bits.Add64(higher, carry, c)
		if over != 0 || c != 0 {
			return id, false
		}
	}
	for i := range 8 {
		id[i], id[8+i] = byte(high>>(56-8*i)), byte(low>>(56-8*i))
	}
	return id, true
}

const digits62 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
