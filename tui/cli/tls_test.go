package cli

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
)

// served starts a server with one certificate, or none, and returns its address.
func served(t *testing.T, options ...grpc.ServerOption) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	kagziv1.RegisterAdminServiceServer(server, kagziv1.UnimplementedAdminServiceServer{})
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// certified returns a self-signed certificate for a name, and its file.
func certified(t *testing.T, name string, until time.Time) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: until.Add(-48 * time.Hour),
		NotAfter: until, IsCA: true, BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

func TestTrouble_with_TLS_says_what_to_do(t *testing.T) {
	with := func(cert tls.Certificate) string {
		return served(t, grpc.Creds(credentials.NewTLS(
			&tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13})))
	}
	good, goodFile := certified(t, "127.0.0.1", time.Now().Add(time.Hour))
	stale, staleFile := certified(t, "127.0.0.1", time.Now().Add(-time.Hour))
	other, otherFile := certified(t, "other.test", time.Now().Add(time.Hour))
	goodServer := with(good)
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"a plaintext server": {[]string{"--address", served(t), "--tls-ca", goodFile},
			[]string{"does not speak TLS", "remove the --tls flags"}},
		"an authority that is not known": {[]string{"--address", goodServer, "--tls-ca", otherFile},
			[]string{"authority that this machine does not trust", "--tls-ca ca.crt"}},
		"a certificate that has expired": {[]string{"--address", with(stale), "--tls-ca", staleFile},
			[]string{"not valid at this time", "kagzi tls init --renew"}},
		"a certificate for another name": {[]string{
			"--address", goodServer, "--tls-ca", goodFile, "--tls-server-name", "box"},
			[]string{"is for", "--tls-server-name"}},
		"a certificate without the IP": {[]string{"--address", with(other), "--tls-ca", otherFile},
			[]string{"not for this address", "--tls-server-name"}},
		"a plaintext client": {[]string{"--address", goodServer},
			[]string{"it may speak TLS", "--tls-ca ca.crt"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{server: &fake{}}
			e := s.env()
			e.dial = func(o tui.DialOptions) (tui.API, func() error, error) {
				conn, err := tui.Dial(o)
				if err != nil {
					return nil, nil, err
				}
				return conn, conn.Close, nil
			}
			var msg bytes.Buffer
			code := Execute(t.Context(), root(e), append([]string{"version", "--server"}, c.args...),
				strings.NewReader(""), discard{}, &msg)
			for _, want := range c.want {
				if code != ExitUnavailable || !strings.Contains(msg.String(), want) {
					t.Errorf("exit code %d, stderr %q, want %q", code, msg.String(), want)
				}
			}
		})
	}
}
