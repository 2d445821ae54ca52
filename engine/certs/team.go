package certs

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

const (
	// authorityLife is how long a CA is valid.
	authorityLife = 10 * 365 * 24 * time.Hour
	// MaxDays is the longest validity of a certificate.
	MaxDays = 3650
	// backdated is how long before Now certificates become valid, for clocks that are behind.
	backdated = time.Hour
)

// Team describes the certificates of a small team: a CA, a server certificate, and a certificate
// for each client that uses one.
type Team struct {
	Dir string // made with access for its owner only; existing files are kept
	// names and addresses by which clients reach the server; empty: those of the existing
	// certificate, else Local
	Hosts   []string
	Local   []string // names and addresses of this machine
	Clients []string // names of keys, one certificate each
	Days    int      // validity of certificates
	Renew   bool     // replace the certificates of the server and of Clients
	Now     time.Time
}

// Made is one file pair of a Team: a certificate and its key.
type Made struct {
	Name   string // "ca", "server" or "client-" and the name of a key
	Cert   string // path
	Key    string // path
	Leaf   *x509.Certificate
	IsMade bool // made by this call; false: it existed
}

// clientName matches a key's name that can be part of a file name.
var clientName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Make makes the missing files. It never overwrites a file, except with Renew. It continues after
// an interrupted call.
func (t Team) Make() (made []Made, err error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	root, err := openPrivate(t.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	w := &workshop{team: t, root: root}
	if err := w.authority(); err != nil {
		return nil, err
	}
	if err := w.server(); err != nil {
		return w.made, err
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(t.Clients))) {
		if err := w.client(name); err != nil {
			return w.made, err
		}
	}
	return w.made, nil
}

// Check returns an error if a field cannot be used for certificates.
func (t Team) Check() error {
	if t.Days < 1 || t.Days > MaxDays {
		return fmt.Errorf("%d days: want 1 to %d", t.Days, MaxDays)
	}
	for _, h := range t.Hosts {
		if !IsHost(h) {
			return fmt.Errorf(
				"host %q: want a name such as box.example.com or an address such as 10.0.0.7, without a port", h)
		}
	}
	for _, c := range t.Clients {
		if !clientName.MatchString(c) {
			return fmt.Errorf("client %q: want the name of a key, of at most 64 letters, digits, dots, - and _", c)
		}
	}
	return nil
}

// hostName matches a DNS name, with an optional wildcard in front.
var hostName = regexp.MustCompile(
	`^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)

// IsHost says whether a certificate can be valid for the text: a DNS name, with an optional
// wildcard in front, or an IP address.
func IsHost(text string) bool {
	return net.ParseIP(text) != nil || len(text) <= 253 && hostName.MatchString(text)
}

// workshop is the state of one call of Make.
type workshop struct {
	team Team
	root *os.Root
	ca   signer
	made []Made
}

// authority reads the CA or makes it.
func (w *workshop) authority() error {
	cert, err := w.certificate("ca")
	if err != nil {
		return err
	}
	if cert == nil {
		template := &x509.Certificate{
			Subject: pkix.Name{Organization: []string{"Kagzi"},
				CommonName: "Kagzi authority " + w.team.Now.UTC().Format(time.DateOnly)},
			NotBefore: w.team.Now.Add(-backdated), NotAfter: w.team.Now.Add(authorityLife),
			IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		}
		return w.issue("ca", template)
	}
	if !cert.IsCA {
		return fmt.Errorf("%s is not the certificate of a CA; choose another directory", w.path("ca.crt"))
	}
	if err := checkTime(cert, w.team.Now); err != nil {
		return fmt.Errorf("authority %s: %w; move the directory away and make a new one", w.path("ca.crt"), err)
	}
	w.ca.cert = cert
	w.note("ca", cert, false)
	return nil
}

func (w *workshop) server() error {
	there, err := w.certificate("server")
	if err != nil {
		return err
	}
	hosts := w.team.Hosts
	if there != nil && !w.team.Renew {
		if missing := notNamed(there, hosts); len(missing) > 0 {
			return standing("%s exists and is not valid for %q; add --renew to replace it",
				w.path("server.crt"), missing)
		}
		return w.keep("server", there)
	}
	switch {
	case len(hosts) > 0:
		hosts = slices.Concat(hosts, []string{"localhost", "127.0.0.1", "::1"})
	case there != nil:
		hosts = HostsOf(there)
	default:
		hosts = w.team.Local
	}
	return w.issue("server", w.leaf(commonName(hosts), hosts, x509.ExtKeyUsageServerAuth))
}

func (w *workshop) client(key string) error {
	name := "client-" + key
	there, err := w.certificate(name)
	if err != nil {
		return err
	}
	if there != nil && !w.team.Renew {
		return w.keep(name, there)
	}
	return w.issue(name, w.leaf(key, nil, x509.ExtKeyUsageClientAuth))
}

// keep keeps an existing certificate, if it can be used.
func (w *workshop) keep(name string, there *x509.Certificate) error {
	if err := checkTime(there, w.team.Now); err != nil {
		return standing("%s: %v; add --renew to replace it", w.path(name+".crt"), err)
	}
	key, err := w.readKey(name)
	if err != nil {
		return err
	}
	if !key.PublicKey.Equal(there.PublicKey) {
		return standing("%s does not belong to %s; add --renew to replace both", w.path(name+".key"),
			w.path(name+".crt"))
	}
	w.note(name, there, false)
	return nil
}

func standing(format string, args ...any) error {
	return &StandingError{fmt.Sprintf(format, args...)}
}

// leaf returns a template for a certificate that is no CA and does not outlive the CA.
func (w *workshop) leaf(subject string, hosts []string, use x509.ExtKeyUsage) *x509.Certificate {
	until := w.team.Now.AddDate(0, 0, w.team.Days)
	if until.After(w.ca.cert.NotAfter) {
		until = w.ca.cert.NotAfter
	}
	c := &x509.Certificate{
		Subject:   pkix.Name{Organization: []string{"Kagzi"}, CommonName: subject},
		NotBefore: w.team.Now.Add(-backdated), NotAfter: until,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			if !slices.ContainsFunc(c.IPAddresses, ip.Equal) {
				c.IPAddresses = append(c.IPAddresses, ip)
			}
		} else if !slices.Contains(c.DNSNames, h) {
			c.DNSNames = append(c.DNSNames, h)
		}
	}
	return c
}

// commonName returns the first host that is a name of at most 64 bytes. Clients use the list of
// hosts instead.
func commonName(hosts []string) string {
	for _, h := range hosts {
		if net.ParseIP(h) == nil && len(h) <= 64 {
			return h
		}
	}
	return "kagzi"
}

// HostsOf returns the names and addresses that a certificate is valid for.
func HostsOf(c *x509.Certificate) []string {
	hosts := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return hosts
}

func notNamed(c *x509.Certificate, hosts []string) (missing []string) {
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			if !slices.ContainsFunc(c.IPAddresses, ip.Equal) {
				missing = append(missing, h)
			}
		} else if !slices.Contains(c.DNSNames, h) {
			missing = append(missing, h)
		}
	}
	return missing
}

func (w *workshop) path(name string) string { return filepath.Join(w.team.Dir, name) }

// certificate returns the existing certificate with this name; nil if there is none. A certificate
// without its key is an error.
func (w *workshop) certificate(name string) (*x509.Certificate, error) {
	text, err := readPlain(w.root, name+".crt")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.path(name+".crt"), err)
	}
	chain, err := parseChain("certificate", w.path(name+".crt"), text)
	if err != nil {
		return nil, err
	}
	if _, err := w.root.Lstat(name + ".key"); errors.Is(err, fs.ErrNotExist) && name != "ca" {
		return nil, fmt.Errorf("%s exists without %s; move it away", w.path(name+".crt"), name+".key")
	}
	return chain[0], nil
}

func (w *workshop) note(name string, c *x509.Certificate, isMade bool) {
	w.made = append(w.made, Made{Name: name, Cert: w.path(name + ".crt"), Key: w.path(name + ".key"), Leaf: c,
		IsMade: isMade})
}
