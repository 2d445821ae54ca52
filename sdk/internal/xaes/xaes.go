// Package xaes implements XAES-256-GCM: AES-256-GCM under keys derived from random nonces.
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

// Cipher is a key of XAES-256-GCM (c2sp.org/XAES-256-GCM): AES-256-GCM under a key derived from the
// first half of a 24-byte nonce, long enough to be random without limit.
type Cipher struct {
	block cipher.Block
	k1    [aes.BlockSize]byte // CMAC subkey for whole blocks
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

// derived returns the cipher for the first half of a nonce.
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

// Seal returns a new nonce followed by the ciphertext.
func (x *Cipher) Seal(plain, binding []byte) ([]byte, error) {
	nonce := make([]byte, nonceSize, nonceSize+len(plain)+aes.BlockSize)
	_, _ = rand.Read(nonce) // never fails
	gcm, err := x.derived(nonce[:12])
	if err != nil {
		return nil, err
	}
	return gcm.Seal(nonce, nonce[12:], plain, binding), nil
}

// Open returns the plaintext of what Seal made with the same binding.
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
