package xaes

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"
)

func TestXAES(t *testing.T) {
	for _, c := range []struct {
		key           byte
		binding, want string
	}{
		{1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		t.Run(fmt.Sprintf("opens the specification's example under key %02x", c.key), func(t *testing.T) {
			x, err := New(bytes.Repeat([]byte{c.key}, KeySize))
			if err != nil {
				t.Fatal(err)
			}
			want, _ := hex.DecodeString(c.want)
			plain, err := x.Open(append([]byte("ABCDEFGHIJKLMNOPQRSTUVWX"), want...), []byte(c.binding))
			if err != nil || string(plain) != "XAES-256-GCM" {
				t.Fatalf("open = %q, %v", plain, err)
			}
		})
	}
}
