// Package certs handles TLS certificates: it reads and checks a server's certificate, reloads it
// while the server runs, and makes certificates for a small team with its own CA.
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

// maxFile limits how much of a file is read; CA bundles have a few hundred KiB.
const maxFile = 4 << 20

// Files holds the paths of a server's certificate files, in PEM.
type Files struct {
	Cert     string // the certificate, followed by its intermediate certificates
	Key      string // its private key, which other users must not be able to read
	ClientCA string // CAs of client certificates; empty: clients are not asked for a certificate
}

// UnsafeError says that other users can read or change a file that they must not.
type UnsafeError struct{ text string }

func (e *UnsafeError) Error() string { return e.text }

// StandingError says that an existing certificate cannot be used, and is only replaced with
// Team.Renew.
type StandingError struct{ text string }

func (e *StandingError) Error() string { return e.text }

// pair holds a certificate, its key and the client CAs, as read from the files at one time.
type pair struct {
	files   Files
	stamps  []os.FileInfo
	cert    tls.Certificate
	clients *x509.CertPool // nil: clients are not asked for a certificate
}

// Check reads and checks the files as a server would at the time now. Its error names the file and
// the problem.
func (f Files) Check(now time.Time) error {
	_, err := f.read(now)
	return err
}

// read reads the files and checks that they are valid at the time now.
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
	text, err := p.readFile("client CA", f.ClientCA, nil)
	if err != nil {
		return nil, err
	}
	p.clients, err = authorities(f.ClientCA, text, now)
	return p, err
}

// readFile reads one of the files and records its file info. check may refuse the file.
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
		err = errors.New("the file is too large")
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", what, path, err)
	}
	return FileText(text), nil
}

// parseChain returns all certificates in a PEM text; there must be at least one.
func parseChain(what, path string, text []byte) (chain []*x509.Certificate, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s %s: certificate number %d is malformed: %w", what, path, len(chain)+1, err)
		}
		chain = append(chain, c)
	}
	if len(chain) == 0 {
		return nil, fmt.Errorf("%s %s: holds no certificate in PEM (want -----BEGIN CERTIFICATE-----)", what, path)
	}
	return chain, nil
}

// join returns the certificate with its key, and checks that they match.
func join(f Files, certText, keyText []byte) (tls.Certificate, error) {
	switch block := privateKey(keyText); {
	case block == nil:
		return tls.Certificate{},
			fmt.Errorf("private key %s: holds no private key in PEM (want -----BEGIN PRIVATE KEY-----)", f.Key)
	case strings.Contains(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "":
		return tls.Certificate{}, fmt.Errorf("private key %s: is encrypted with a passphrase, "+
			"which a server cannot enter; write it without one (openssl pkey -in FILE -out NEW, mode 0600)", f.Key)
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

// privateKey returns the first PEM block with a private key, or nil.
func privateKey(text []byte) *pem.Block {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return block
		}
	}
	return nil
}

// judge returns an error for a server certificate that clients would refuse.
func judge(path string, c *x509.Certificate, now time.Time) error {
	if err := checkTime(c, now); err != nil {
		return fmt.Errorf("certificate %s: %w", path, err)
	}
	usages := c.ExtKeyUsage
	if len(usages) > 0 && !slices.Contains(usages, x509.ExtKeyUsageServerAuth) &&
		!slices.Contains(usages, x509.ExtKeyUsageAny) {
		return fmt.Errorf("certificate %s: is not for servers, but for %s", path, usage(c))
	}
	if c.IsCA {
		return fmt.Errorf(
			"certificate %s: is the certificate of a CA; "+
				"want the server's certificate, followed by its intermediate certificates", path)
	}
	return nil
}

func checkTime(c *x509.Certificate, now time.Time) error {
	switch {
	case now.After(c.NotAfter):
		return fmt.Errorf("it expired at %s", moment(c.NotAfter))
	case now.Before(c.NotBefore):
		return fmt.Errorf("it is not valid before %s; the time here is %s", moment(c.NotBefore), moment(now))
	}
	return nil
}

// authorities returns the client CAs. Expired ones are left out.
func authorities(path string, text []byte, now time.Time) (*x509.CertPool, error) {
	const what = "client CA"
	chain, err := parseChain(what, path, text)
	if err != nil {
		return nil, err
	}
	pool, wrong := x509.NewCertPool(), error(nil)
	valid := 0
	for _, c := range chain {
		if !c.IsCA {
			return nil, fmt.Errorf("%s %s: %q is not the certificate of a CA", what, path, c.Subject)
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

// usage says what a certificate is for.
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

// kind returns a public key's algorithm and size.
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
