// Package xaes is XAES-256-GCM: AES-256-GCM under keys derived from random nonces.
package xaes

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
)

const (
	KeySize   = 32
	nonceSize = 24
)

// Cipher is one key of XAES-256-GCM, as c2sp.org/XAES-256-GCM describes it: AES-256-GCM under a key
// derived from the first half of a nonce that is long enough to be drawn at random, without end.
type Cipher struct {
	block cipher.Block
	k1    [aes.BlockSize]byte // the subkey of CMAC for whole blocks
}

func New(key []byte) (*Cipher, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	x := &Cipher{block: block}
	block.Encrypt(x.k1[:], x.k1[:])
	carry := byte(0)
	for i := len(x.k1) - 1; i >= 0; i-- {
		x.k1[i], carry = x.k1[i]<<1|carry, x.k1[i]>>7
	}
	x.k1[len(x.k1)-1] ^= carry * 0x87
	return x, nil
}

// derived is the cipher for a nonce's first half.
func (x *Cipher) derived(half []byte) (cipher.AEAD, error) {
	key := make([]byte, 0, KeySize)
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

// Seal is a fresh nonce and the ciphertext.
func (x *Cipher) Seal(plain, binding []byte) ([]byte, error) {
	nonce := make([]byte, nonceSize, nonceSize+len(plain)+aes.BlockSize)
	_, _ = rand.Read(nonce) // never fails
	gcm, err := x.derived(nonce[:12])
	if err != nil {
		return nil, err
	}
	return gcm.Seal(nonce, nonce[12:], plain, binding), nil
}

// Open is the plaintext of what seal made with the same binding.
func (x *Cipher) Open(sealed, binding []byte) ([]byte, error) {
	if len(sealed) < nonceSize {
		return nil, errors.New("too short")
	}
	gcm, err := x.derived(sealed[:12])
	if err != nil {
		return nil, err
	}
	return gcm.Open(nil, sealed[12:nonceSize], sealed[nonceSize:], binding)
}
