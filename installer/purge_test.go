package installer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// holds fails unless these files with these texts are on the disk.
func (b *box) holds(t *testing.T, files map[string]string) {
	t.Helper()
	for path, want := range files {
		if text, err := os.ReadFile(b.host.disk().at(path)); err != nil || string(text) != want {
			t.Errorf("%s = %q, %v, want %q", path, text, err, want)
		}
	}
}

// write writes files to the disk.
func (b *box) write(t *testing.T, files map[string]string) {
	t.Helper()
	for path, text := range files {
		path = b.host.disk().at(path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPurgeKeepsSettingsAmongThoseOfOthers(t *testing.T) {
	b := newBox(t)
	b.managers()
	for _, args := range []string{"install --copy-binary",
		"install --copy-binary --name second --config /etc/kagzi/second.toml"} {
		if _, err := b.kagzi(t, strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{ // systemd reads the last one for both services
		"/etc/kagzi/kagzi.toml": "[server]\n", "/etc/kagzi/second.toml": "[server]\n",
		"/etc/kagzi/kagzi.env": "KAGZI_DB=postgres://me:secret@host/db\n",
	}
	b.write(t, files)
	for _, try := range []struct{ args, does string }{
		{"uninstall --name second --purge --dry-run", "would keep"}, {"uninstall --name second --purge", "kept"}} {
		out, err := b.kagzi(t, strings.Fields(try.args)...)
		for _, path := range []string{"/etc/kagzi/second.toml", "/etc/kagzi/kagzi.env"} {
			if err != nil || !strings.Contains(out, try.does+" "+path+", which was set by hand") {
				t.Errorf("%s = %q, %v, want to be told that %s is kept", try.args, out, err, path)
			}
		}
		b.holds(t, files)
	}
}

func TestPurgeKeepsTheProfilesOfAUsersClients(t *testing.T) {
	for _, told := range []string{
		"[profile.prod]\naddress = \"prod:1\"\napi-key = \"kz_x\"\n", "  [ client ]\nnamespace = \"shop\"\n",
		"profile.prod.address = \"prod:1\"\n",
		"client = { address = \"prod:1\" }\n", "['profile'.prod]\naddress = 1\n",
	} {
		b := newBox(t)
		const path = "/home/you/.config/kagzi/kagzi.toml"
		files := map[string]string{path: told + "[server]\nlisten = \"127.0.0.1:7000\"\n"}
		b.write(t, files)
		if _, err := b.kagzi(t, "install", "--user", "--copy-binary"); err != nil {
			t.Fatal(err)
		}
		for _, try := range []struct{ args, does string }{
			{"uninstall --user --purge --dry-run", "would keep"}, {"uninstall --user --purge", "kept"}} {
			out, err := b.kagzi(t, strings.Fields(try.args)...)
			if err != nil || !strings.Contains(out, try.does+" "+path+", which also has settings of clients") {
				t.Errorf("%s with %q in it = %q, %v, want to be told that it is kept", try.args, told, out, err)
			}
			b.holds(t, files)
		}
	}
	b := newBox(t)
	if _, err := b.kagzi(t, "install", "--user", "--copy-binary"); err != nil {
		t.Fatal(err)
	}
	if out, err := b.kagzi(t, "uninstall", "--user", "--purge"); err != nil ||
		!strings.Contains(out, "removed /home/you/.config/kagzi/kagzi.toml") {
		t.Errorf("uninstall = %q, %v, want settings of the service alone removed", out, err)
	}
}
