package tui

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
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/profile"
)

// echo answers with the key that arrived, and with as many bytes as a message may have.
type echo struct {
	kagziv1.UnimplementedAdminServiceServer
}

func (echo) GetServerInfo(ctx context.Context,
	_ *kagziv1.GetServerInfoRequest) (*kagziv1.GetServerInfoResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	return &kagziv1.GetServerInfoResponse{Version: strings.Join(md.Get("authorization"), ","),
		Database: strings.Repeat("x", 8<<20)}, nil
}

// GetQueueDepth never answers.
func (echo) GetQueueDepth(ctx context.Context,
	_ *kagziv1.GetQueueDepthRequest) (*kagziv1.GetQueueDepthResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func serve(t *testing.T, opts ...grpc.ServerOption) string {
	t.Helper()
	server := grpc.NewServer(append(opts, grpc.MaxSendMsgSize(16<<20))...)
	kagziv1.RegisterAdminServiceServer(server, echo{})
	return serveOn(t, server)
}

// serveOn serves until the test ends, and returns the address.
func serveOn(t *testing.T, server *grpc.Server) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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

func dial(t *testing.T, o DialOptions) *Conn {
	t.Helper()
	conn, err := Dial(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func TestDial(t *testing.T) {
	t.Run("sends the key with each call and takes a message of 8 MiB", func(t *testing.T) {
		conn := dial(t, DialOptions{Address: serve(t), APIKey: "secret\n"})
		info, err := conn.GetServerInfo(t.Context(), &kagziv1.GetServerInfoRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if info.Version != "Bearer secret" {
			t.Errorf("authorization = %q", info.Version)
		}
	})
	t.Run("goes on with the next address of several", func(t *testing.T) {
		nobody, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		nobody.Close()
		cert := selfSigned(t)
		address := serve(t, grpc.Creds(credentials.NewServerTLSFromCert(&cert)))
		conn := dial(t, DialOptions{Address: nobody.Addr().String() + ", " + address, APIKey: "secret",
			TLS: trusting(cert, "kagzi.test")})
		info, err := conn.GetServerInfo(t.Context(), &kagziv1.GetServerInfoRequest{})
		if err != nil || info.Version != "Bearer secret" {
			t.Errorf("%v, %v", info.GetVersion(), err)
		}
		stranger := dial(t, DialOptions{Address: address + "," + address, TLS: trusting(cert, "")})
		if _, err := stranger.GetServerInfo(t.Context(), &kagziv1.GetServerInfoRequest{}); err == nil ||
			!strings.Contains(err.Error(), "certificate for 127.0.0.1") {
			t.Errorf("a certificate for another name: %v", err)
		}
	})
	t.Run("ends a call that nobody answers", func(t *testing.T) {
		conn := dial(t, DialOptions{Address: serve(t), CallTimeout: 20 * time.Millisecond})
		_, err := conn.GetQueueDepth(t.Context(), &kagziv1.GetQueueDepthRequest{})
		if status.Code(err) != codes.DeadlineExceeded {
			t.Fatalf("err = %v", err)
		}
	})
	t.Run("speaks TLS with an authority of one's own", func(t *testing.T) {
		cert := selfSigned(t)
		address := serve(t, grpc.Creds(credentials.NewServerTLSFromCert(&cert)))
		conn := dial(t, DialOptions{Address: address, TLS: trusting(cert, "kagzi.test")})
		if _, err := conn.GetServerInfo(t.Context(), &kagziv1.GetServerInfoRequest{}); err != nil {
			t.Fatal(err)
		}
		plain := dial(t, DialOptions{Address: address})
		if _, err := plain.GetServerInfo(t.Context(), &kagziv1.GetServerInfoRequest{}); status.Code(
			err) != codes.Unavailable {
			t.Fatalf("plaintext to a TLS server: %v", err)
		}
		stranger := dial(t, DialOptions{Address: address, TLS: trusting(cert, "other.test")})
		if _, err := stranger.GetServerInfo(t.Context(), &kagziv1.GetServerInfoRequest{}); status.Code(
			err) != codes.Unavailable {
			t.Fatalf("another server name: %v", err)
		}
	})
	t.Run("refuses options that cannot work", func(t *testing.T) {
		for want, o := range map[string]DialOptions{
			"want host:port":                 {Address: "localhost"},
			`"a b:1": want host:port`:        {Address: "a b:1"},
			`":x": want host:port`:           {Address: ":x"},
			`"http://a:1": want host:port`:   {Address: "http://a:1"},
			"to another machine unencrypted": {Address: "10.0.0.1:1", APIKey: "k"},
			ErrInTheClear.Error():            {Address: "box:1", APIKey: "k"},
			`address "": want host:port`:     {Address: "a:1,"},
			`address "b": want host:port`:    {Address: "a:1, b"},
			"would go to another machine":    {Address: "127.0.0.1:1,box:1", APIKey: "k"},
		} {
			if _, err := Dial(o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Dial(%+v) = %v, want %q", o, err, want)
			}
		}
	})
}

// trusting returns a TLS client configuration that trusts one certificate and expects a name.
func trusting(cert tls.Certificate, name string) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	return &tls.Config{RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS13}
}

func TestA_key_goes_in_the_clear_to_this_machine_only(t *testing.T) {
	for address, own := range map[string]bool{
		"127.0.0.1:1": true, "localhost:1": true, "[::1]:1": true, "unix:/s": true, "10.0.0.1:1": false, "box:1": false,
		"localhost.box:1": false, "127.0.0.1:1,localhost:2": true, "127.0.0.1:1,box:2": false, "": false} {
		if profile.Loopback(address) != own {
			t.Errorf("%s: on this machine = %t, want %t", address, !own, own)
		}
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kagzi.test"}, DNSNames: []string{"kagzi.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}
