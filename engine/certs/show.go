package certs

import (
	"crypto/x509"
	"io"
	"os"
	"time"
)

// Shown describes a certificate for people. Its texts come from the file; escape them before
// printing to a terminal.
type Shown struct {
	Subject, Issuer string
	Hosts           []string // names and addresses that it is valid for
	For             string   // "servers", "clients", "an authority", …
	Kind            string   // of its key: "ECDSA P-256"
	From, Until     time.Time
}

// Show returns every certificate in a file, in order.
func Show(path string) ([]Shown, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, err
	}
	chain, err := parseChain("file", path, FileText(text))
	if err != nil {
		return nil, err
	}
	shown := make([]Shown, len(chain))
	for i, c := range chain {
		shown[i] = showing(c)
	}
	return shown, nil
}

func showing(c *x509.Certificate) Shown {
	return Shown{
		Subject: c.Subject.String(), Issuer: c.Issuer.String(), Hosts: HostsOf(c), For: usage(c), Kind: kind(c),
		From: c.NotBefore, Until: c.NotAfter,
	}
}

// DaysLeft returns how many whole days the certificate is still valid; negative if it has expired.
func (s Shown) DaysLeft(now time.Time) int {
	left := s.Until.Sub(now)
	if left < 0 {
		return -1 - int(-left/(24*time.Hour))
	}
	return int(left / (24 * time.Hour))
}
