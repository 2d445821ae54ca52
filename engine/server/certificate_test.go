package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/matching"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign}
	a.key = a.newKey()
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, err = x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// sign is a certificate of that common name, for servers and clients.
func (a *authority) sign(name string) tls.Certificate {
	a.t.Helper()
	key := a.newKey()
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		DNSNames:  []string{"server"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

func TestACertificateStandsForTheKeyOfItsName(t *testing.T) {
	ca := newAuthority(t)
	l := &servertest.KeyStore{Notifications: "in-process"}
	root := l.Make(engine.APIKey{Name: "root", Role: engine.RoleAdmin})
	l.Make(engine.APIKey{Name: "billing", Role: engine.RoleClient, Namespaces: []string{"team"}})
	l.Make(engine.APIKey{Name: "old", Role: engine.RoleClient, Namespaces: []string{"team"},
		ExpiresAt: l.Now().Add(-time.Hour)})
	s := New(l, matching.New(servertest.StubStore{}, nil), Options{DrainTimeout: time.Second, TLS: &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{ca.sign("server")}, ClientCAs: ca.pool(),
		ClientAuth: tls.VerifyClientCertIfGiven,
	}})
	listener := bufconn.Listen(1 << 20)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, listener) }()
	defer func() {
		stop()
		<-done
	}()
	me := func(name, secret string) (*kagziv1.WhoAmIResponse, error) {
		t.Helper()
		config := &tls.Config{RootCAs: ca.pool(), ServerName: "server"}
		if name != "" {
			config.Certificates = []tls.Certificate{ca.sign(name)}
		}
		conn, err := grpc.NewClient("passthrough:bufconn", grpc.WithTransportCredentials(credentials.NewTLS(config)),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return listener.DialContext(ctx)
			}))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		call := soon(t)
		if secret != "" {
			call = with(call, secret)
		}
		return kagziv1.NewAdminServiceClient(conn).WhoAmI(call, &kagziv1.WhoAmIRequest{})
	}
	for _, c := range []struct{ certificate, secret, key string }{
		{"billing", "", "billing"}, {"", root, "root"}, {"billing", root, "root"}, {"nobody", root, "root"},
		{"nobody", "", ""}, {"", "", ""}, {"old", "", ""}, {"billing", "kz_admin_spoiled", ""},
	} {
		answer, err := me(c.certificate, c.secret)
		switch {
		case c.key == "" && status.Code(err) != codes.Unauthenticated:
			t.Errorf("the certificate %q and the secret %.8s: %v %v, want UNAUTHENTICATED", c.certificate, c.secret,
				answer, err)
		case c.key != "" && (err != nil || answer.Key.GetName() != c.key || !answer.Encrypted ||
			answer.Certificate != c.certificate):
			t.Errorf("the certificate %q and the secret %.8s: I am %v (%v), want %s", c.certificate, c.secret, answer,
				err, c.key)
		}
	}
}
