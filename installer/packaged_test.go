//go:build linux

package installer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// packagedSystemd returns a systemd with a unit from a package.
func packagedSystemd(t *testing.T, text string) *systemd {
	t.Helper()
	m := userSystemd(t)
	vendor := filepath.Join(t.TempDir(), "kagzi.service")
	if err := os.WriteFile(vendor, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	m.vendors = []string{filepath.Join(t.TempDir(), "missing.service"), vendor}
	return m
}

func TestAUnitOfAPackageIsInEffectUntilOneGoesBeforeIt(t *testing.T) {
	calls := fakeCommand(t, "systemctl", healthySystemd)
	m := packagedSystemd(t, "the package's\n")
	for _, step := range []struct {
		name     string
		do       func() error
		want     string // the expected definition
		inEffect bool
		calls    []string
	}{
		{"start enables it", func() error { return m.start(t.Context()) }, "the package's\n", true, []string{
			"enable --user kagzi.service", "reset-failed --user kagzi.service", "start --user kagzi.service"}},
		{"the same is not written", func() error {
			return m.register(t.Context(), "the package's\n")
		}, "the package's\n", true, []string{
			"enable --user kagzi.service", "daemon-reload --user",
			"show --user --property=LoadState --value kagzi.service"}},
		{"to take away what is not there is nothing", func() error {
			return m.unregister(t.Context())
		}, "the package's\n", true, []string{""}},
		{"another goes before it", func() error { return m.register(t.Context(), "mine\n") }, "mine\n", false, []string{
			"enable --user kagzi.service", "daemon-reload --user", "daemon-reload --user",
			"show --user --property=LoadState --value kagzi.service"}},
		{"start", func() error { return m.start(t.Context()) }, "mine\n", false, []string{
			"reset-failed --user kagzi.service", "start --user kagzi.service"}},
		{"back to the package's", func() error {
			return m.register(t.Context(), "the package's\n")
		}, "the package's\n", true, []string{
			"disable --user kagzi.service", "daemon-reload --user",
			"enable --user kagzi.service", "daemon-reload --user",
			"show --user --property=LoadState --value kagzi.service"}},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if diff := cmp.Diff(step.calls, calls()); diff != "" {
			t.Errorf("%s: calls (-want +got):\n%s", step.name, diff)
		}
		text, found, err := m.definition(t.Context())
		place, inEffect := m.packaged()
		if err != nil || !found || text != step.want || place != m.vendors[1] || inEffect != step.inEffect {
			t.Errorf("%s: definition %q, %v, %v; packaged %q, %v, want %q and in effect %v", step.name, text, found,
				err, place, inEffect, step.want, step.inEffect)
		}
	}
}

func TestAServiceOfAPackageIsTakenOrRefusedAndNeverDoubled(t *testing.T) {
	b := newBox(t)
	spec := linuxSpec()
	spec.Binary, spec.Copied = "/usr/bin/kagzi", false
	text, err := unit(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(b.host.disk().at("/usr/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.host.disk().at("/usr/bin/kagzi"), []byte("v1"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.manager.text, b.manager.there, b.manager.vendor = text, true, "/usr/lib/systemd/system/kagzi.service"
	_, err = b.kagzi(t, "install", "--copy-binary")
	wantCode(t, err, exitConflict, "a package has installed kagzi", "kagzi service start")
	for _, args := range []string{"uninstall", "uninstall --purge", "uninstall --dry-run"} {
		_, err = b.kagzi(t, strings.Fields(args)...)
		wantCode(t, err, exitConflict, "belong to the package", "apt")
	}
	b.wantNothingDone(t)

	b.host.executable = func() (string, error) { return "/usr/bin/kagzi", nil }
	if out, err := b.kagzi(t, "install"); err != nil || !strings.Contains(out, "unchanged") ||
		!strings.Contains(out, "started") {
		t.Errorf("install of what the package has = %q, %v, want it started as it is", out, err)
	}
	if out, err := b.kagzi(t, "status"); err != nil || !strings.Contains(out, b.manager.vendor) {
		t.Errorf("status = %q, %v, want where the package keeps it", out, err)
	}
	if _, err := b.kagzi(t, "reconfigure", "--listen", "127.0.0.1:7000"); err != nil ||
		!strings.Contains(b.manager.text,
			"ExecStart=/usr/bin/kagzi service run --name kagzi -- --config /etc/kagzi/kagzi.toml --data-dir /var/lib/kagzi --listen 127.0.0.1:7000") {
		t.Errorf("reconfigure: %v, definition %s, want the package's program with the new address", err, b.manager.text)
	}
	b.manager.over = true // as the real one is from now on
	_, err = b.kagzi(t, "uninstall", "--purge")
	wantCode(t, err, exitConflict, "its data belong to the package")
	if out, err := b.kagzi(t, "uninstall"); err != nil || !strings.Contains(out, "in effect again: "+b.manager.vendor) {
		t.Errorf("uninstall = %q, %v, want the package's in effect again", out, err)
	}
}

func TestUninstallNamesWhatSystemctlEditLeft(t *testing.T) {
	fakeCommand(t, "systemctl", healthySystemd)
	m := userSystemd(t)
	file := m.file + ".d/over\x1bride.conf"
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("[Service]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{file}, m.additions()); diff != "" {
		t.Errorf("additions (-want +got):\n%s", diff)
	}
	b := newBox(t)
	if _, err := b.kagzi(t, "install", "--copy-binary"); err != nil {
		t.Fatal(err)
	}
	b.manager.added = []string{file}
	if out, err := b.kagzi(t, "uninstall", "--purge"); err != nil ||
		!strings.Contains(out, `over\x1bride.conf, which was created by hand`) {
		t.Errorf("uninstall = %q, %v, want it to name the file", out, err)
	}
}

func TestSystemdHandsOverWhatOnlyRootReads(t *testing.T) {
	b := newBox(t)
	disk := b.host.disk()
	write := func(path string, mode os.FileMode) {
		if err := os.MkdirAll(disk.at(filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(disk.at(path), []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("/root/tls.crt", 0o644)
	write("/root/tls.key", 0o600)
	write("/root/kagzi.toml", 0o600)
	tls := []string{"--copy-binary", "--tls-cert", "/root/tls.crt", "--tls-key", "/root/tls.key"}
	if _, err := b.kagzi(t, append([]string{"install", "--config", "/root/kagzi.toml"}, tls...)...); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"LoadCredential=config:/root/kagzi.toml\nLoadCredential=tls-cert:/root/tls.crt\nLoadCredential=tls-key:/root/tls.key\n",
		" -- --config credential:config --data-dir /var/lib/kagzi --tls-cert credential:tls-cert --tls-key credential:tls-key\n",
	} {
		if !strings.Contains(b.manager.text, want) {
			t.Errorf("the unit is %s, want it to say %s", b.manager.text, want)
		}
	}
	// An account, or everyone, can read the file, so it is no secret and the server sees its
	// changes.
	if out, err := b.kagzi(t, append([]string{"print", "--config", "/root/kagzi.toml", "--run-as", "you"},
		tls...)...); err == nil {
		t.Errorf("print for an account = %s, want /root refused", out)
	}
	write("/etc/kagzi/kagzi.toml", 0o644)
	if out, err := b.kagzi(t, append([]string{"print"}, tls...)...); err != nil ||
		strings.Contains(out, "credential:config") {
		t.Errorf("print = %s, %v, want the settings read from their file", out, err)
	}
}

func TestSystemdHandsOverSettingsInADirectoryOfRoots(t *testing.T) {
	b := newBox(t)
	dir := b.host.disk().at("/etc/kagzi")
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil { // as created by kagzi tls init --dir /etc/kagzi/tls
		t.Fatal(err)
	}
	if _, err := b.kagzi(t, "install", "--copy-binary"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"LoadCredential=config:/etc/kagzi/kagzi.toml\n", " -- --config credential:config "} {
		if !strings.Contains(b.manager.text, want) {
			t.Errorf("the unit is %s, want it to say %s", b.manager.text, want)
		}
	}
	if out, err := b.kagzi(t, "install", "--copy-binary"); err != nil || !strings.Contains(out, "unchanged") {
		t.Errorf("install once more = %q, %v, want nothing changed", out, err)
	}
	if out, err := b.kagzi(t, "install", "--config", "kagzi.toml"); err == nil {
		t.Errorf("install with settings in no place = %q, want it refused", out)
	}
}
