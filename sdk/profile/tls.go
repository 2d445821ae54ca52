package profile

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Encrypted reports whether TLS is used.
func (p Profile) Encrypted() bool {
	if p.TLS != nil {
		return *p.TLS
	}
	return p.TLSCA != "" || p.TLSCert != "" || p.TLSKey != "" || p.TLSServerName != ""
}

// TLSConfig returns the client's TLS configuration (TLS 1.3 or later, as every Kagzi server has),
// nil without TLS. Errors are about files. The client's certificate is read for each connection, so
// it can be replaced while a worker runs.
func (p Profile) TLSConfig() (*tls.Config, error) {
	if !p.Encrypted() {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: p.TLSServerName}
	if p.TLSCA != "" {
		data, err := os.ReadFile(p.TLSCA)
		if err != nil {
			return nil, fmt.Errorf("tls-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(fileText(data)) {
			return nil, fmt.Errorf("tls-ca: %s holds no PEM certificate", plain(p.TLSCA))
		}
	}
	if (p.TLSCert == "") != (p.TLSKey == "") {
		return nil, errors.New("tls-client-cert and tls-client-key go together: set both or neither")
	}
	if p.TLSCert == "" {
		return config, nil
	}
	if _, err := p.certificate(nil); err != nil {
		return nil, err
	}
	config.GetClientCertificate = p.certificate
	return config, nil
}

func (p Profile) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	var pair tls.Certificate
	cert, err := os.ReadFile(p.TLSCert)
	key, failure := os.ReadFile(p.TLSKey)
	if err = cmp.Or(err, failure); err == nil {
		pair, err = tls.X509KeyPair(fileText(cert), fileText(key))
	}
	if err != nil {
		return nil, fmt.Errorf("tls-client-cert %s, tls-client-key %s: %w", plain(p.TLSCert), plain(p.TLSKey), err)
	}
	return &pair, nil
}
