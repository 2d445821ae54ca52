package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// typed runs `kagzi tls` with arguments.
func typed(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	cmd, b := newTLS(), &bytes.Buffer{}
	cmd.SetArgs(args)
	cmd.SetOut(b)
	cmd.SetErr(b)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return b.String(), err
}

func TestTLSInitSaysWhatItMadeAndWhatToTypeNext(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with space")
	until := time.Now().UTC().AddDate(0, 0, 825).Format(time.DateOnly)
	out, err := typed(t, "init", "--dir", dir, "--host", "kagzi.example.com,10.0.0.7", "--client", "ci")
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return word(filepath.Join(dir, name)) }
	for _, want := range []string{
		"made  " + dir + "/ca.crt, the CA that clients trust, until ",
		"made  " + dir + "/server.crt, for a server at kagzi.example.com, localhost, 10.0.0.7, 127.0.0.1, ::1, until " +
			until + "\n",
		"made  " + dir + "/client-ci.crt, for a client with the rights of the key ci, until " + until + "\n",
		"kagzi key create NAME --role admin --db default\n",
		"kagzi server --listen :50051 --tls-cert " + in("server.crt") + " --tls-key " + in("server.key") +
			" --client-ca " + in("ca.crt") + "\n",
		"kagzi workflow list --address kagzi.example.com:50051 --tls-ca " + in("ca.crt") + "\n",
		"--tls-client-cert " + in("client-ci.crt") + " --tls-client-key " + in("client-ci.key") + "\n",
	} {
		if !strings.Contains(out, filepath.FromSlash(want)) {
			t.Errorf("it says:\n%s\nwant %q in it", out, want)
		}
	}
	out, err = typed(t, "init", "--dir", dir)
	if err != nil || strings.Contains(out, "made") || strings.Contains(out, "--client-ca") ||
		strings.Count(out, "kept") != 2 {
		t.Errorf("a second time: %v\n%s\nwant that all is kept, and no word of clients", err, out)
	}
	if out, err = typed(t, "init", "--dir", dir, "--renew"); err != nil || strings.Count(out, "made") != 1 ||
		strings.Count(out, "kept") != 1 {
		t.Errorf("renewed: %v\n%s\nwant that the server's is made", err, out)
	}
}

func TestTLSInitRefusesWhatCannotBe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	for _, try := range []struct {
		args []string
		says string
	}{
		{[]string{"--host", "a:1"}, `host "a:1": want a name`},
		{[]string{"--client", "../x"}, `client "../x"`},
		{[]string{"--days", "0"}, "want 1 to 3650"},
	} {
		if _, err := typed(t, append([]string{"init", "--dir", dir}, try.args...)...); codeOf(err) != 64 ||
			!mentions(err, try.says) {
			t.Errorf("%q: %v with code %d, want %q with 64", try.args, err, codeOf(err), try.says)
		}
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("the directory was made")
	}
}

func TestTLSCommandsEndWithTheCodesOfOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	if _, err := typed(t, "init", "--dir", dir, "--host", "one.example.com"); err != nil {
		t.Fatal(err)
	}
	if _, err := typed(t, "init", "--dir", dir, "--host", "other.example.com"); codeOf(err) != 6 ||
		!mentions(err, "--renew") {
		t.Errorf("another host: %v with code %d, want --renew with 6", err, codeOf(err))
	}
	nope := filepath.Join(dir, "nope.crt")
	if _, err := typed(t, "show", nope); codeOf(err) != 5 || !mentions(err, "no such file: "+nope) {
		t.Errorf("no file: %v with code %d, want 5", err, codeOf(err))
	}
}

func TestWithoutADirectoryTheFilesAreAmongTheSettings(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(name, home)
	}
	settings, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	if dir, err := teamDir(""); err != nil || dir != filepath.Join(settings, "kagzi", "tls") {
		t.Errorf("directory %s, %v, want kagzi/tls in %s", dir, err, settings)
	}
}

func TestACertificateHoldsForThisMachineIfNothingElseIsSaid(t *testing.T) {
	for host, want := range map[string]string{
		"box": "box localhost", "localhost": "localhost", "no host!": "localhost"} {
		got := localHosts(func() (string, error) { return host, nil })
		if strings.Join(got, " ") != want+" 127.0.0.1 ::1" {
			t.Errorf("on %q it holds for %q, want %s", host, got, want)
		}
	}
	if got := localHosts(func() (string, error) { return "", errors.New("none") }); len(got) != 3 {
		t.Errorf("without a name it holds for %q", got)
	}
	for want, hosts := range map[string][]string{
		"box": {"localhost", "box"}, "10.0.0.7": {"localhost", "127.0.0.1", "10.0.0.7"},
		"localhost": {"localhost", "::1"}, "a": {"*.x", "a"},
	} {
		if got := reachable(hosts); got != want {
			t.Errorf("of %q others use %s, want %s", hosts, got, want)
		}
	}
}

func TestTLSShowPrintsCertificatesAndFailsForOneThatHasExpired(t *testing.T) {
	files := team(t)
	var out bytes.Buffer
	at := time.Now().AddDate(0, 0, 10)
	if err := showCertificates(&out, []string{files.Cert}, at); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		files.Cert + "\n", "subject   CN=localhost,O=Kagzi\n", "issuer    CN=Kagzi authority ", "for       servers\n",
		"hosts     localhost, 127.0.0.1\n",
		"key       ECDSA P-256\n", "(19 days left)\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it shows:\n%s\nwant %q in it", out.String(), want)
		}
	}
	out.Reset()
	if err := showCertificates(&out, []string{files.Cert, files.ClientCA}, at.AddDate(0, 0, 30)); err == nil ||
		!strings.Contains(out.String(), "(expired)") ||
		!strings.Contains(out.String(), files.ClientCA) {
		t.Errorf("error %v, shown:\n%s\nwant both, and that one has expired", err, out.String())
	}
	if err := showCertificates(&out, []string{files.Key}, at); !mentions(err, "server.key", "holds no certificate") {
		t.Errorf("of a key: %v", err)
	}
}
