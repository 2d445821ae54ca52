package daemon

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kagzi/kagzi/engine/certs"
	"github.com/kagzi/kagzi/engine/server"
)

// encrypted says whether the server is to speak TLS.
func (c *Config) encrypted() bool { return c.TLSCert != "" }

// checkTLS refuses settings of TLS of which one is missing.
func (c *Config) checkTLS() error {
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return usagef(
			"--tls-cert %q and --tls-key %q: a certificate and its private key go together; give both or neither",
			c.TLSCert, c.TLSKey)
	case c.ClientCA != "" && !c.encrypted():
		return usagef(
			"--client-ca %q: without --tls-cert and --tls-key there is no TLS in which a client could show a certificate", c.ClientCA)
	}
	return nil
}

// certificates are the files of TLS, as paths.
func (c *Config) certificates() (f certs.Files, err error) {
	for _, one := range []struct {
		flag, text string
		path       *string
	}{{"--tls-cert", c.TLSCert, &f.Cert}, {"--tls-key", c.TLSKey, &f.Key}, {"--client-ca", c.ClientCA, &f.ClientCA}} {
		if *one.path, err = fileOf(one.text); err != nil {
			return f, fmt.Errorf("%s %w", one.flag, err)
		}
	}
	return f, nil
}

// keepCertificates reads the files of TLS and keeps them; nil: the server is to speak without.
func (c *Config) keepCertificates() (*certs.Keeper, error) {
	if !c.encrypted() {
		return nil, nil
	}
	files, err := c.certificates()
	if err != nil {
		return nil, usagef("%w", err)
	}
	keeper, err := certs.Keep(files, c.Log, nil)
	if err != nil {
		return nil, ifUnsafe(usagef("%w", err))
	}
	return keeper, nil
}

// ifUnsafe gives files that let others have what they must not their exit code.
func ifUnsafe(err error) error {
	if unsafe := (*certs.UnsafeError)(nil); errors.As(err, &unsafe) {
		return &exitError{code: exitConfig, err: err}
	}
	return err
}

// renewCertificates takes up the certificates that next names, and reads their files anew. Where
// that cannot be, next gets what held has; fixed are the settings that a restart would take up.
func (p *process) renewCertificates(next, held *Config) (fixed []string) {
	if next.encrypted() != held.encrypted() {
		fixed = []string{"tls-cert", "tls-key"}
	} else if err := p.reloadCertificates(next); err != nil {
		p.log.Warn("the files of TLS are not good; those before hold", "error", err)
	} else {
		return nil
	}
	next.TLSCert, next.TLSKey, next.ClientCA = held.TLSCert, held.TLSKey, held.ClientCA
	return fixed
}

func (p *process) reloadCertificates(next *Config) error {
	if err := next.checkTLS(); err != nil || p.certs == nil {
		return err
	}
	files, err := next.certificates()
	if err != nil {
		return err
	}
	return p.certs.Reload(files)
}

// factsOfTLS is what people may want to know of the certificate. k may be nil.
func factsOfTLS(k *certs.Keeper) []server.Fact {
	const section = "tls"
	if k == nil {
		return []server.Fact{{Section: section, Name: "certificate", Value: "none"}}
	}
	cert, files := k.Held()
	clients := "no"
	if files.ClientCA != "" {
		clients = "yes, if they show one"
	}
	return []server.Fact{
		{Section: section, Name: "certificate", Value: cert.Subject.String()},
		{Section: section, Name: "holds for", Value: strings.Join(certs.HostsOf(cert), ", ")},
		{Section: section, Name: "expires", Value: moment(cert.NotAfter)},
		{Section: section, Name: "client certificates", Value: clients},
	}
}

// authorityBeside is the file of the authority that `kagzi tls init` put beside a server's
// certificate; empty where there is none, or another one.
func authorityBeside(k *certs.Keeper) string {
	if k == nil {
		return ""
	}
	leaf, files := k.Held()
	path, err := filepath.Abs(filepath.Join(filepath.Dir(files.Cert), "ca.crt"))
	if err != nil {
		return ""
	}
	text, err := os.ReadFile(path)
	block, _ := pem.Decode(text)
	if err != nil || block == nil {
		return ""
	}
	if ca, err := x509.ParseCertificate(block.Bytes); err != nil || leaf.CheckSignatureFrom(ca) != nil {
		return ""
	}
	return path
}
