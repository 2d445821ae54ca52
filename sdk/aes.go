package kagzi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// What the metadata of an encrypted payload says, for people who look at a run without its keys.
const (
	metaEncoding = "encoding"
	metaCipher   = "encryption"
	metaKey      = "encryption-key"     // the id of the key
	metaInner    = "encrypted-encoding" // the encoding of what is inside, where it has one

	encrypted  = "binary/encrypted"
	cipherName = "XAES-256-GCM"
)

// AESOptions say which keys an AES codec has.
type AESOptions struct {
	Keys    map[string][]byte // by their ids, which everybody sees; 32 bytes of luck each
	Current string            // the id of the one that encrypts; all of them decrypt
	// Context is bound to each payload too, as if it were part of the key: one for each environment or customer keeps their payloads
	// apart under one key (none).
	Context string
	// AllowPlain lets Decode take payloads that are not encrypted: those of before there was a codec, and those of people who start runs and
	// signal from the command line. Whoever can write to the database can then put in a payload of their own (false: such a payload is an error).
	AllowPlain bool
}

// NewAESCodec is a Codec that encrypts payloads with AES-256-GCM, by a fresh key and nonce for each (XAES-256-GCM), so that a key
// need not be changed because of how much it has encrypted. The server, its database and its backups hold ciphertext alone.
//
// A payload is bound to what PayloadInfo says of it. It cannot be read in the place of another: not as the result of another step, nor in
// another run, nor as the input of another workflow type or external id. Decode gives back what was encrypted there, or an error, which fails
// the run: for good, unless the key is not there, for another worker may have it, and the run has a Retry. So give a new key to every worker and
// client before any of them makes it the current one, and keep an old one as long as there are runs that it has encrypted.
//
// What cannot be told apart: inputs of runs of one type without external ids, or of one type's schedules; several signals of one name to a run;
// results that one step of a run had one after the other. An older one of them can be given for a newer one.
//
// Not encrypted are the names and ids of everything, tags, labels, notes, reasons, times, sizes, and the texts, types and stacks of errors, which retry
// policies and people look at: do not put secrets into an error. A failure handler's event holds the failed run's input as it was stored.
//
// The output of a run is bound to the run's id. A capsule is imported under new ids, so that outputs that it holds, and results of
// children that had ended, cannot be read there.
// The type of a schedule is to be changed by a client that has the codec.
func NewAESCodec(o AESOptions) (Codec, error) {
	c := &aesCodec{current: o.Current, context: o.Context, allowPlain: o.AllowPlain, keys: make(map[string]*xaes, len(o.Keys))}
	for id, key := range o.Keys {
		if err := checkName("key", id); err != nil {
			return nil, fmt.Errorf("kagzi: AES codec: %w", err)
		}
		if len(key) != xaesKeySize {
			return nil, fmt.Errorf("kagzi: AES codec: key %s has %d bytes, want %d", id, len(key), xaesKeySize)
		}
		x, err := newXAES(key)
		if err != nil {
			return nil, fmt.Errorf("kagzi: AES codec: %w", err)
		}
		c.keys[id] = x
	}
	if c.keys[o.Current] == nil {
		return nil, fmt.Errorf("kagzi: AES codec: Current is %q, want the id of one of the keys", o.Current)
	}
	return c, nil
}

type aesCodec struct {
	keys       map[string]*xaes
	current    string
	context    string
	allowPlain bool
}

// Encode keeps the metadata readable, and binds it to the ciphertext.
func (c *aesCodec) Encode(p Payload, info PayloadInfo) (Payload, error) {
	metadata := maps.Clone(p.Metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	if inner := metadata[metaEncoding]; inner != "" {
		metadata[metaInner] = inner
	}
	metadata[metaEncoding], metadata[metaCipher], metadata[metaKey] = encrypted, cipherName, c.current
	data, err := c.keys[c.current].seal(p.Data, c.binding(metadata, info))
	return Payload{Data: data, Metadata: metadata}, err
}

var (
	errPlain = errors.New("the payload is not encrypted: somebody without the codec has stored it (AESOptions.AllowPlain takes such ones)")
	errAlien = errors.New("the payload cannot be decrypted: it was encrypted for another place, in another context, or by another key of this id, or it has been changed")
)

// Decode never returns anything but what was encrypted under the same info.
func (c *aesCodec) Decode(p Payload, info PayloadInfo) (Payload, error) {
	if p.Metadata[metaEncoding] != encrypted {
		if c.allowPlain {
			return p, nil
		}
		return Payload{}, NonRetryable(errPlain)
	}
	key := c.keys[p.Metadata[metaKey]]
	if key == nil {
		return Payload{}, fmt.Errorf("the payload is encrypted by key %q, which the codec does not have", p.Metadata[metaKey])
	}
	data, err := key.open(p.Data, c.binding(p.Metadata, info))
	if err != nil {
		return Payload{}, NonRetryable(errAlien)
	}
	metadata := maps.Clone(p.Metadata)
	for _, name := range []string{metaEncoding, metaCipher, metaKey, metaInner} {
		delete(metadata, name)
	}
	if inner := p.Metadata[metaInner]; inner != "" {
		metadata[metaEncoding] = inner
	}
	return Payload{Data: data, Metadata: metadata}, nil
}

// binding is what a ciphertext is authenticated together with. Each part stands behind its length, so that no two sequences are the same.
func (c *aesCodec) binding(metadata map[string]string, info PayloadInfo) []byte {
	parts := []string{"kagzi codec 1", c.context, string(info.Kind), info.WorkflowType, info.ExternalID, info.RunID, info.Start, info.Step}
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		parts = append(parts, name, metadata[name])
	}
	var all []byte
	for _, part := range parts {
		all = binary.BigEndian.AppendUint32(all, uint32(len(part)))
		all = append(all, part...)
	}
	return all
}

const (
	xaesKeySize   = 32
	xaesNonceSize = 24
)

// xaes is one key of XAES-256-GCM, as c2sp.org/XAES-256-GCM describes it: AES-256-GCM under a key derived from the first half of a
// nonce that is long enough to be drawn at random, without end.
type xaes struct {
	block cipher.Block
	k1    [aes.BlockSize]byte // the subkey of CMAC for whole blocks
}

func newXAES(key []byte) (*xaes, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	x := &xaes{block: block}
	block.Encrypt(x.k1[:], x.k1[:])
	carry := byte(0)
	for i := len(x.k1) - 1; i >= 0; i-- {
		x.k1[i], carry = x.k1[i]<<1|carry, x.k1[i]>>7
	}
	x.k1[len(x.k1)-1] ^= carry * 0x87
	return x, nil
}

// derived is the cipher for a nonce's first half.
func (x *xaes) derived(half []byte) (cipher.AEAD, error) {
	key := make([]byte, 0, xaesKeySize)
	for counter := byte(1); counter <= 2; counter++ {
		m := [aes.BlockSize]byte{0, counter, 'X', 0}
		copy(m[4:], half)
		for i := range m {
			m[i] ^= x.k1[i]
		}
		x.block.Encrypt(m[:], m[:])
		key = append(key, m[:]...)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// seal is a fresh nonce and the ciphertext.
func (x *xaes) seal(plain, binding []byte) ([]byte, error) {
	nonce := make([]byte, xaesNonceSize, xaesNonceSize+len(plain)+aes.BlockSize)
	_, _ = rand.Read(nonce) // never fails
	gcm, err := x.derived(nonce[:12])
	if err != nil {
		return nil, err
	}
	return gcm.Seal(nonce, nonce[12:], plain, binding), nil
}

// open is the plaintext of what seal made with the same binding.
func (x *xaes) open(sealed, binding []byte) ([]byte, error) {
	if len(sealed) < xaesNonceSize {
		return nil, errors.New("too short")
	}
	gcm, err := x.derived(sealed[:12])
	if err != nil {
		return nil, err
	}
	return gcm.Open(nil, sealed[12:xaesNonceSize], sealed[xaesNonceSize:], binding)
}
