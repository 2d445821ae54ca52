package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// required is the answer to a caller with an admin's key.
func required() *kagziv1.WhoAmIResponse {
	return &kagziv1.WhoAmIResponse{Key: sampleKeys()[3], KeysRequired: true}
}

func TestKey_create(t *testing.T) {
	t.Run("prints only the secret on stdout", func(t *testing.T) {
		s := &session{server: &fake{me: required()}}
		out, msg := s.want(t, ExitOK, "key", "create", "shop", "--role", "worker", "-n", "shop", "--namespace", "crm",
			"--queue", "orders*", "--type", "order,refund", "--worker-id", "press-7,spare-*",
			"--expires", "90d")
		if out != secret+"\n" || !strings.Contains(msg, "KAGZI_API_KEY") || strings.Contains(msg, secret) {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
		want := &kagziv1.CreateKeyRequest{Key: &kagziv1.Key{
			Name: "shop", Role: kagziv1.KeyRole_KEY_ROLE_WORKER, Namespaces: []string{"shop", "crm"},
			TaskQueues: []string{"orders*"}, WorkflowTypes: []string{"order", "refund"},
			WorkerIds: []string{"press-7", "spare-*"},
			ExpiresAt: at(90 * 24 * time.Hour),
		}}
		if diff := cmp.Diff(want, s.server.requests[1], protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("--output-file writes the secret and prints it nowhere", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ada.key")
		s := &session{server: &fake{me: required()}}
		out, msg := s.want(t, ExitOK, "key", "create", "ada", "--role", "admin", "--output-file", file)
		content, err := os.ReadFile(file)
		if err != nil || string(content) != secret+"\n" || out != "" || strings.Contains(msg, secret) {
			t.Errorf("file %q, %v, stdout %q, stderr %q", content, err, out, msg)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
			// Windows has no modes
			t.Errorf("%v, %v; want mode 0600", info, err)
		}
		if _, msg := s.want(t, ExitUsage, "key", "create", "ada2", "--role", "admin", "--output-file",
			file); !strings.Contains(msg, "already exists") {
			t.Errorf("stderr %q", msg)
		}
		if len(s.server.keys) != 1 {
			t.Errorf("a key was made although its secret could not be kept: %v", s.server.keys)
		}
		if out, _ := s.want(t, ExitOK, "key", "create", "b", "--role", "admin", "--output-file", file+"2", "-o",
			"json"); strings.Contains(out, secret) || !strings.Contains(out, `"secret": null`) {
			t.Errorf("stdout %q", out)
		}
	})
	t.Run("removes the file if the server refuses", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ada.key")
		s := &session{server: &fake{me: required(), fail: map[string]error{"CreateKey": unavailable}}}
		s.want(t, ExitUnavailable, "key", "create", "ada", "--role", "admin", "--output-file", file)
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
	})
	t.Run("creates no key if the disk is full", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "ada.key")
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name) // opened for reading, so writes fail as on a full disk
		if err != nil {
			t.Fatal(err)
		}
		if _, err := reserve(f); err == nil {
			t.Error("a file that takes no writes is taken for one that does")
		}
		if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the file is left (%v)", err)
		}
	})
	t.Run("the file contains only the secret", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ada.key")
		s := &session{server: &fake{me: required()}}
		s.want(t, ExitOK, "key", "create", "ada", "--role", "admin", "--output-file", file)
		if text, err := os.ReadFile(file); err != nil || string(text) != secret+"\n" {
			t.Errorf("the file holds %q (%v)", text, err)
		}
	})
	t.Run("takes a key back whose secret could not be printed", func(t *testing.T) {
		for name, me := range map[string]*kagziv1.WhoAmIResponse{"the first": {}, "another": required()} {
			s := &session{server: &fake{me: me}}
			var msg strings.Builder
			code := Execute(t.Context(), root(s.env()), []string{"key", "create", "ada", "--role", "admin", "-y"},
				strings.NewReader(""), fullDisk{}, &msg)
			if code == ExitOK || !strings.Contains(msg.String(), "no space left") ||
				!strings.Contains(msg.String(), "revoked again") {
				t.Errorf("%s: code %d, stderr %q", name, code, msg.String())
			}
			if len(s.server.keys) != 1 || s.server.keys[0].RevokedAt == nil {
				t.Errorf("%s: keys %v, want the new one revoked", name, s.server.keys)
			}
		}
	})
	t.Run("a lost secret comes with the command to revoke its key", func(t *testing.T) {
		key := &kagziv1.Key{KeyId: "k1", Name: "ada"}
		for _, c := range []struct {
			first bool
			db    string
			want  string
		}{
			{false, "", "revoke it: kagzi key revoke k1"},
			{true, "",
				"every call now needs a key and nobody has one: on the database's host run: kagzi key revoke k1 --db default (stop the server first on SQLite)"},
			{true, "sqlite:a.db", "revoke it: kagzi key revoke k1, with the same --db"},
		} {
			o := &keyCreateOptions{near: nearFlags{db: c.db}}
			if err := o.lost(errors.New("no room"), key, c.first); !strings.HasSuffix(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "no room") {
				t.Errorf("first %t, --db %q: %v, want %q", c.first, c.db, err, c.want)
			}
		}
	})
	t.Run("asks before the first key", func(t *testing.T) {
		s := &session{server: &fake{}, tty: true, stdin: "n\n"}
		if _, msg := s.want(t, ExitError, "key", "create", "ada", "--role", "admin"); !strings.Contains(
			msg, "are refused") || len(s.server.keys) != 0 {
			t.Errorf("stderr %q, keys %v", msg, s.server.keys)
		}
		s = &session{server: &fake{}}
		if _, msg := s.want(t, ExitUsage, "key", "create", "ada", "--role", "admin"); !strings.Contains(msg, "-y") ||
			len(s.server.keys) != 0 {
			t.Errorf("stderr %q, keys %v", msg, s.server.keys)
		}
		if _, msg := s.want(t, ExitUsage, "key", "create", "w", "--role", "worker", "-n", "default",
			"-y"); !strings.Contains(msg, "kagzi key create w --role admin") {
			t.Errorf("stderr %q", msg)
		}
		if out, msg := s.want(t, ExitOK, "key", "create", "ada", "--role", "admin", "-y"); out != secret+"\n" ||
			!strings.Contains(msg, "from now on every call needs a key") {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
	})
}

func TestKey_list_leaves_out_revoked_keys_unless_asked(t *testing.T) {
	s := &session{server: &fake{keys: sampleKeys()}}
	if out, _ := s.want(t, ExitOK, "key", "list"); strings.Contains(out, "old") || !strings.Contains(out, "ada") {
		t.Errorf("stdout\n%s", out)
	}
	if out, _ := s.want(t, ExitOK, "key", "list", "--revoked"); !strings.Contains(out, "REVOKED") {
		t.Errorf("stdout\n%s", out)
	}
	s = &session{}
	if out, msg := s.want(t, ExitOK, "key", "list"); out != "" || !strings.Contains(msg, "every call is allowed") {
		t.Errorf("stdout %q, stderr %q", out, msg)
	}
}

func TestKey_revoke(t *testing.T) {
	t.Run("accepts an id or the name of a valid key", func(t *testing.T) {
		for _, named := range []string{"shop", "01936b2e-0000-7000-8000-0000000000a3"} {
			s := &session{server: &fake{keys: sampleKeys(), me: required()}}
			if out, _ := s.want(t, ExitOK, "key", "revoke", named, "-y"); !strings.Contains(out, "REVOKED  shop") {
				t.Errorf("stdout %q", out)
			}
		}
		only := &session{server: &fake{keys: slices.DeleteFunc(sampleKeys(), func(k *kagziv1.Key) bool {
			return k.Name != "shop"
		}), me: required()}}
		if out, _ := only.want(t, ExitOK, "key", "revoke", "01936B2e", "-y"); !strings.Contains(out, "REVOKED") {
			t.Errorf("shortened: stdout %q", out)
		}
		s := &session{server: &fake{keys: sampleKeys(), me: required()}}
		if _, msg := s.want(t, ExitUsage, "key", "revoke", "01936b2e", "-y"); !strings.Contains(msg, "several keys") ||
			!strings.Contains(msg, "01936b2e-0000-7000-8000-0000000000a3") {
			t.Errorf("ambiguous: stderr %q", msg)
		}
		if _, msg := s.want(t, ExitNotFound, "key", "revoke", "old", "-y"); !strings.Contains(msg, "kagzi key list") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("asks and tells the consequences", func(t *testing.T) {
		for named, want := range map[string]string{
			"ada": "last used 3m ago? It is the key you are using", "shop": "revoke the worker's key shop ("} {
			s := &session{server: &fake{keys: sampleKeys(), me: required()}, tty: true, stdin: "n\n"}
			if _, msg := s.want(t, ExitError, "key", "revoke", named); !strings.Contains(msg, want) ||
				!strings.Contains(msg, "nothing changed") {
				t.Errorf("stderr %q, want %q", msg, want)
			}
		}
		s := &session{server: &fake{keys: sampleKeys()[3:], me: required()}, tty: true, stdin: "y\n"}
		if _, msg := s.want(t, ExitOK, "key", "revoke", "ada"); !strings.Contains(msg, "every call is allowed") {
			t.Errorf("stderr %q", msg)
		}
		s = &session{server: &fake{keys: sampleKeys(), me: required()}}
		if _, msg := s.want(t, ExitUsage, "key", "revoke", "ada"); !strings.Contains(msg, "-y") {
			t.Errorf("stderr %q", msg)
		}
	})
}

func TestKeys_with_db(t *testing.T) {
	opened, closed := []string{}, 0
	local := Local{Open: func(_ context.Context, url string, create bool) (*Nearby, error) {
		opened = append(opened, fmt.Sprint(url, " ", create))
		return &Nearby{
			Database: "kagzi.db", Dial: func(context.Context) (net.Conn, error) {
				return nil, errors.New("nobody calls")
			},
			Close: func() error { closed++; return nil },
		}, nil
	}}
	s := &session{server: &fake{keys: sampleKeys()}, local: local,
		environ: map[string]string{"KAGZI_API_KEY": "stale", "KAGZI_ADDRESS": "box:1"}}
	t.Run("--db works without a server or a key", func(t *testing.T) {
		for _, args := range [][]string{
			{"key", "list", "--db", "default"}, {"key", "create", "x", "--role", "admin", "-y", "--db", "sqlite:a.db"},
			{"key", "revoke", "shop", "-y", "--db", "postgres://h/d"}, {"audit", "--db", "default"},
		} {
			s.want(t, ExitOK, args...)
			if d := s.server.dialled; d.Dialer == nil || d.APIKey != "" {
				t.Errorf("%v: dialled %+v", args, d)
			}
		}
		if want := []string{" false", "sqlite:a.db true", "postgres://h/d false", " false"}; !cmp.Equal(opened, want) ||
			closed != len(want) {
			t.Errorf("opened %q, closed %d times, want %q", opened, closed, want)
		}
	})
	t.Run("--db excludes flags that name a server", func(t *testing.T) {
		if _, msg := s.want(t, ExitUsage, "key", "list", "--db", "default", "--address", "a:1"); !strings.Contains(
			msg, "--db and --address") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("reports why a database cannot be opened", func(t *testing.T) {
		s.local.Open = func(context.Context, string, bool) (*Nearby, error) {
			return nil, errors.New("a server is running on it")
		}
		if _, msg := s.want(t, ExitError, "key", "list", "--db", "default"); !strings.Contains(
			msg, "a server is running") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("a database locked by a server comes with a hint", func(t *testing.T) {
		s := &session{local: Local{Open: func(context.Context, string, bool) (*Nearby, error) {
			return nil, &inUse{}
		}}}
		_, msg := s.want(t, ExitConflict, "key", "create", "root", "--role", "admin", "-y", "--db", "default")
		want := "error: the database a.db is in use by process 7; one server at a time can have it\n" +
			"  use --address instead of --db to ask that server, or stop it first\n"
		if msg != want {
			t.Errorf("stderr %q, want %q", msg, want)
		}
	})
}

func TestAudit(t *testing.T) {
	t.Run("--since drops older events", func(t *testing.T) {
		s := &session{server: &fake{audit: sampleAudit()}}
		if out, _ := s.want(t, ExitOK, "audit", "--since", "1h"); !strings.Contains(out, "CancelWorkflow") ||
			strings.Contains(out, "TerminateWorkflow") {
			t.Errorf("stdout\n%s", out)
		}
	})
	t.Run("reports more events only if there are", func(t *testing.T) {
		events := sampleAudit() // one is new enough, one is not
		s := &session{server: &fake{audit: events}}
		if out, msg := s.want(t, ExitOK, "audit", "--since", "1h", "--limit", "1"); !strings.Contains(
			out, "CancelWorkflow") || msg != "" {
			t.Errorf("stdout\n%sstderr %q", out, msg)
		}
		if out, _ := s.want(t, ExitOK, "audit", "--since", "1h", "--limit", "1", "-o", "json"); !strings.Contains(
			out, `"has_more": false`) || !strings.Contains(out, `"next_page_token": ""`) {
			t.Errorf("stdout\n%s", out)
		}
		s = &session{server: &fake{audit: append(events[:1:1], events...)}}
		if _, msg := s.want(t, ExitOK, "audit", "--since", "1h", "--limit", "1"); !strings.HasPrefix(
			msg, "there are more events: continue with --page-token 1") {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("an empty list names what was searched", func(t *testing.T) {
		s := &session{server: &fake{}}
		if _, msg := s.want(t, ExitOK, "audit", "--subject", "a1", "--since",
			"24h"); msg != "no changes in namespace default with subject a1 since 24h\n" {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("--keys sends no namespace", func(t *testing.T) {
		s := &session{server: &fake{}}
		_, msg := s.want(t, ExitOK, "audit", "--keys", "--subject", "01936b2e-0000-7000-8000-0000000000a1")
		if r := s.server.requests[0].(*kagziv1.ListAuditEventsRequest); r.Namespace != "" ||
			r.GetSubjectId() != "01936b2e-0000-7000-8000-0000000000a1" ||
			msg != "no changes to keys with subject 01936b2e-0000-7000-8000-0000000000a1\n" {
			t.Errorf("asked %v, stderr %q", r, msg)
		}
	})
}

// inUse is the error for a database locked by a server.
type inUse struct{}

func (*inUse) Error() string {
	return "the database a.db is in use by process 7; one server at a time can have it"
}
func (*inUse) ExitCode() int { return ExitConflict }

// fullDisk is a stdout that takes nothing, like /dev/full.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
