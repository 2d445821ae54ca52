// Package certs holds a server's certificates: it reads and judges them, takes up new ones while
// the server runs, and makes those of a small team with an authority of its own.
package certs

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// maxFile bounds what is read of a file: bundles of authorities have some hundred KiB.
const maxFile = 4 << 20

// Files are where a server's certificate lies, in PEM.
type Files struct {
	Cert     string // the certificate, followed by those between it and its authority
	Key      string // its private key, which others on the machine may not read
	ClientCA string // authorities of clients' certificates; empty: clients are asked for none
}

// UnsafeError is that a file lets others have what they must not.
type UnsafeError struct{ text string }

func (e *UnsafeError) Error() string { return e.text }

// StandingError is that what is there does not serve, and stays as long as nobody wants it made anew.
type StandingError struct{ text string }

func (e *StandingError) Error() string { return e.text }

// pair is a certificate with its key, and who may sign those of clients, as files held them at one moment.
type pair struct {
	files   Files
	stamps  []os.FileInfo
	cert    tls.Certificate
	clients *x509.CertPool // nil: none are asked for
}

// Check reads the files as a server would at the moment now. The error names the file, and says what is wrong with it.
func (f Files) Check(now time.Time) error {
	_, err := f.read(now)
	return err
}

// read reads the files and finds them good at the moment now.
func (f Files) read(now time.Time) (*pair, error) {
	p := &pair{files: f}
	certText, err := p.readFile("certificate", f.Cert, nil)
	if err != nil {
		return nil, err
	}
	chain, err := parseChain("certificate", f.Cert, certText)
	if err != nil {
		return nil, err
	}
	keyText, err := p.readFile("private key", f.Key, checkSecret)
	if err != nil {
		return nil, err
	}
	if p.cert, err = join(f, certText, keyText); err != nil {
		return nil, err
	}
	if err := judge(f.Cert, chain[0], now); err != nil {
		return nil, err
	}
	p.cert.Leaf = chain[0]
	if f.ClientCA == "" {
		return p, nil
	}
	text, err := p.readFile("authority of clients", f.ClientCA, nil)
	if err != nil {
		return nil, err
	}
	p.clients, err = authorities(f.ClientCA, text, now)
	return p, err
}

// readFile reads one of the files and remembers what it looked like before that. check finds fault with it.
func (p *pair) readFile(what, path string, check func(os.FileInfo) error) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	p.stamps = append(p.stamps, info)
	if check != nil {
		if err := check(info); err != nil {
			return nil, &UnsafeError{fmt.Sprintf("%s %s: %v", what, path, err)}
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = errors.New("it is too large to be one")
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", what, path, err)
	}
	return FileText(text), nil
}

// parseChain is all certificates in a text of PEM, which must be one at least.
func parseChain(what, path string, text []byte) (chain []*x509.Certificate, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s %s: its certificate number %d is damaged: %w", what, path, len(chain)+1, err)
		}
		chain = append(chain, c)
	}
	if len(chain) == 0 {
		return nil, fmt.Errorf("%s %s: it holds no certificate in PEM (want -----BEGIN CERTIFICATE-----)", what, path)
	}
	return chain, nil
}

// join puts a certificate and its key together.
func join(f Files, certText, keyText []byte) (tls.Certificate, error) {
	switch block := privateKey(keyText); {
	case block == nil:
		return tls.Certificate{},
			fmt.Errorf("private key %s: it holds no private key in PEM (want -----BEGIN PRIVATE KEY-----)", f.Key)
	case strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "":
		return tls.Certificate{}, fmt.Errorf("private key %s: it has a passphrase, and nobody is there to type it; "+
			"write it without one (openssl pkey -in FILE -out NEW, mode 0600)", f.Key)
	}
	joined, err := tls.X509KeyPair(certText, keyText)
	if err != nil {
		if strings.Contains(err.Error(), "does not match") {
			return joined, fmt.Errorf("private key %s does not belong to certificate %s", f.Key, f.Cert)
		}
		return joined, fmt.Errorf("private key %s: %s", f.Key, strings.TrimPrefix(err.Error(), "tls: "))
	}
	return joined, nil
}

// privateKey is the first block that holds a key, or nil.
func privateKey(text []byte) *pem.Block {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return block
		}
	}
	return nil
}

// judge refuses a server's certificate that clients would refuse.
func judge(path string, c *x509.Certificate, now time.Time) error {
	if err := checkTime(c, now); err != nil {
		return fmt.Errorf("certificate %s: %w", path, err)
	}
	usages := c.ExtKeyUsage
	if len(usages) > 0 && !slices.Contains(usages, x509.ExtKeyUsageServerAuth) &&
		!slices.Contains(usages, x509.ExtKeyUsageAny) {
		return fmt.Errorf("certificate %s: it is not for servers, but for %s", path, usage(c))
	}
	if c.IsCA {
		return fmt.Errorf(
			"certificate %s: it is an authority's, which signs certificates; want the server's, with those between it and the authority behind it", path)
	}
	return nil
}

func checkTime(c *x509.Certificate, now time.Time) error {
	switch {
	case now.After(c.NotAfter):
		return fmt.Errorf("it expired at %s", moment(c.NotAfter))
	case now.Before(c.NotBefore):
		return fmt.Errorf("it is not valid before %s, and it is %s here", moment(c.NotBefore), moment(now))
	}
	return nil
}

// authorities is who may sign the certificates of clients. Those that have expired are left out.
func authorities(path string, text []byte, now time.Time) (*x509.CertPool, error) {
	const what = "authority of clients"
	chain, err := parseChain(what, path, text)
	if err != nil {
		return nil, err
	}
	pool, wrong := x509.NewCertPool(), error(nil)
	valid := 0
	for _, c := range chain {
		if !c.IsCA {
			return nil, fmt.Errorf("%s %s: %q is no authority: it signs no certificates", what, path, c.Subject)
		}
		if wrong = errors.Join(wrong, checkTime(c, now)); checkTime(c, now) == nil {
			pool.AddCert(c)
			valid++
		}
	}
	if valid == 0 {
		return nil, fmt.Errorf("%s %s: none of its certificates is valid: %w", what, path, wrong)
	}
	return pool, nil
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// usage is what a certificate is for, in words.
func usage(c *x509.Certificate) string {
	if c.IsCA {
		return "an authority"
	}
	server, client := slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth),
		slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	switch {
	case len(c.ExtKeyUsage) == 0 || slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageAny) || server && client:
		return "servers and clients"
	case server:
		return "servers"
	case client:
		return "clients"
	}
	return "something else"
}

// kind is a public key's algorithm and size.
func kind(c *x509.Certificate) string {
	switch k := c.PublicKey.(type) {
	case *ecdsa.PublicKey:
		return "ECDSA " + k.Curve.Params().Name
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA %d", k.N.BitLen())
	case ed25519.PublicKey:
		return "Ed25519"
	}
	return c.PublicKeyAlgorithm.String()
}
