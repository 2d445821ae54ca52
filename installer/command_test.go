package installer

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// box is a machine for the commands, with a service manager in memory.
type box struct {
	manager *fakeManager
	host    host
	out     bytes.Buffer
	health  error
	listen  string // in the settings file
	asked   string // the address of the last health check
}

func newBox(t *testing.T) *box {
	t.Helper()
	root := t.TempDir()
	binary := filepath.Join(root, "here", "kagzi")
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, []byte("v1"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := &box{manager: &fakeManager{failAt: map[string]error{}}}
	b.host = host{
		system: "linux", places: foreign("linux"), env: func(string) string { return "" }, mayInstall: true,
		executable: func() (string, error) { return binary, nil },
		groupOf:    func(account string) (string, error) { return account + "s", nil },
		manager:    func(Spec) (manager, error) { return b.manager, nil },
		disk: func() *disk {
			return &disk{root: filepath.Join(root, "disk"), places: foreign("linux"),
				chown: func(string, string, string) error { return nil }}
		},
	}
	if err := os.Mkdir(filepath.Join(root, "disk"), 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

// kagzi runs `kagzi service` with arguments and returns its output.
func (b *box) kagzi(t *testing.T, args ...string) (string, error) {
	t.Helper()
	b.out.Reset()
	o := Options{
		Health: func(_ context.Context, address string) error { b.asked = address; return b.health },
		Listen: func(config string) string { return strings.ReplaceAll(b.listen, "CONFIG", config) },
	}
	cmd := command(o, func(cmd *cobra.Command) *host {
		h := b.host
		h.out, h.err = cmd.OutOrStdout(), cmd.ErrOrStderr()
		return &h
	})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&b.out)
	cmd.SetErr(&b.out)
	err := cmd.ExecuteContext(t.Context())
	return b.out.String(), err
}

func TestTheLifeOfAService(t *testing.T) {
	b := newBox(t)
	for _, step := range []struct {
		args string
		code int
		says string
	}{
		{"status", exitNotInstalled, "not installed"},
		{"start", exitNotFound, ""},
		{"logs", exitNotFound, ""},
		{"reconfigure --listen :1", exitNotFound, ""},
		{"install --copy-binary --dry-run", 0, "would register"},
		{"status", exitNotInstalled, "not installed"},
		{"install --copy-binary --listen 127.0.0.1:7000 -- --log-level debug", 0, "started kagzi"},
		{"status", 0, "running"},
		{"install --copy-binary --listen 127.0.0.1:7000 -- --log-level debug", 0, "unchanged"},
		{"install --copy-binary", exitConflict, "- ExecStart"},
		{"stop", 0, "kagzi is stopped"},
		{"status", exitStopped, "stopped"},
		{"reconfigure --listen 127.0.0.1:7001", 0, "changed kagzi"},
		{"status", exitStopped, "stopped"},
		{"start", 0, "kagzi is running"},
		{"restart", 0, "kagzi is running"},
		{"uninstall --dry-run", 0, "would keep /var/lib/kagzi"},
		{"uninstall --purge", 0, "uninstalled kagzi"},
		{"uninstall --purge", 0, "is not installed"},
		{"status", exitNotInstalled, "not installed"},
	} {
		out, err := b.kagzi(t, strings.Fields(step.args)...)
		if code := codeOf(err); (err != nil || step.code != 0) && code != step.code {
			t.Fatalf("%s: error %v with code %d, want %d", step.args, err, code, step.code)
		}
		if !strings.Contains(out, step.says) {
			t.Errorf("%s says %q, want %q", step.args, out, step.says)
		}
		if step.args == "reconfigure --listen 127.0.0.1:7001" &&
			!strings.Contains(b.manager.text, "--listen 127.0.0.1:7001 --log-level debug") {
			t.Errorf("the definition is %s, want the address changed and the rest kept", b.manager.text)
		}
	}
}

func TestAServiceOfSomebodyElseIsNotUninstalled(t *testing.T) {
	for name, definition := range map[string]string{
		"a unit": "[Unit]\nDescription=a web server\n", "a service of Windows": ""} {
		b := newBox(t)
		b.manager.text, b.manager.there, b.manager.phase = definition, true, running
		data := b.host.disk().at("/var/lib/web")
		if err := os.MkdirAll(data, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, args := range []string{"uninstall --name web --dry-run", "uninstall --name web",
			"uninstall --name web --purge"} {
			_, err := b.kagzi(t, strings.Fields(args)...)
			wantCode(t, err, exitConflict, "web", "kagzi service install")
		}
		if b.manager.text != definition || !b.manager.there || b.manager.phase != running {
			t.Errorf("%s: the service is %q, %s, want it left alone", name, b.manager.text, b.manager.phase)
		}
		b.manager.there = false
		for _, args := range []string{"uninstall --name web --purge --dry-run", "uninstall --name web --purge"} {
			if out, err := b.kagzi(t, strings.Fields(args)...); err != nil || strings.Contains(out, "remove") {
				t.Errorf("%s: %s = %q, %v, want nothing to be removed that is not Kagzi's", name, args, out, err)
			}
		}
		if _, err := os.Stat(data); err != nil {
			t.Errorf("%s: data of somebody else: %v, want them there", name, err)
		}
	}
}

func TestAServiceWhoseRecordWasTakenOutCanBeUninstalled(t *testing.T) {
	b := newBox(t)
	if _, err := b.kagzi(t, "install", "--copy-binary"); err != nil {
		t.Fatal(err)
	}
	record, _, _ := strings.Cut(b.manager.text[strings.Index(b.manager.text, recordMark):], "\n")
	b.manager.text = strings.Replace(b.manager.text, record, "", 1)
	if _, err := b.kagzi(t, "reconfigure", "--listen", ":1"); err == nil ||
		!strings.Contains(err.Error(), "uninstall it") {
		t.Errorf("reconfigure: %v, want the advice to uninstall it", err)
	}
	if out, err := b.kagzi(t, "uninstall"); err != nil || !strings.Contains(out, "uninstalled kagzi") {
		t.Errorf("uninstall = %q, %v", out, err)
	}
}

func TestACopyOfADefinitionDoesNotLeadToTheServiceItWasCopiedFrom(t *testing.T) {
	b := newBox(t)
	if _, err := b.kagzi(t, "install", "--copy-binary"); err != nil {
		t.Fatal(err)
	}
	all, first := b.managers(), b.manager
	// cp kagzi.service second.service
	second := &fakeManager{text: first.text, there: true, phase: running, failAt: map[string]error{}}
	all["kagzi"], all["second"] = first, second
	disk := b.host.disk()
	for _, dir := range []string{"/var/lib/kagzi", "/var/lib/second"} {
		if err := os.MkdirAll(disk.at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.kagzi(t, "stop", "--name", "second"); err != nil || second.phase != stopped ||
		first.phase != running {
		t.Errorf("stop: %v; second is %s and kagzi %s, want only second stopped", err, second.phase, first.phase)
	}
	_, err := b.kagzi(t, "reconfigure", "--name", "second", "--listen", ":1")
	wantCode(t, err, 1, "a copy of the definition of kagzi", "uninstall it")
	if strings.Contains(first.text, "--listen") {
		t.Errorf("reconfigure changed the service that it was copied from: %s", first.text)
	}
	for _, args := range []string{"uninstall --name second --purge --dry-run", "uninstall --name second --purge"} {
		out, err := b.kagzi(t, strings.Fields(args)...)
		if err != nil || strings.Contains(out, "/var/lib/kagzi\n") {
			t.Errorf("%s = %q, %v, want nothing of the first service's in it", args, out, err)
		}
	}
	if second.there || !first.there || first.phase != running {
		t.Errorf("second is there: %v, kagzi: %v, %s, want only kagzi, running", second.there, first.there, first.phase)
	}
	for _, path := range []string{"/var/lib/kagzi", "/etc/kagzi/kagzi.toml", "/usr/local/bin/kagzi"} {
		if _, err := os.Stat(disk.at(path)); err != nil {
			t.Errorf("%v, want what is the first service's left alone", err)
		}
	}
}

// managers gives each service of the machine its own manager.
func (b *box) managers() map[string]*fakeManager {
	all := map[string]*fakeManager{}
	b.host.manager = func(s Spec) (manager, error) {
		if all[s.Name] == nil {
			all[s.Name] = &fakeManager{failAt: map[string]error{}}
		}
		return all[s.Name], nil
	}
	return all
}

// named matches commands for a service, with the flags that name it.
var named = regexp.MustCompile(
	`(?:kagzi service (?:start|stop|restart|reconfigure|status|logs|install)|systemctl edit)((?: --user| --name \S+\b| (?:kagzi|second)\b)*)`)

func TestEveryCommandThatIsNamedIsForTheServiceInQuestion(t *testing.T) {
	for flags, which := range map[string]Spec{
		"--user": {User: true, Name: "kagzi"}, "--name second": {Name: "second"},
		"--user --name second": {User: true, Name: "second"},
	} {
		b := newBox(t)
		b.managers()
		said := ""
		kagzi := func(args string) {
			t.Helper()
			out, err := b.kagzi(t, append(strings.Fields(args), strings.Fields(flags)...)...)
			said += out + "\n"
			if err != nil {
				said += err.Error() + "\n"
			}
		}
		kagzi("status")
		kagzi("stop")
		kagzi("install --copy-binary")
		kagzi("install --copy-binary --listen 127.0.0.1:7000")
		m, err := b.host.manager(which)
		if err != nil {
			t.Fatal(err)
		}
		fake := m.(*fakeManager)
		fake.text += "# by hand\n"
		kagzi("status")
		kagzi("stop")
		kagzi("status")
		fake.failAt["start"], fake.counted = errTest, nil
		kagzi("start")
		fake.vendor = "/usr/lib/systemd/system/second.service"
		kagzi("install --copy-binary")
		fake.over = true
		kagzi("uninstall")
		p, err := planOf(b.host.places.layout(Spec{
			System: "linux", Name: which.Name, User: which.User, Binary: "/usr/local/bin/kagzi"}))
		if err != nil {
			t.Fatal(err)
		}
		said += strings.Replace(p.definition, `Written by "kagzi service install".`, "", 1)
		for _, f := range p.files {
			said += f.content
		}
		found := named.FindAllStringSubmatch(said, -1)
		if len(found) < 16 {
			t.Errorf("%s: only %d commands are named in:\n%s", flags, len(found), said)
		}
		for _, f := range found {
			want := " " + flags
			if strings.HasPrefix(f[0], "systemctl") {
				want = strings.TrimSuffix(want, " --name second") + " " + which.Name
			}
			if f[1] != want {
				t.Errorf("%s: %q is named, want %q behind it", flags, f[0], want)
			}
		}
	}
}

func TestADryRunSaysWhatTheCommandWouldDo(t *testing.T) {
	b := newBox(t)
	if _, err := b.kagzi(t, "install", "--copy-binary"); err != nil {
		t.Fatal(err)
	}
	text := b.manager.text
	b.manager.calls = nil
	b.manager.added = []string{"/etc/systemd/system/kagzi.service.d/mine.conf"}
	for _, try := range []struct {
		args string
		code int
		says []string
		not  string
	}{
		{"install --copy-binary", 0, []string{"already installed",
			"would restart kagzi, if it runs and its program differs",
			"would start kagzi, if it does not run"}, "would register"},
		{"install --copy-binary --listen 127.0.0.1:7000", exitConflict, []string{"+ ExecStart"}, "would"},
		{"reconfigure --listen 127.0.0.1:7000", 0,
			[]string{"would change fake", "+ ExecStart", "would restart kagzi, if it runs\n"}, "would start"},
		{"reconfigure", 0, []string{"would not change"}, "restart"},
		{"uninstall", 0, []string{"would keep /usr/local/bin/kagzi\n", "mine.conf, which was created by hand"},
			"would remove"},
		{"uninstall --purge", 0, []string{"would remove /usr/local/bin/kagzi\n"}, "would keep /usr"},
	} {
		out, err := b.kagzi(t, append(strings.Fields(try.args), "--dry-run")...)
		if code := codeOf(err); (err != nil || try.code != 0) && code != try.code {
			t.Errorf("%s: error %v with code %d, want %d", try.args, err, code, try.code)
		}
		for _, want := range try.says {
			if !strings.Contains(out, want) {
				t.Errorf("%s --dry-run says %q, want %q", try.args, out, want)
			}
		}
		if strings.Contains(out, try.not) {
			t.Errorf("%s --dry-run says %q, want nothing of %q", try.args, out, try.not)
		}
	}
	b.wantNothingDone(t)
	if b.manager.text != text {
		t.Errorf("the definition is %s, want it as it was", b.manager.text)
	}
}

func TestTheUIIsNamedWithWhereTheServiceListens(t *testing.T) {
	for flags, want := range map[string]string{
		"":                                 "kagzi tui\n",
		"--listen 127.0.0.1:7000":          "kagzi tui --address 127.0.0.1:7000\n",
		"--listen :7000":                   "kagzi tui --address localhost:7000\n",
		"--listen [::]:7000":               "kagzi tui --address localhost:7000\n",
		"--listen [::1]:7000":              "kagzi tui --address [::1]:7000\n",
		"--listen 127.0.0.1:0":             "kagzi tui\n",
		"--tls-cert /t/crt --tls-key /t/k": "kagzi tui --tls\n",
	} {
		if strings.Contains(flags, "--tls-key") && runtime.GOOS == "windows" {
			continue // this box has modes; files on a Windows disk have none to check
		}
		b := newBox(t)
		b.write(t, map[string]string{"/t/crt": "", "/t/k": ""})
		if out, err := b.kagzi(t, append([]string{"install", "--copy-binary"}, strings.Fields(flags)...)...); err !=
			nil || !strings.HasSuffix(out, "  "+want) {
			t.Errorf("install %s = %q, %v, want it to end with %q", flags, out, err, want)
		}
	}
}

func TestHealthIsAskedWhereTheServerListens(t *testing.T) {
	for _, try := range []struct{ flags, file, want string }{
		{"", "", ""},
		{"--listen 127.0.0.1:7000", "127.0.0.1:8000", "127.0.0.1:7000"},
		{"", "CONFIG:8000", "/etc/kagzi/kagzi.toml:8000"},
	} {
		b := newBox(t)
		if _, err := b.kagzi(t, append([]string{"install", "--copy-binary"},
			strings.Fields(try.flags)...)...); err != nil {
			t.Fatal(err)
		}
		b.listen = try.file
		if _, err := b.kagzi(t, "status"); err != nil || b.asked != try.want {
			t.Errorf("installed with %q, and %q in the file: %q was asked (%v), want %q", try.flags, try.file, b.asked,
				err, try.want)
		}
	}
}

func TestStatusAsJSONIsAContract(t *testing.T) {
	b := newBox(t)
	if _, err := b.kagzi(t, "install", "--copy-binary"); err != nil {
		t.Fatal(err)
	}
	out, err := b.kagzi(t, "status", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"name": "kagzi", "installed": true, "state": "running", "restarts": 0.0, "health": "serving",
		"definition": "fake", "current": true,
		"binary": "/usr/local/bin/kagzi", "config": "/etc/kagzi/kagzi.toml", "data_dir": "/var/lib/kagzi",
	} {
		if got[key] != want {
			t.Errorf("%s = %v, want %v", key, got[key], want)
		}
	}
	b.health, b.manager.text = errTest, b.manager.text+"# by hand\n"
	if out, err = b.kagzi(t, "status"); err != nil || !strings.Contains(out, "it broke") ||
		!strings.Contains(out, "changed by hand") {
		t.Errorf("status = %q, %v, want what is wrong", out, err)
	}
}

func TestWhoMayNotInstallIsToldBeforeAnythingIsDone(t *testing.T) {
	b := newBox(t)
	b.host.mayInstall = false
	for _, args := range []string{"install --copy-binary", "uninstall"} {
		_, err := b.kagzi(t, strings.Fields(args)...)
		wantCode(t, err, exitPermission, "administrator")
	}
	b.host.mayInstall, b.host.env = true, func(name string) string {
		return map[string]string{"SUDO_USER": "you"}[name]
	}
	_, err := b.kagzi(t, "install", "--user", "--copy-binary")
	wantCode(t, err, exitUsage, "sudo")
	b.manager.failAt["available"] = refuse(exitUnavailable, "no manager")
	b.host.env = func(string) string { return "" }
	_, err = b.kagzi(t, "install", "--copy-binary")
	wantCode(t, err, exitUnavailable)
	b.wantNothingDone(t)
}

func (b *box) wantNothingDone(t *testing.T) {
	t.Helper()
	if len(b.manager.calls) > 0 {
		t.Errorf("calls = %q, want none", b.manager.calls)
	}
}

func TestWhatWouldNotWorkIsRefusedWithWhatToDo(t *testing.T) {
	for _, try := range []struct{ args, says string }{
		{"install --name ../x", "--name"},
		{"install --copy-binary --config kagzi.toml", "absolute"},
		{"install --copy-binary --data-dir /srv/x", "--run-as"},
		{"install --copy-binary --data-dir /home/you/x --run-as you", "ProtectHome"},
		{"install --copy-binary --data-dir /tmp/x --run-as you", "PrivateTmp"},
		{"install --copy-binary --data-dir /srv/{{x --run-as you", "{{"},
		{"install --copy-binary --listen 50051", "--listen"},
		{"install --copy-binary --listen a\x00b:1", "control characters"},
		{"install --copy-binary --run-as a:b", "--run-as"},
		{"install --user --run-as you", "--run-as"},
		{"install --copy-binary --tls-cert /x.crt", "kagzi tls init"},
		{"install --copy-binary --client-ca /ca.crt", "--tls-cert"},
		{"install --copy-binary --tls-cert /open.url --tls-key /open.url", "chmod 600"},
		{"install --copy-binary --tls-cert /missing.crt --tls-key /missing.key", syscall.ENOENT.Error()},
		{"install --copy-binary -- --tls-key /x", "before the --"},
		{"install --copy-binary --database-url-file /open.url", "chmod 600"},
		{"install --copy-binary --database-url-file /missing.url", syscall.ENOENT.Error()},
		{"install --copy-binary -- --db postgres://me:secret@host/db", "--database-url-file"},
		{"install --copy-binary -- --listen=:1", "before the --"},
		{"install --copy-binary --listen 127.0.0.1:1 -- a\x1bb", "control characters"},
		{"print --os plan9", "plan9"},
		{"print --os windows --user", "schtasks"},
	} {
		b := newBox(t)
		if err := os.WriteFile(b.host.disk().at("/open.url"), []byte("postgres://"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := b.kagzi(t, strings.Fields(try.args)...)
		wantCode(t, err, exitUsage, try.says)
		b.wantNothingDone(t)
	}
}

func TestAnArgumentOutsideOfTheServersFlagsIsRefused(t *testing.T) {
	if _, err := newBox(t).kagzi(t, "install", "now"); err == nil || !strings.Contains(err.Error(), "after --") {
		t.Errorf("error %v, want where the server's flags go", err)
	}
}

func TestADefinitionOfAnotherSystemIsPrinted(t *testing.T) {
	for system, want := range map[string]string{"linux": "[Service]", "darwin": "<plist", "windows": `"sid_type"`} {
		out, err := newBox(t).kagzi(t, "print", "--os", system, "--binary",
			map[string]string{"windows": `C:\k.exe`}[system])
		if system == "linux" {
			out, err = newBox(t).kagzi(t, "print", "--copy-binary")
		}
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %q, %v, want %s", system, out, err, want)
		}
	}
}
