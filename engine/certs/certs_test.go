package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

var today = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// team makes the files of a team in a new directory.
func team(t *testing.T, change func(*Team)) (Files, []Made) {
	t.Helper()
	made := Team{Dir: filepath.Join(t.TempDir(), "tls"), Hosts: []string{"box.example"}, Days: 90, Now: today}
	if change != nil {
		change(&made)
	}
	list, err := made.Make()
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(made.Dir, name) }
	return Files{Cert: in("server.crt"), Key: in("server.key"), ClientCA: in("ca.crt")}, list
}

// put writes a file for its owner only.
func put(t *testing.T, path string, parts ...[]byte) {
	t.Helper()
	if err := os.WriteFile(path, bytes.Join(parts, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// signed returns a self-signed certificate and its key.
func signed(t *testing.T, template x509.Certificate) (certText, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = today.Add(-time.Hour), today.Add(time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyText(k)
}

func mentions(err error, parts ...string) bool {
	for _, p := range parts {
		if err == nil || !strings.Contains(err.Error(), p) {
			return false
		}
	}
	return true
}

func TestFilesThatCannotBeUsedAreNamedWithWhatIsWrong(t *testing.T) {
	for _, try := range []struct {
		name   string
		change func(t *testing.T, f *Files)
		says   []string
	}{
		{"good", func(*testing.T, *Files) {}, nil},
		{"without authorities of clients", func(_ *testing.T, f *Files) { f.ClientCA = "" }, nil},
		{"no certificate", func(t *testing.T, f *Files) {
			os.Remove(f.Cert)
		}, []string{"certificate: open", "server.crt", syscall.ENOENT.Error()}},
		{"no key", func(t *testing.T, f *Files) { os.Remove(f.Key) }, []string{"private key: open", "server.key"}},
		{"no authority", func(t *testing.T, f *Files) {
			os.Remove(f.ClientCA)
		}, []string{"client CA: open", "ca.crt"}},
		{"a directory", func(t *testing.T, f *Files) {
			f.Cert = filepath.Dir(f.Cert)
		}, []string{"certificate", "directory"}},
		{"no PEM", func(t *testing.T, f *Files) {
			put(t, f.Cert, []byte("hello"))
		}, []string{"server.crt", "holds no certificate in PEM"}},
		{"a damaged certificate", func(t *testing.T, f *Files) {
			put(t, f.Cert, text(t, f.Cert), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))
		}, []string{"server.crt", "number 2 is malformed"}},
		{"an endless file", func(t *testing.T, f *Files) {
			put(t, f.Cert, make([]byte, maxFile+1))
		}, []string{"server.crt", "too large"}},
		{"no key in PEM", func(t *testing.T, f *Files) {
			put(t, f.Key, text(t, f.Cert))
		}, []string{"server.key", "holds no private key in PEM"}},
		{"a damaged key", func(t *testing.T, f *Files) {
			put(t, f.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
		}, []string{"server.key"}},
		{"a key with a passphrase", func(t *testing.T, f *Files) {
			put(t, f.Key, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}))
		}, []string{"server.key", "passphrase", "openssl pkey"}},
		{"another key", func(t *testing.T, f *Files) {
			_, key := signed(t, x509.Certificate{})
			put(t, f.Key, key)
		}, []string{"server.key does not belong to certificate", "server.crt"}},
		{"a certificate of clients", func(t *testing.T, f *Files) {
			c, key := signed(t, x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
			put(t, f.Cert, c)
			put(t, f.Key, key)
		}, []string{"server.crt", "not for servers, but for clients"}},
		{"an authority's certificate", func(t *testing.T, f *Files) {
			f.Cert, f.Key = f.ClientCA, filepath.Join(filepath.Dir(f.Key), "ca.key")
		}, []string{"ca.crt", "is the certificate of a CA"}},
		{"expired", func(t *testing.T, f *Files) {
			c, key := signed(t, x509.Certificate{NotBefore: today.Add(-2 * time.Hour),
				NotAfter: today.Add(-time.Second)})
			put(t, f.Cert, c)
			put(t, f.Key, key)
		}, []string{"server.crt", "expired at 2026-11-20T11:59:59Z"}},
		{"not valid yet", func(t *testing.T, f *Files) {
			c, key := signed(t, x509.Certificate{NotBefore: today.Add(time.Second), NotAfter: today.Add(time.Hour)})
			put(t, f.Cert, c)
			put(t, f.Key, key)
		}, []string{"server.crt", "not valid before 2026-11-20T12:00:01Z"}},
		{"no authority among the authorities", func(t *testing.T, f *Files) {
			f.ClientCA = f.Cert
		}, []string{"server.crt", "box.example", "is not the certificate of a CA"}},
		{"only an authority that has expired", func(t *testing.T, f *Files) {
			c, _ := signed(t, x509.Certificate{IsCA: true, BasicConstraintsValid: true,
				NotBefore: today.Add(-2 * time.Hour), NotAfter: today.Add(-time.Hour)})
			put(t, f.ClientCA, c)
		}, []string{"ca.crt", "none of its certificates is valid", "expired"}},
		{"an authority that has expired beside one that has not", func(t *testing.T, f *Files) {
			c, _ := signed(t, x509.Certificate{IsCA: true, BasicConstraintsValid: true,
				NotBefore: today.Add(-2 * time.Hour), NotAfter: today.Add(-time.Hour)})
			put(t, f.ClientCA, c, text(t, f.ClientCA))
		}, nil},
	} {
		t.Run(try.name, func(t *testing.T) {
			f, _ := team(t, nil)
			try.change(t, &f)
			_, err := f.read(today)
			if (err == nil) != (try.says == nil) || err != nil && !mentions(err, try.says...) {
				t.Errorf("error %v, want one that says %q", err, try.says)
			}
		})
	}
}

func TestAKeyThatOthersCanReadIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes here")
	}
	f, _ := team(t, nil)
	for mode, safe := range map[os.FileMode]bool{
		0o400: true, 0o600: true, 0o640: true, 0o440: true, 0o644: false, 0o604: false, 0o660: false, 0o601: false} {
		if err := os.Chmod(f.Key, mode); err != nil {
			t.Fatal(err)
		}
		_, err := f.read(today)
		if unsafe := (*UnsafeError)(nil); errors.As(err, &unsafe) == safe || err != nil &&
			!mentions(err, "server.key", "chmod 600") {
			t.Errorf("with mode %04o: %v, want that it is fine: %v", mode, err, safe)
		}
	}
}

func TestShowTellsWhatACertificateIs(t *testing.T) {
	f, _ := team(t, func(t *Team) { t.Hosts = []string{"box.example", "10.0.0.7"} })
	put(t, f.Cert, text(t, f.Cert), text(t, f.ClientCA))
	shown, err := Show(f.Cert)
	if err != nil || len(shown) != 2 {
		t.Fatalf("shown %v, %v, want two", shown, err)
	}
	s := shown[0]
	if s.Subject != "CN=box.example,O=Kagzi" || s.Issuer != "CN=Kagzi authority 2026-11-20,O=Kagzi" ||
		s.For != "servers" || s.Kind != "ECDSA P-256" ||
		strings.Join(s.Hosts, " ") != "box.example localhost 10.0.0.7 127.0.0.1 ::1" ||
		!s.Until.Equal(today.AddDate(0, 0, 90)) {
		t.Errorf("shown %+v", s)
	}
	if shown[1].For != "an authority" {
		t.Errorf("the second is for %s, want an authority", shown[1].For)
	}
	for now, want := range map[time.Time]int{
		today: 90, today.Add(time.Second): 89, s.Until: 0, s.Until.Add(time.Second): -1} {
		if got := s.DaysLeft(now); got != want {
			t.Errorf("days left at %s = %d, want %d", now, got, want)
		}
	}
	if _, err := Show(f.Key); !mentions(err, "server.key", "holds no certificate") {
		t.Errorf("of a key: %v", err)
	}
}

// subject returns the name of a template.
func subject(name string) pkix.Name { return pkix.Name{CommonName: name} }
