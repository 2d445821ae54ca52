// Package secret makes and reads the secrets of API keys.
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

// A secret is what whoever has a key sends with each call. It begins and ends so that those who
// search files for lost secrets find it and little else:
//
//	kz_ROLE_ID_RANDOM_SUM
//
// ID is the key's id in 22 digits of base 62, RANDOM 256 random bits in 43, and SUM the CRC-32 of all before it in 6.
const (
	secretMark   = "kz"
	idDigits     = 22
	randomDigits = 43
	sumDigits    = 6
	MaxLength    = 128 // bytes; no role's name is so long that a secret passes it
)

// New makes the secret of a key, and what the database keeps of it.
func New(role engine.KeyRole, id engine.ID) (secret string, hash [32]byte) {
	var random [32]byte
	rand.Read(random[:]) // never fails: it ends the process instead
	secret = strings.Join([]string{secretMark, role.String(), base62(id[:], idDigits), base62(random[:], randomDigits)},
		"_")
	secret += "_" + sumOf(secret)
	return secret, Hash(secret)
}

// Parse reads the id of the key that a secret belongs to. It is cheap, and says nothing of whether there is such a key.
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

// Hash is all that is kept of a secret. It needs no salt and no slowness, because nobody can guess 256 random bits.
func Hash(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

func sumOf(text string) string {
	return base62(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))), sumDigits)
}

// base62 is a number in so many digits.
func base62(number []byte, digits int) string {
	text := new(big.Int).SetBytes(number).Text(62)
	return strings.Repeat("0", digits-len(text)) + text
}

// parseBase62 reads what base62 wrote of an id. Anything larger is none.
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
