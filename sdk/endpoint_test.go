package kagzi

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/profile"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"
)

// settings writes the kagzi.toml that the test's process reads.
func settings(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	path := filepath.Join(dir, "kagzi.toml")
	write(t, path, text)
	t.Setenv("KAGZI_CONFIG", path)
	for _, name := range append(profile.Keys(), "profile") {
		t.Setenv(profile.Variable(name), "")
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEndpoint(t *testing.T) {
	const prod = "[client]\nprofile = \"prod\"\n[profile.prod]\naddress = \"prod:1\"\nnamespace = \"shop\"\napi-key = \"kz_file\"\ntls = true\n"

	t.Run("precedence: options, environment, profile, defaults",
		func(t *testing.T) {
			settings(t, prod)
			t.Setenv("KAGZI_NAMESPACE", "environment")
			c, err := NewClient(ClientOptions{Address: "option:1"})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			equal(t, []string{c.options.Address, c.options.Namespace, c.options.APIKey},
				[]string{"option:1", "environment", "kz_file"})
			equal(t, c.options.TLS.MinVersion, uint16(tls.VersionTLS13))

			w := NewWorker(WorkerOptions{Address: "option:1"})
			if err := w.locate(); err != nil {
				t.Fatal(err)
			}
			equal(t, []string{w.options.Address, w.options.Namespace, w.options.APIKey},
				[]string{"option:1", "environment", "kz_file"})
			equal(t, w.options.TLS.MinVersion, uint16(tls.VersionTLS13))
		})

	t.Run("NoProfile leaves the environment and the file unread", func(t *testing.T) {
		settings(t, prod)
		t.Setenv("KAGZI_TLS", "true")
		c, err := NewClient(ClientOptions{Profile: NoProfile})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		equal(t, []string{c.options.Address, c.options.Namespace, c.options.APIKey},
			[]string{"127.0.0.1:50051", "default", ""})
		equal(t, c.options.TLS == nil, true)
	})

	t.Run("the options' TLS goes before the profile's", func(t *testing.T) {
		settings(t, "[client]\ntls-ca = \"gone.pem\"\n")
		own := &tls.Config{ServerName: "own", MinVersion: tls.VersionTLS13}
		c, err := NewClient(ClientOptions{TLS: own})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		equal(t, c.options.TLS == own, true)
	})

	t.Run("an address without a port stops a client, and a worker's Run", func(t *testing.T) {
		settings(t, "")
		for _, address := range []string{"localhost", "10.0.0.7", "[::1]", "localhost:", "::1",
			"http://localhost:50051", "https://box:1"} {
			_, err := NewClient(ClientOptions{Address: address})
			w := NewWorker(WorkerOptions{Address: address})
			Handle(w, "w", func(Context, struct{}) (int, error) { return 0, nil })
			for _, err := range []error{err, w.Run(t.Context())} {
				if err == nil || err.Error() != fmt.Sprintf(
					"kagzi: address %q: want host:port, such as 127.0.0.1:50051", address) {
					t.Errorf("err = %v", err)
				}
			}
		}
	})

	t.Run("a missing profile fails NewClient and Run", func(t *testing.T) {
		settings(t, prod)
		_, err := NewClient(ClientOptions{Profile: "test"})
		w := NewWorker(WorkerOptions{Profile: "test"})
		Handle(w, "w", func(Context, struct{}) (int, error) { return 0, nil })
		for _, err := range []error{err, w.Run(t.Context())} {
			if err == nil || !strings.HasPrefix(err.Error(), `kagzi: no profile "test" in `) {
				t.Errorf("err = %v", err)
			}
		}
	})

	t.Run("a world-readable key file is warned of, without the key", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("Windows has no modes of files")
		}
		dir := settings(t, strings.ReplaceAll(prod, "kz_file", "kz_canary"))
		if err := os.Chmod(filepath.Join(dir, "kagzi.toml"), 0o644); err != nil {
			t.Fatal(err)
		}
		var logged bytes.Buffer
		c, err := NewClient(ClientOptions{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if text := logged.String(); !strings.Contains(text, "chmod 600") || strings.Contains(text, "canary") {
			t.Errorf("logged %s", text)
		}
	})

	for _, address := range []string{"10.0.0.1:50051", "kagzi.example.com:50051", "dns:///localhost:50051",
		"[2001:db8::1]:50051"} {
		t.Run("a key is not sent in the clear to "+address, func(t *testing.T) {
			settings(t, "")
			_, err := NewClient(ClientOptions{Address: address, APIKey: "kz_canary"})
			if err == nil || !strings.HasPrefix(err.Error(), "kagzi: an API key is not sent to") ||
				strings.Contains(err.Error(), "canary") {
				t.Fatalf("err = %v", err)
			}
		})
	}
	for _, address := range []string{"127.0.0.1:50051", "[::1]:50051", "localhost:50051", "unix:/tmp/kagzi.sock"} {
		t.Run("a key is sent in the clear on this machine: "+address, func(t *testing.T) {
			settings(t, "")
			c, err := NewClient(ClientOptions{Address: address, APIKey: "kz_x"})
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
		})
	}

	t.Run("a profile with files gives TLS, key and certificate",
		func(t *testing.T) {
			dir := settings(
				t,
				"[profile.prod]\napi-key-file = \"key\"\ntls-ca = \"ca.pem\"\ntls-client-cert = \"me.pem\"\ntls-client-key = \"me.key\"\ntls-server-name = \"kagzi.test\"\n")
			write(t, filepath.Join(dir, "key"), "kz_secret\n")
			ca := newAuthority(t, dir)
			ca.issue(t, dir, "me")
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			seen := make(chan string, 1)
			server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{ca.issue(t, dir, "kagzi.test")},
				ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool,
			})), grpc.UnaryInterceptor(func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo,
				_ grpc.UnaryHandler) (any, error) {
				seen <- caller(ctx)
				return &kagziv1.GetWorkflowResponse{Workflow: &kagziv1.Workflow{RunId: "r"}}, nil
			}))
			kagziv1.RegisterWorkflowServiceServer(server, kagziv1.UnimplementedWorkflowServiceServer{})
			go func() { _ = server.Serve(listener) }()
			defer server.Stop()
			c, err := NewClient(ClientOptions{Profile: "prod", Address: listener.Addr().String()})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Get(t.Context(), "r"); err != nil {
				t.Fatal(err)
			}
			equal(t, <-seen, "Bearer kz_secret, certificate of me")
		})

	t.Run("a name with several servers fails over to another", func(t *testing.T) {
		settings(t, "")
		name := manual.NewBuilderWithScheme("dns") // gRPC resolves a plain host:port with it
		var servers []*grpc.Server
		var addresses []resolver.Address
		for _, said := range []string{"first", "second"} {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := grpc.NewServer(grpc.UnaryInterceptor(
				func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
					return &kagziv1.GetWorkflowResponse{Workflow: &kagziv1.Workflow{RunId: said}}, nil
				}))
			kagziv1.RegisterWorkflowServiceServer(server, kagziv1.UnimplementedWorkflowServiceServer{})
			go func() { _ = server.Serve(listener) }()
			defer server.Stop()
			servers, addresses = append(servers, server),
				append(addresses, resolver.Address{Addr: listener.Addr().String()})
		}
		name.InitialState(resolver.State{Addresses: addresses})
		c, err := NewClient(ClientOptions{Address: "kagzi.test:50051",
			DialOptions: []grpc.DialOption{grpc.WithResolvers(name)}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, want := range []string{"first", "second"} {
			run, err := c.Get(t.Context(), "r")
			if err != nil {
				t.Fatal(err)
			}
			equal(t, run.RunID, want)
			servers[0].Stop()
		}
	})
}

func TestRefusedKey(t *testing.T) {
	t.Run("a worker without a key is told to get one", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			f.onHello = func(*kagziv1.RegisterRequest) error {
				return status.Error(codes.Unauthenticated, "a key is needed")
			}
			w := testWorker(f)
			Handle(w, "w", func(Context, struct{}) (int, error) { return 0, nil })
			equal(t, fmt.Sprint(w.Run(t.Context())),
				"kagzi: the server refused the worker (it has no API key: set WorkerOptions.APIKey, KAGZI_API_KEY_FILE, "+
					"or api-key-file in the profile): UNAUTHORIZED: a key is needed")
		})
	})

	t.Run("a revoked key ends Run and the running step", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w, hellos, ended := testWorker(f), 0, make(chan error, 1)
			w.options.APIKey, w.options.Address = "kz_x", "127.0.0.1:1" // a loopback address, where the key may be sent
			f.onHello = func(*kagziv1.RegisterRequest) error { hellos++; return nil }
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				return Step(ctx, "s", func(ctx context.Context) (int, error) {
					f.mu.Lock()
					f.sessions[0].end(status.Error(codes.Unauthenticated, "the key was revoked"))
					f.mu.Unlock()
					<-ctx.Done()
					ended <- ctx.Err()
					return 0, ctx.Err()
				})
			})
			f.start("r", "w", "")
			err := w.Run(t.Context())
			var refusal *Error
			if !errors.As(err, &refusal) || refusal.Code != CodeUnauthorized ||
				!strings.Contains(err.Error(),
					"(its API key is unknown, expired or revoked): UNAUTHORIZED: the key was revoked") {
				t.Errorf("Run = %v", err)
			}
			equal(t, errors.Is(<-ended, context.Canceled), true)
			equal(t, hellos, 1)
		})
	})
}

// caller returns how a call was authenticated.
func caller(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	from, _ := peer.FromContext(ctx)
	shown := from.AuthInfo.(credentials.TLSInfo).State.PeerCertificates
	return fmt.Sprintf("%s, certificate of %s", strings.Join(md.Get("authorization"), ", "),
		shown[0].Subject.CommonName)
}

// authority is a private CA, whose certificate is ca.pem in a directory.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pool        *x509.CertPool
}

func newAuthority(t *testing.T, dir string) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	a.certificate, a.key = a.sign(t, dir, "ca", template)
	a.pool.AddCert(a.certificate)
	return a
}

// issue writes NAME.pem and NAME.key, valid for servers and clients.
func (a *authority) issue(t *testing.T, dir, name string) tls.Certificate {
	t.Helper()
	a.sign(t, dir, name, &x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key"))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func (a *authority) sign(t *testing.T, dir, name string, template *x509.Certificate) (*x509.Certificate,
	*ecdsa.PrivateKey) {
	t.Helper()
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour),
		time.Now().Add(time.Hour)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, name+".pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, filepath.Join(dir, name+".key"),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}
