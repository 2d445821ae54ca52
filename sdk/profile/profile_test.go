package profile

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func equal[T any](t *testing.T, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("-want +got:\n%s", d)
	}
}

// clean removes all settings from the environment during a test, and returns the path of the file,
// which does not exist.
func clean(t *testing.T) (path string) {
	t.Helper()
	for _, key := range append(Keys(), "profile") {
		t.Setenv(Variable(key), "")
	}
	path = filepath.Join(t.TempDir(), "kagzi.toml")
	t.Setenv("KAGZI_CONFIG", path)
	return path
}

// file is clean with a file that has some text.
func file(t *testing.T, text string) (path string) {
	t.Helper()
	path = clean(t)
	write(t, path, text, 0o600)
	return path
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

const sample = `
[server]
listen = "x"
no-such-setting = 1

[client]
profile = "prod"
namespace = "everybody"
api-key-file = "all.key"

[profile.prod]
address = "prod:1"
tls-ca = "/etc/ca.pem"
tls-client-cert = "me.pem"
tls-client-key = "me.key"

[profile."eu test"]
api-key = "kz_x"
tls = false

[profile.empty]
`

func TestLoad(t *testing.T) {
	t.Run("a profile holds, and [client] for what it leaves open", func(t *testing.T) {
		path := file(t, sample)
		at := func(line int) string { return fmt.Sprintf("file %s:%d", path, line) }
		dir := filepath.Dir(path)
		p, err := Load("prod")
		if err != nil {
			t.Fatal(err)
		}
		equal(t, p, Profile{
			Name: "prod", Address: "prod:1", Namespace: "everybody", APIKeyFile: filepath.Join(dir, "all.key"),
			TLSCA: filepath.VolumeName(dir) + filepath.FromSlash("/etc/ca.pem"), TLSCert: filepath.Join(dir, "me.pem"),
			TLSKey: filepath.Join(dir, "me.key"),
			Sources: map[string]string{"address": at(12), "namespace": at(8), "api-key-file": at(9), "tls-ca": at(13),
				"tls-client-cert": at(14), "tls-client-key": at(15)},
		})
		equal(t, p.Encrypted(), true)
	})

	t.Run("a key of the profile goes before the file of [client]", func(t *testing.T) {
		file(t, sample)
		p, err := Load("eu test")
		if err != nil {
			t.Fatal(err)
		}
		equal(t, []string{string(p.APIKey), p.APIKeyFile, fmt.Sprint(*p.TLS)}, []string{"kz_x", "", "false"})
	})

	for _, c := range []struct{ name, asked, variable, text, want string }{
		{"the one that is asked for", "empty", "prod", sample, "empty"},
		{"else that of the environment", "", "empty", sample, "empty"},
		{"else the one that [client] names", "", "", sample, "prod"},
		{"else none", "", "", "[client]\naddress = \"a:1\"\n[profile.x]\n", ""},
		{"none where the environment says off", "", "off", sample, ""},
		{"none where off is asked for", "off", "prod", sample, ""},
	} {
		t.Run("the profile is "+c.name, func(t *testing.T) {
			file(t, c.text)
			t.Setenv("KAGZI_PROFILE", c.variable)
			p, err := Load(c.asked)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, p.Name, c.want)
		})
	}

	t.Run("no file says nothing when none is named", func(t *testing.T) {
		clean(t)
		t.Setenv("KAGZI_CONFIG", "")
		t.Setenv("HOME", t.TempDir())
		t.Setenv("XDG_CONFIG_HOME", t.TempDir())
		t.Setenv("AppData", t.TempDir())
		p, err := Load("")
		if err != nil {
			t.Fatal(err)
		}
		equal(t, p, Profile{Sources: map[string]string{}})
		names, path, err := Names()
		if len(names) > 0 || path != "" || err != nil {
			t.Fatalf("Names = %q, %q, %v", names, path, err)
		}
		_, err = Load("prod")
		if err == nil || !strings.HasPrefix(err.Error(), `no profile "prod": no settings file at `) {
			t.Fatalf("err = %v", err)
		}
	})

	t.Run("the file in the place for settings is read", func(t *testing.T) {
		clean(t)
		t.Setenv("KAGZI_CONFIG", "")
		t.Setenv("HOME", t.TempDir())
		t.Setenv("XDG_CONFIG_HOME", t.TempDir())
		t.Setenv("AppData", t.TempDir())
		dir, err := os.UserConfigDir()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "kagzi"), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "kagzi", "kagzi.toml"), sample, 0o600)
		p, err := Load("")
		if err != nil {
			t.Fatal(err)
		}
		equal(t, p.Address, "prod:1")
		names, path, err := Names()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, names, []string{"empty", "eu test", "prod"})
		equal(t, path, filepath.Join(dir, "kagzi", "kagzi.toml"))
	})

	t.Run("a named file must exist", func(t *testing.T) {
		path := clean(t)
		if _, err := Load(""); err == nil || !strings.Contains(err.Error(), path) {
			t.Fatalf("err = %v", err)
		}
	})

	for _, c := range []struct{ name, text, want string }{
		{"an unknown key", "[client]\n\nadress = \"x\"", `:3: unknown setting "adress"; did you mean "address"?`},
		{"an unknown key of a profile", "[profile.a]\ntls-client-cert = \"x\"\ntls-clientkey = \"x\"",
			`:3: unknown setting "tls-clientkey"; did you mean "tls-client-key"?`},
		{"an unknown key without a similar one", "[client]\nq = 1", `:2: unknown setting "q"`},
		{"a profile that names a profile", "[profile.a]\nprofile = \"b\"", `:2: unknown setting "profile"`},
		{"a table within a profile", "[profile.a.b]\nx = 1", `:1: unknown setting "b"`},
		{"an unknown table", "[profiles.a]\naddress = \"x\"",
			`:1: unknown table "profiles"; did you mean "profile"?`},
		{"a key outside of the tables", "address = \"x\"",
			`:1: "address" is outside the tables: settings of clients belong in [client] or [profile.NAME]`},
		{"a text without quotes", "[client]\naddress = 1", `:2: address: want a text in quotes`},
		{"a boolean in quotes", "[client]\ntls = \"yes\"", `:2: tls: want true or false`},
		{"a profile name without quotes", "[client]\nprofile = 1", `:2: profile: want the name of a profile in quotes`},
		{"a profile without a name", "profile = \"prod\"",
			`: profile is not a table: a profile is [profile.NAME], and profile in [client] selects the default`},
		{"a profile that is not a table", "[profile]\nprod = 1",
			`: "prod" in [profile] is not a table: a profile is [profile.NAME]`},
		{"a profile called off", "[profile.off]", `: a profile cannot have the name "off": choose another`},
		{"invalid TOML", "[client\n", `:1: expected`},
		{"control characters in a key", "[client]\n\"a\\u001b\" = 1", `:2: unknown setting "a\x1b"`},
		{"a default profile that does not exist", "[client]\nprofile = \"c\"\n[profile.b]\n[profile.a]",
			`no profile "c" in PATH, which has "a", "b"`},
		{"profiles that are not there", "[client]\nprofile = \"c\"",
			`no profile "c" in PATH, which has no table [profile.NAME]`},
	} {
		t.Run("refuses "+c.name, func(t *testing.T) {
			path := file(t, c.text)
			_, err := Load("")
			if err == nil {
				t.Fatal("was read")
			}
			got := strings.ReplaceAll(strings.TrimPrefix(err.Error(), path), path, "PATH")
			if !strings.HasPrefix(got, c.want) {
				t.Fatalf("err = %q, want %q", got, c.want)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	resolve := func(t *testing.T, said Profile) Profile {
		t.Helper()
		p, err := Resolve(said)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}

	t.Run("reports the value and source of each setting",
		func(t *testing.T) {
			path := file(t, "[client]\naddress = \"file:1\"\nnamespace = \"file\"\ntls-server-name = \"file\"\n")
			t.Setenv("KAGZI_NAMESPACE", "environment")
			t.Setenv("KAGZI_ADDRESS", "environment:1")
			p := resolve(t, Profile{Address: "given:1", TLSCA: "given.pem"})
			equal(t, p, Profile{Address: "given:1", Namespace: "environment", TLSCA: "given.pem", TLSServerName: "file",
				Sources: map[string]string{
					"address": "given", "namespace": "environment KAGZI_NAMESPACE", "tls-ca": "given",
					"tls-server-name": "file " + path + ":4"}})
		})

	t.Run("is the defaults where nobody says anything", func(t *testing.T) {
		file(t, "")
		p := resolve(t, Profile{})
		equal(t, p, Profile{Address: "127.0.0.1:50051", Namespace: "default", Sources: map[string]string{}})
		equal(t, p.Encrypted(), false)
	})

	t.Run("off leaves all but the caller unheard", func(t *testing.T) {
		file(t, sample)
		t.Setenv("KAGZI_API_KEY", "kz_x")
		equal(t, resolve(t, Profile{Name: Off, Namespace: "n"}),
			Profile{Address: DefaultAddress, Namespace: "n", Sources: map[string]string{"namespace": "given"}})
	})

	t.Run("a key overrides a key file, and the other way round", func(t *testing.T) {
		file(t, "[client]\napi-key-file = \"f\"\n")
		t.Setenv("KAGZI_API_KEY", "kz_environment")
		p := resolve(t, Profile{})
		equal(t, []string{string(p.APIKey), p.APIKeyFile}, []string{"kz_environment", ""})
		p = resolve(t, Profile{APIKeyFile: "given"})
		equal(t, []string{string(p.APIKey), p.APIKeyFile}, []string{"", "given"})
	})

	t.Run("a certificate does not get the key of another place", func(t *testing.T) {
		file(t, "[client]\ntls-client-cert = \"a\"\ntls-client-key = \"b\"\n")
		t.Setenv("KAGZI_TLS_CLIENT_CERT", "c")
		p := resolve(t, Profile{})
		equal(t, []string{p.TLSCert, p.TLSKey}, []string{"c", ""})
		_, err := p.TLSConfig()
		equal(t, fmt.Sprint(err), "tls-client-cert and tls-client-key go together: set both or neither")
	})

	t.Run("a source of higher rank can turn TLS off", func(t *testing.T) {
		file(t, "[client]\ntls-ca = \"ca.pem\"\ntls = true\n")
		equal(t, resolve(t, Profile{}).Encrypted(), true)
		t.Setenv("KAGZI_TLS", "false")
		equal(t, resolve(t, Profile{}).Encrypted(), false)
		equal(t, resolve(t, Profile{TLS: new(true)}).Encrypted(), true)
	})

	t.Run("a source of lower rank cannot turn TLS off", func(t *testing.T) {
		file(
			t,
			"[client]\ntls = false\n[profile.prod]\ntls-ca = \"ca.pem\"\n[profile.open]\ntls-ca = \"ca.pem\"\ntls = false\n")
		equal(t, resolve(t, Profile{}).Encrypted(), false)
		equal(t, resolve(t, Profile{Name: "prod"}).Encrypted(), true)
		equal(t, resolve(t, Profile{Name: "open"}).Encrypted(), false)
		equal(t, resolve(t, Profile{Name: "open", TLSServerName: "x"}).Encrypted(), true)
		t.Setenv("KAGZI_TLS_CA", "other.pem")
		equal(t, resolve(t, Profile{Name: "open"}).Encrypted(), true)
		t.Setenv("KAGZI_TLS", "false")
		equal(t, resolve(t, Profile{Name: "prod"}).Encrypted(), false)
		equal(t, resolve(t, Profile{Name: "prod", TLSCA: "given.pem"}).Encrypted(), true)
	})

	t.Run("TLS that is neither true nor false is refused", func(t *testing.T) {
		file(t, "")
		t.Setenv("KAGZI_TLS", "maybe")
		_, err := Resolve(Profile{})
		equal(t, fmt.Sprint(err), `KAGZI_TLS="maybe": want true or false`)
	})
}

func TestKey(t *testing.T) {
	t.Run("is the content of its file, without surrounding space", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "key")
		write(t, path, "  kz_x\r\n", 0o600)
		key, err := Profile{APIKeyFile: path}.Key()
		equal(t, fmt.Sprint(string(key), err), "kz_x<nil>")
	})

	t.Run("is none where none is given", func(t *testing.T) {
		key, err := Profile{}.Key()
		equal(t, fmt.Sprint(string(key), err), "<nil>")
	})

	long := strings.Repeat("x", maxKey+1)
	for name, p := range map[string]Profile{
		"two at once": {APIKey: "kz_canary", APIKeyFile: "f"}, "two words": {APIKey: "kz canary"},
		"a line break": {APIKey: "kz_canary\nx"},
		"no ASCII":     {APIKey: "kz_canaryé"}, "an empty file": {APIKeyFile: os.DevNull},
		"a file that is not there": {APIKeyFile: "gone"},
		"what is too long":         {APIKey: Secret(long)},
	} {
		t.Run("refuses "+name+", and does not tell it", func(t *testing.T) {
			key, err := p.Key()
			if key != "" || err == nil || strings.Contains(err.Error(), "canary") ||
				strings.Contains(err.Error(), long) {
				t.Fatalf("Key = %q, %v", string(key), err)
			}
		})
	}

	t.Run("names the setting whose file cannot be read", func(t *testing.T) {
		_, err := Profile{APIKeyFile: filepath.Join(t.TempDir(), "gone")}.Key()
		equal(t, strings.HasPrefix(fmt.Sprint(err), "api-key-file: open "), true)
	})

	t.Run("shows itself to nobody", func(t *testing.T) {
		p := Profile{APIKey: "kz_canary"}
		var logged strings.Builder
		slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "key", p.APIKey, "profile", p)
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "key", p.APIKey, "profile", p)
		encoded, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		shown := fmt.Sprintf("%v %+v %#v %s %q %x %d %v %v %#v", p, p, p, p.APIKey, p.APIKey, p.APIKey, p.APIKey, &p,
			[]Secret{p.APIKey}, p.APIKey) +
			fmt.Sprint(p.APIKey.String(), p.APIKey.GoString()) + string(encoded) + logged.String()
		for _, leak := range []string{"canary", fmt.Sprintf("%x", "canary"), fmt.Sprint([]byte("canary"))} {
			if strings.Contains(shown, leak) {
				t.Errorf("%q shows in %s", leak, shown)
			}
		}
		equal(t, strings.Contains(shown, masked), true)
		equal(t, Secret("").String(), "")
	})
}

func TestWarnings(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are kept elsewhere on Windows")
	}
	text := "[client]\napi-key = \"kz_x\"\n"
	for _, c := range []struct {
		name, text string
		mode       os.FileMode
		key        string
		want       int
	}{
		{"a file with a key that everybody reads", text, 0o644, "", 1},
		{"no warning for a file that a group can read", text, 0o640, "", 0},
		{"no warning for a file without a key", "[client]\naddress = \"x\"\n", 0o644, "", 0},
		{"no warning for a file whose key is not used", text, 0o644, "kz_environment", 0},
	} {
		t.Run("tell of "+c.name, func(t *testing.T) {
			path := file(t, c.text)
			write(t, path, c.text, c.mode)
			t.Setenv("KAGZI_API_KEY", c.key)
			p, err := Resolve(Profile{})
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Warnings) != c.want || c.want > 0 && !strings.HasPrefix(p.Warnings[0], path+" holds an API key") {
				t.Fatalf("warnings: %q", p.Warnings)
			}
		})
	}

	t.Run("tell of a key's own file, and of a TLS key's", func(t *testing.T) {
		path := file(t, "[client]\napi-key-file = \"k\"\ntls-client-cert = \"c\"\ntls-client-key = \"t\"\n")
		for _, name := range []string{"k", "c", "t"} {
			write(t, filepath.Join(filepath.Dir(path), name), "x", 0o644)
		}
		p, err := Load("")
		if err != nil {
			t.Fatal(err)
		}
		equal(t, len(p.Warnings), 2)
	})
}

func TestTLSConfig(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "none.pem"), "nothing", 0o600)
	for name, c := range map[string]struct {
		p    Profile
		want string
	}{
		"no TLS": {Profile{}, ""},
		"an authority's file": {Profile{TLSCA: filepath.Join(dir, "gone.pem")},
			"tls-ca: open " + filepath.Join(dir, "gone.pem")},
		"an authority": {Profile{TLSCA: filepath.Join(dir, "none.pem")},
			"tls-ca: " + filepath.Join(dir, "none.pem") + " holds no PEM certificate"},
		"a client's own": {Profile{TLSCert: filepath.Join(dir, "none.pem"), TLSKey: "x"},
			"tls-client-cert " + filepath.Join(dir, "none.pem") + ", tls-client-key x: "},
		"half of a client's":    {Profile{TLSKey: "x"}, "tls-client-cert and tls-client-key go together"},
		"TLS turned off for it": {Profile{TLS: new(false), TLSCA: "gone"}, ""},
	} {
		t.Run("without "+name, func(t *testing.T) {
			config, err := c.p.TLSConfig()
			if config != nil || (err == nil) != (c.want == "") || err != nil &&
				!strings.HasPrefix(err.Error(), c.want) {
				t.Fatalf("TLSConfig = %v, %v", config, err)
			}
		})
	}
}
