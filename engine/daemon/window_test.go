package daemon

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/backends/sqlite"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/certs"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// through returns a connection to a window.
func through(t *testing.T, w *Window) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///window", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return w.Dial(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// makeKeys creates keys in a database without a server, the first an admin's, and returns their
// secrets.
func makeKeys(t *testing.T, c Config, keys ...*kagziv1.Key) (secrets []string) {
	t.Helper()
	url, err := c.privateDatabase()
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(t.Context(), url, true, "v1", embedded(nil))
	if err != nil {
		t.Fatal(err)
	}
	admin := kagziv1.NewAdminServiceClient(through(t, w))
	for _, key := range append([]*kagziv1.Key{{Name: "root", Role: kagziv1.KeyRole_KEY_ROLE_ADMIN}}, keys...) {
		made, err := admin.CreateKey(t.Context(), &kagziv1.CreateKeyRequest{Key: key})
		if err != nil {
			t.Fatalf("make the key %s: %v", key.Name, err)
		}
		secrets = append(secrets, made.Secret)
	}
	changes, err := admin.ListAuditEvents(t.Context(), &kagziv1.ListAuditEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range changes.Events {
		if e.Peer != "beside the database" {
			t.Errorf("a key was made from %q, want from beside the database", e.Peer)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return secrets
}

// whoami returns who the server takes the caller for.
func whoami(t *testing.T, conn grpc.ClientConnInterface, secret string) (*kagziv1.WhoAmIResponse, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if secret != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+secret)
	}
	return kagziv1.NewAdminServiceClient(conn).WhoAmI(ctx, &kagziv1.WhoAmIRequest{})
}

func TestAKeyIsMadeWithoutAServerAndThenNeeded(t *testing.T) {
	c := encrypted(t)
	made, err := certs.Team{Dir: filepath.Dir(c.TLSCert), Clients: []string{"root", "nobody"}, Days: 1,
		Now: time.Now()}.Make()
	if err != nil {
		t.Fatal(err)
	}
	c.Listen = "0.0.0.0:0"
	if err := Run(t.Context(), c, embedded(nil), unreached(t)); codeOf(err) != 78 {
		t.Fatalf("without a key: %v, want a refusal", err)
	}
	secret := makeKeys(t, c)[0]
	another := secret[:len(secret)-1] + "x"
	if another == secret { // one secret in 62 ends this way
		another = secret[:len(secret)-1] + "y"
	}
	s := serve(t, c, embedded(nil))
	dial := func(m *certs.Made) *grpc.ClientConn {
		config := trust(t, c)
		if m != nil {
			config.Certificates = append(config.Certificates, loadPair(t, m))
		}
		conn, err := grpc.NewClient(s.Client, grpc.WithTransportCredentials(credentials.NewTLS(config)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	for _, try := range []struct {
		name, secret string
		shows        *certs.Made
		as           string // the key's name; empty: refused
	}{
		{"nothing", "", nil, ""},
		{"the secret", secret, nil, "root"},
		{"another secret", another, nil, ""},
		{"a certificate with the key's name", "", &made[3], "root"},
		{"a certificate with another name", "", &made[2], ""},
		{"the secret and a certificate with another name", secret, &made[2], "root"},
	} {
		who, err := whoami(t, dial(try.shows), try.secret)
		if try.as == "" && grpcstatus.Code(err) != codes.Unauthenticated || try.as != "" &&
			who.GetKey().GetName() != try.as {
			t.Errorf("with %s: %v, %v, want to be %q", try.name, who, err, try.as)
		}
	}
	// After the last key is revoked the server is still reachable by others, and must not become
	// open.
	conn := dial(nil)
	who, err := whoami(t, conn, secret)
	if err != nil {
		t.Fatal(err)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+secret)
	if _, err := kagziv1.NewAdminServiceClient(conn).RevokeKey(
		ctx, &kagziv1.RevokeKeyRequest{KeyId: who.Key.KeyId}); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"", secret} {
		if who, err := whoami(t, conn, secret); grpcstatus.Code(err) != codes.Unauthenticated {
			t.Errorf("after the last key was revoked: %v, %v, want a refusal", who, err)
		}
	}
}

func TestAWindowHasTheDatabaseToItself(t *testing.T) {
	c := testConfig(t)
	s := serve(t, c, embedded(nil))
	url, _, err := c.database()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), url, true, "v1", embedded(nil)); !mentions(err, "in use by", s.Address) {
		t.Errorf("beside a server: %v, want one that names it", err)
	}
	s.stop()
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
	w, err := Open(t.Context(), url, true, "v1", embedded(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), c, embedded(nil), unreached(t)); !mentions(err, "in use by", "for a command") {
		t.Errorf("a server beside it: %v, want one that names it", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	serve(t, c, embedded(nil))
}

func TestAWindowWithoutAURLIsOnTheDatabaseOfTheSettings(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	t.Setenv("KAGZI_CONFIG", "off")
	t.Setenv("KAGZI_DATA_DIR", dir)
	w, err := Open(t.Context(), "", true, "v1", embedded(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if want := filepath.Join(dir, "kagzi.db"); w.Database.Database != want {
		t.Errorf("opened %s, want %s", w.Database.Database, want)
	}
}

func TestListingKeysCreatesNoDatabase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	t.Setenv("KAGZI_CONFIG", "off")
	t.Setenv("KAGZI_DATA_DIR", dir)
	b := embedded(nil)
	b.Status = func(ctx context.Context, url string) (engine.SchemaStatus, error) {
		return sqlite.Status(ctx, strings.TrimPrefix(url, "sqlite:"))
	}
	for _, url := range []string{"", "sqlite:" + filepath.Join(dir, "mistyped", "kagzi.db")} {
		w, err := Open(t.Context(), url, false, "v1", b)
		if err == nil {
			t.Error(w.Close())
		}
		if coded, ok := errors.AsType[*exitError](err); !ok || coded.code != exitNotFound ||
			!mentions(err, "no database", "kagzi.db") {
			t.Errorf("%q: %v, want that there is none", url, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %s was made (%v)", url, dir, err)
		}
	}
}

// lookedThrough returns a client of a read-only window on a database with keys.
func lookedThrough(t *testing.T) kagziv1.AdminServiceClient {
	t.Helper()
	c := testConfig(t)
	makeKeys(t, c)
	url, _, err := c.database()
	if err != nil {
		t.Fatal(err)
	}
	w, err := Look(t.Context(), url, "v1", embedded(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return kagziv1.NewAdminServiceClient(through(t, w))
}

func TestAReadOnlyWindowAsksForNoKey(t *testing.T) {
	if _, err := lookedThrough(t).ListKeys(t.Context(), &kagziv1.ListKeysRequest{}); err != nil {
		t.Error(err)
	}
}

// What the window itself did since it was opened must not look like the figures of a running
// server.
func TestAReadOnlyWindowTellsNothingOfAServer(t *testing.T) {
	admin := lookedThrough(t)
	info, err := admin.GetServerInfo(t.Context(), &kagziv1.GetServerInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if info.StartedAt != nil || len(info.Methods) > 0 || info.OpenConnections+info.OpenStreams != 0 ||
		info.HeartbeatIntervalMs+info.LeaseMs != 0 || info.Notifications != "" {
		t.Errorf("a window tells of itself as of a server: %v", info)
	}
	if info.Database == "" || info.DatabaseBytes == 0 || info.SchemaVersion == 0 {
		t.Errorf("a window does not tell what its database is: %v", info)
	}
	for _, f := range info.Facts {
		if f.Name == "readers" {
			t.Errorf("a window tells its own %s as a fact of the database", f.Name)
		}
	}
	if _, err := admin.GetActivity(t.Context(), &kagziv1.GetActivityRequest{}); grpcstatus.Code(
		err) != codes.Unimplemented {
		t.Errorf("GetActivity: %v, want Unimplemented", err)
	}
	events, err := admin.WatchEvents(t.Context(), &kagziv1.WatchEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if event, err := events.Recv(); grpcstatus.Code(err) != codes.Unimplemented {
		t.Errorf("WatchEvents: %v, %v, want Unimplemented", event, err)
	}
}

func TestMetricsNeedAKeyThatMayReadOnceKeysExist(t *testing.T) {
	c := testConfig(t)
	secrets := makeKeys(t, c,
		&kagziv1.Key{Name: "prometheus", Role: kagziv1.KeyRole_KEY_ROLE_VIEWER, Namespaces: []string{"a"}},
		&kagziv1.Key{Name: "app", Role: kagziv1.KeyRole_KEY_ROLE_CLIENT, Namespaces: []string{"a"}},
		&kagziv1.Key{Name: "worker", Role: kagziv1.KeyRole_KEY_ROLE_WORKER, Namespaces: []string{"a"}})
	s := serve(t, c, embedded(nil))
	conn, err := grpc.NewClient(s.Client, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, namespace := range []string{"a", "b"} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+secrets[0])
		if _, err := kagziv1.NewNamespaceServiceClient(conn).CreateNamespace(ctx,
			&kagziv1.CreateNamespaceRequest{Namespace: namespace}); err != nil {
			t.Fatal(err)
		}
		_, err := kagziv1.NewWorkflowServiceClient(conn).StartWorkflow(ctx, &kagziv1.StartWorkflowRequest{
			Namespace: namespace, TaskQueue: "queue-of-" + namespace, WorkflowType: "t",
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, try := range []struct {
		name, secret string
		status       int
		sees         string // queues
	}{
		{"nobody", "", http.StatusUnauthorized, ""},
		{"nonsense", "kz_admin_x", http.StatusUnauthorized, ""},
		{"an admin", secrets[0], http.StatusOK, "a b"},
		{"a viewer of one namespace", secrets[1], http.StatusOK, "a"},
		{"a client", secrets[2], http.StatusForbidden, ""},
		{"a worker", secrets[3], http.StatusForbidden, ""},
	} {
		status, text, header := fetch(t, s.HTTP, "/metrics", try.secret)
		var sees []string
		for _, namespace := range []string{"a", "b"} {
			if strings.Contains(text, "queue-of-"+namespace) {
				sees = append(sees, namespace)
			}
		}
		if status != try.status || strings.Join(sees, " ") != try.sees {
			t.Errorf("%s gets %d and sees the queues of %q, want %d and %q", try.name, status, sees,
				try.status, try.sees)
		}
		if (status == http.StatusUnauthorized) != (header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s is asked for %q", try.name, header.Get("WWW-Authenticate"))
		}
		if try.secret != "" && strings.Contains(text, try.secret) {
			t.Errorf("%s: the answer holds the secret", try.name)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, text, _ := fetch(t, s.HTTP, path, ""); status != http.StatusOK || text != "ok\n" {
			t.Errorf("%s = %d %q, want 200 for everybody", path, status, text)
		}
	}
}
