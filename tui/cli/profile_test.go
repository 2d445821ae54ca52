package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/profile"
)

// settingsFile creates a kagzi.toml with two profiles, and a key file next to it.
func settingsFile(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"kagzi.toml": `
[client]
namespace = "common"

[profile.prod]
address = "prod:1"
namespace = "shop"
api-key-file = "prod.key"
tls-server-name = "prod.test"

[profile.stage]
address = "127.0.0.1:2"
`, "prod.key": "kz_secret\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "kagzi.toml")
}

func TestProfiles(t *testing.T) {
	file := settingsFile(t)
	environ := func(more ...string) map[string]string {
		all := map[string]string{"KAGZI_CONFIG": file}
		for _, pair := range more {
			name, value, _ := strings.Cut(pair, "=")
			all[name] = value
		}
		return all
	}
	t.Run("profiles rank below flags and environment, above defaults", func(t *testing.T) {
		s := &session{environ: environ("KAGZI_ADDRESS=env:1")}
		s.want(t, ExitOK, "wf", "list", "--profile", "prod", "-n", "flag")
		if d := s.server.dialled; d.Address != "env:1" || d.APIKey != "kz_secret" || d.TLS == nil ||
			d.TLS.ServerName != "prod.test" {
			t.Errorf("dialled %+v", d)
		}
		if r := s.server.requests[0].(*kagziv1.ListWorkflowsRequest); r.Namespace != "flag" {
			t.Errorf("namespace %q", r.Namespace)
		}
	})
	t.Run("KAGZI_PROFILE selects a profile", func(t *testing.T) {
		s := &session{environ: environ("KAGZI_PROFILE=stage")}
		s.want(t, ExitOK, "wf", "list")
		if r := s.server.requests[0].(*kagziv1.ListWorkflowsRequest); r.Namespace != "common" ||
			s.server.dialled.Address != "127.0.0.1:2" {
			t.Errorf("namespace %q, dialled %+v", r.Namespace, s.server.dialled)
		}
	})
	t.Run("list marks the profile in use", func(t *testing.T) {
		s := &session{environ: environ("KAGZI_PROFILE=stage")}
		out, _ := s.want(t, ExitOK, "profile", "list")
		want :=
			"PROFILE  ADDRESS      NAMESPACE  IN USE\nprod     prod:1       shop\nstage    127.0.0.1:2  common     yes\n"
		if out != want {
			t.Errorf("stdout\n%s\nwant\n%s", out, want)
		}
		if out, msg := (&session{}).want(t, ExitOK, "profile", "list"); out != "" ||
			!strings.Contains(msg, "no profiles") {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
	})
	t.Run("show prints origins and no secret", func(t *testing.T) {
		s := &session{environ: environ("KAGZI_API_KEY=kz_hidden")}
		out, _ := s.want(t, ExitOK, "profile", "show", "prod", "-n", "flag", "-o", "json")
		var document struct {
			Profile  string
			Settings []struct{ Name, Value, Source string }
		}
		if err := json.Unmarshal([]byte(out), &document); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, s := range document.Settings {
			got[s.Name] = s.Value + " from " + strings.ReplaceAll(s.Source, filepath.Dir(file), "DIR")
		}
		for name, want := range map[string]string{
			"address": "prod:1 from " + filepath.Join("DIR", "kagzi.toml:6"), "namespace": "flag from --namespace",
			"api-key": "*** from KAGZI_API_KEY", "api-key-file": " from the default",
			"tls": "true from the other TLS settings", "tls-ca": " from the default",
		} {
			if got[name] != want {
				t.Errorf("%s: %q, want %q", name, got[name], want)
			}
		}
		if strings.Contains(out, "kz_hidden") || document.Profile != "prod" {
			t.Errorf("stdout\n%s", out)
		}
	})
	t.Run("an unknown profile lists the known ones", func(t *testing.T) {
		s := &session{environ: environ()}
		if _, msg := s.want(t, ExitUsage, "wf", "list", "--profile", "pord"); !strings.Contains(
			msg, `"prod", "stage"`) {
			t.Errorf("stderr %q", msg)
		}
	})
	t.Run("every profile setting has a flag and is shown", func(t *testing.T) {
		for _, name := range profile.Keys() {
			if newWorkflow((&session{server: &fake{}}).env()).PersistentFlags().Lookup(name) == nil {
				t.Errorf("there is no flag --%s", name)
			}
			value := "value"
			switch name {
			case "tls":
				value = "true"
			case "api-key", "api-key-file":
				continue // only one of them may be given
			}
			if out, _ := (&session{}).want(t, ExitOK, "profile", "show", "--"+name+"="+value); !strings.Contains(
				out, value+" ") || !strings.Contains(out, "--"+name) {
				t.Errorf("--%s:\n%s", name, out)
			}
		}
	})
	t.Run("profile names are completed", func(t *testing.T) {
		s := &session{environ: environ()}
		if out, _ := s.want(t, ExitOK, "__complete", "wf", "list", "--profile", ""); !strings.Contains(
			out, "prod\nstage\n") {
			t.Errorf("stdout %q", out)
		}
	})
}
