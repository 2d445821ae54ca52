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

// encrypted reports whether the server uses TLS.
func (c *Config) encrypted() bool { return c.TLSCert != "" }

// checkTLS rejects incomplete TLS settings.
func (c *Config) checkTLS() error {
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return usagef(
			"--tls-cert %q and --tls-key %q: give both or neither",
			c.TLSCert, c.TLSKey)
	case c.ClientCA != "" && !c.encrypted():
		return usagef(
			"--client-ca %q needs --tls-cert and --tls-key", c.ClientCA)
	}
	return nil
}

// certificates returns the paths of the TLS files.
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

// keepCertificates loads the TLS files; nil if the server does not use TLS.
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

// ifUnsafe sets the exit code of an error about file permissions.
func ifUnsafe(err error) error {
	if unsafe := (*certs.UnsafeError)(nil); errors.As(err, &unsafe) {
		return &exitError{code: exitConfig, err: err}
	}
	return err
}

// renewCertificates reloads the TLS files named by next. If that fails, next keeps the files of
// held. fixed are the settings that need a restart.
func (p *process) renewCertificates(next, held *Config) (fixed []string) {
	if next.encrypted() != held.encrypted() {
		fixed = []string{"tls-cert", "tls-key"}
	} else if err := p.reloadCertificates(next); err != nil {
		p.log.Warn("certificate reload failed; keeping the current certificate", "error", err)
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

// factsOfTLS describes the certificate for server info. k may be nil.
func factsOfTLS(k *certs.Keeper) []server.Fact {
	const section = "tls"
	if k == nil {
		return []server.Fact{{Section: section, Name: "certificate", Value: "none"}}
	}
	cert, files := k.Held()
	clients := "no"
	if files.ClientCA != "" {
		clients = "accepted, not required"
	}
	return []server.Fact{
		{Section: section, Name: "certificate", Value: cert.Subject.String()},
		{Section: section, Name: "holds for", Value: strings.Join(certs.HostsOf(cert), ", ")},
		{Section: section, Name: "expires", Value: moment(cert.NotAfter)},
		{Section: section, Name: "client certificates", Value: clients},
	}
}

// authorityBeside returns the CA file that `kagzi tls init` put next to the server's certificate;
// empty if there is none or it does not match.
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
	block, _ := pem.Decode(certs.FileText(text))
	if err != nil || block == nil {
		return ""
	}
	if ca, err := x509.ParseCertificate(block.Bytes); err != nil || leaf.CheckSignatureFrom(ca) != nil {
		return ""
	}
	return path
}
