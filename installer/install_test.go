//go:build unix

package installer

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func linuxSpec() Spec {
	return foreign("linux").layout(Spec{System: "linux", Name: "kagzi", Binary: "/usr/local/bin/kagzi", Copied: true})
}

func TestAnInstallationRegistersAndStarts(t *testing.T) {
	b := newBench(t, linuxSpec())
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wantCalls(t, "register", "start")
	if want := []string{"/etc", "/etc/kagzi", "/etc/kagzi/kagzi.env", "/etc/kagzi/kagzi.toml"}; !slices.Equal(
		b.files(t), want) {
		t.Errorf("files = %q, want %q", b.files(t), want)
	}
	for path, want := range map[string]fs.FileMode{
		"/etc/kagzi": 0o755, "/etc/kagzi/kagzi.env": 0o600, "/etc/kagzi/kagzi.toml": 0o644} {
		if info, err := os.Stat(filepath.Join(b.root, path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("mode of %s = %v, %v, want %04o", path, info.Mode().Perm(), err, want)
		}
	}
	if b.manager.text != b.plan.definition {
		t.Errorf("registered %q, want the plan's definition", b.manager.text)
	}
}

func TestRepeatedInstallChangesNothing(t *testing.T) {
	b := newBench(t, linuxSpec())
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(b.root, "/etc/kagzi/kagzi.toml")
	if err := os.WriteFile(mine, []byte("# mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.again(b.plan)
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wantCalls(t)
	if text, _ := os.ReadFile(mine); string(text) != "# mine" {
		t.Errorf("the settings = %q, want them as they were", text)
	}
	if !strings.Contains(b.out.String(), "unchanged") {
		t.Errorf("said %q, want that it is unchanged", b.out.String())
	}
}

func TestInstallRefusesOtherSettingsAndReconfigureAppliesThem(t *testing.T) {
	b := newBench(t, linuxSpec())
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := linuxSpec()
	s.Listen = "127.0.0.1:1234"
	p, err := planOf(s)
	if err != nil {
		t.Fatal(err)
	}
	b.again(p)
	wantCode(t, b.run(t.Context()), exitConflict, "reconfigure")
	b.wantCalls(t)
	if !strings.Contains(b.details.String(), "+ ExecStart=") || !strings.Contains(b.details.String(), "1234") {
		t.Errorf("details = %q, want the lines that differ", b.details.String())
	}
	b.again(p)
	b.replace = true
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wantCalls(t, "register", "restart") // the service was running
	b.manager.phase = stopped
	b.again(p)
	b.plan.definition += "# changed\n"
	b.replace, b.startNow = true, false
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wantCalls(t, "register") // it was not, and a start was not requested
}

func TestAFailedInstallationLeavesNothing(t *testing.T) {
	account := linuxSpec()
	account.Account, account.Group, account.DataDir = "kagzi", "kagzi", "/srv/flow/data"
	for _, s := range []Spec{linuxSpec(), account} {
		for _, call := range []string{"register", "start"} {
			b := newBench(t, s)
			b.manager.failAt = map[string]error{call: errTest, "register leaves": errTest}
			b.manager.said = "cannot \x1b[31mlisten\n"
			binary := filepath.Join(t.TempDir(), "kagzi")
			if err := os.WriteFile(binary, []byte("new"), 0o755); err != nil {
				t.Fatal(err)
			}
			b.copyFrom = binary
			data := filepath.Join(b.root, s.DataDir) // what the service writes before it fails must be removed too
			b.manager.begun = func() {
				if err := os.MkdirAll(filepath.Join(data, "kagzi.db"), 0o700); err != nil {
					t.Error(err)
				}
			}
			if err := os.MkdirAll(filepath.Join(b.root, "/var/lib"), 0o755); err != nil {
				t.Fatal(err)
			}
			before := b.files(t)
			wantCode(t, b.run(t.Context()), 1, "it broke", "all changes were undone")
			if left := b.files(t); !slices.Equal(left, before) {
				t.Errorf("%s failed: left %q, want %q", call, left, before)
			}
			if b.manager.there {
				t.Errorf("%s failed: the definition is still registered", call)
			}
			if call == "start" {
				b.wantCalls(t, "register", "start", "stop", "unregister")
				if got := b.details.String(); !strings.Contains(got, `cannot \x1b[31mlisten`) {
					t.Errorf("details = %q, want the service's words without control characters", got)
				}
			}
		}
	}
}

func TestAFailedChangeBringsTheOldServiceBack(t *testing.T) {
	b := newBench(t, linuxSpec())
	old := filepath.Join(b.root, "/usr/local/bin/kagzi")
	next := filepath.Join(t.TempDir(), "kagzi")
	if err := os.WriteFile(next, []byte("v1"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.copyFrom = next
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	before, definition := b.files(t), b.manager.text
	if err := os.WriteFile(next, []byte("v2, which does not start"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, changed := range []bool{false, true} { // only the binary, and the definition too
		b.again(b.plan)
		if changed {
			b.plan.definition = definition + "# changed\n"
		}
		b.copyFrom, b.replace = next, true
		b.manager.failAt = map[string]error{"restart": errTest}
		wantCode(t, b.run(t.Context()), 1, "it broke", "all changes were undone")
		if changed {
			b.wantCalls(t, "register", "restart", "register", "restart")
		} else {
			b.wantCalls(t, "restart", "restart")
		}
		if text, err := os.ReadFile(old); err != nil || string(text) != "v1" {
			t.Errorf("binary = %q, %v, want v1", text, err)
		}
		if b.manager.text != definition || b.manager.phase != running {
			t.Errorf("definition kept: %v, phase %s, want the old one running", b.manager.text == definition,
				b.manager.phase)
		}
		if after := b.files(t); !slices.Equal(after, before) {
			t.Errorf("files = %q, want %q", after, before)
		}
	}
}

func TestANewBinaryIsAnUpgradeInPlace(t *testing.T) {
	b := newBench(t, linuxSpec())
	next := filepath.Join(t.TempDir(), "kagzi")
	for i, text := range []string{"v1", "v2"} {
		if err := os.WriteFile(next, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		b.again(b.plan)
		b.copyFrom = next
		if err := b.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.wantCalls(t, [][]string{{"register", "start"}, {"restart"}}[i]...)
	}
	path := filepath.Join(b.root, "/usr/local/bin/kagzi")
	if text, err := os.ReadFile(path); err != nil || string(text) != "v2" {
		t.Errorf("binary = %q, %v, want v2", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode = %v, %v, want 0755", info.Mode(), err)
	}
	for _, rest := range []string{".old", ".new"} {
		if _, err := os.Stat(path + rest); err == nil {
			t.Errorf("%s%s is left", path, rest)
		}
	}
}

func TestAnAccountOwnsTheDataAndReadsTheSettings(t *testing.T) {
	s := linuxSpec()
	s.Account, s.Group, s.DataDir = "flow", "flows", "/srv/flow"
	b := newBench(t, s)
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/srv/flow": "flow:flows", "/etc/kagzi": ":flows", "/etc/kagzi/kagzi.toml": ":flows",
		"/etc/kagzi/kagzi.env": ""} {
		if got := b.owners[path]; got != want {
			t.Errorf("owner of %s = %q, want %q", path, got, want)
		}
	}
}

func TestUninstallStopsFirstAndPurgeLeavesNothing(t *testing.T) {
	b := newBench(t, linuxSpec())
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(b.root, "/var/lib/private/kagzi"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("private/kagzi", filepath.Join(b.root, "/var/lib/kagzi")); err != nil {
		t.Fatal(err)
	}
	for _, purge := range []bool{false, true, true} {
		b.again(b.plan)
		var out bytes.Buffer
		there := b.manager.there
		if err := uninstall(t.Context(), b.manager, b.plan.spec, b.disk, purge, &out); err != nil {
			t.Fatal(err)
		}
		if there {
			b.wantCalls(t, "stop", "unregister")
		} else {
			b.wantCalls(t)
		}
		if !purge && !strings.Contains(out.String(), "kept /etc/kagzi/kagzi.toml") {
			t.Errorf("said %q, want what is kept", out.String())
		}
	}
	if left := b.files(t); !slices.Equal(left, []string{"/etc", "/var", "/var/lib", "/var/lib/private"}) {
		t.Errorf("left %q, want nothing of kagzi's", left)
	}
}

func TestPurgeKeepsADirectoryThatSomebodyChose(t *testing.T) {
	s := linuxSpec()
	s.Account, s.Group, s.DataDir = "flow", "flow", "/srv"
	b := newBench(t, s)
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := uninstall(t.Context(), b.manager, s, b.disk, true, &b.out); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(b.root, "/srv")); err != nil {
		t.Errorf("/srv: %v, want it kept", err)
	}
}

func TestAProgramThatWasSetAsideComesBackWhereNoneTookItsPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kagzi")
	for name, text := range map[string]string{path + ".old": "before", path + ".new": "after"} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := restoreBinary(path, true); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "before" {
		t.Errorf("the program is %q (%v), want the one from before", text, err)
	}
	if left, err := filepath.Glob(path + ".*"); err != nil || left != nil {
		t.Errorf("%v are left (%v)", left, err)
	}
}

func TestAProgramThatIsSetAsideStaysInItsPlaceUntilTheNextTakesIt(t *testing.T) {
	for system, stays := range map[string]bool{"linux": true, "darwin": true, "windows": false} {
		d := &disk{root: t.TempDir(), places: foreign(system)}
		path := d.at("/kagzi")
		if err := os.WriteFile(path, []byte("v1"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := d.setAside(path); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: %v, want it in its place: %v", system, err, stays)
		}
		if text, err := os.ReadFile(path + ".old"); err != nil || string(text) != "v1" {
			t.Errorf("%s: %q, %v is set aside, want the program", system, text, err)
		}
		if err := restoreBinary(path, true); err != nil { // as if the next program could not be put in place
			t.Fatal(err)
		}
		if left, err := filepath.Glob(path + "*"); err != nil || !slices.Equal(left, []string{path}) {
			t.Errorf("%s: %q, %v are left, want the program alone", system, left, err)
		}
	}
}

func TestAnUpgradeNamesTheOtherServicesOfTheProgram(t *testing.T) {
	b := newBox(t)
	dir := t.TempDir()
	s := linuxSpec()
	s.Name = "second"
	text, err := unit(s)
	if err != nil {
		t.Fatal(err)
	}
	b.manager.at = filepath.Join(dir, "kagzi.service")
	if err := os.WriteFile(filepath.Join(dir, "second.service"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} { // the second time it is the same program
		out, err := b.kagzi(t, "install", "--copy-binary")
		if err != nil ||
			strings.Contains(out,
				"second uses this program too; it runs the old version until: kagzi service restart --name second\n") !=
				want {
			t.Errorf("install = %q, %v, want to be told what else is to be restarted: %v", out, err, want)
		}
	}
}

func TestAProgramThatAnotherServiceRunsIsShared(t *testing.T) {
	dir, s := t.TempDir(), linuxSpec()
	place := filepath.Join(dir, "kagzi.service")
	for _, name := range []string{"kagzi", "second"} {
		s := s
		s.Name = name
		text, err := unit(s)
		if err != nil {
			t.Fatal(err)
		}
		if why, err := linuxSpec().sharedBinary(place); err != nil || why != "" {
			t.Errorf("before there is %s, the program is shared: %q, %v, want it the service's alone", name, why, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".service"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if why, err := s.sharedBinary(place); err != nil || why != "which second uses" {
		t.Errorf("the program is shared: %q, %v, want to be told by whom", why, err)
	}
}
