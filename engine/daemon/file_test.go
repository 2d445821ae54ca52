package daemon

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// written creates a settings file.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kagzi.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// settleBeside is settle with a default settings file at path.
func settleBeside(path string, args []string, env map[string]string) (Config, error) {
	fs := pflag.NewFlagSet("server", pflag.ContinueOnError)
	register(fs, serverSettings)
	if err := fs.Parse(args); err != nil {
		return Config{}, err
	}
	c, _, err := resolve(fs, serverSettings, surroundings{file: path, lookup: func(name string) (string, bool) {
		text, ok := env[name]
		return text, ok
	}})
	return c, err
}

// keyed returns a setting as a file has it.
func keyed(name, text string) string {
	i := slices.IndexFunc(serverSettings, func(s setting) bool { return s.name == name })
	return name + " = " + serverSettings[i].literal(text) + "\n"
}

func TestEverySettingIsAKeyOfTheFile(t *testing.T) {
	for _, s := range said {
		path := written(t, "# of the server\n[server]\n"+keyed(s.name, s.text))
		want := Defaults()
		s.change(&want)
		want.File = path
		want.Sources = map[string]string{"config": "flag", s.name: "file " + path + ":3"}
		got, warnings, err := settle([]string{"--config", path}, nil)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: error %v, warnings %q, want none", s.name, err, warnings)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.name, diff)
		}
	}
}

func TestFlagsOverrideVariablesWhichOverrideTheFile(t *testing.T) {
	path := written(
		t, "[server]\nlog-level = \"error\"\npoll-timeout = \"11s\"\ndrain-timeout = \"11s\"\nworker-lease = \"50s\"\n")
	c, err := settleBeside(path, []string{"--poll-timeout=13s"}, map[string]string{
		"KAGZI_POLL_TIMEOUT": "12s", "KAGZI_DRAIN_TIMEOUT": "12s", "KAGZI_WORKER_VISIBILITY_TIMEOUT_SECS": "40",
	})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for i := range serverSettings {
		if s := &serverSettings[i]; c.Sources[s.name] != "" {
			got[s.name] = s.show(&c) + " " + c.Sources[s.name]
		}
	}
	want := map[string]string{
		"config": path + " default", "poll-timeout": "13s flag", "drain-timeout": "12s environment KAGZI_DRAIN_TIMEOUT",
		"worker-lease": "40s environment KAGZI_WORKER_VISIBILITY_TIMEOUT_SECS",
		"log-level":    "error file " + path + ":2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestAFileThatIsNamedMustBeThereAndOneThatIsLookedForNeedNot(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.toml")
	if c, err := settleBeside(missing, nil, nil); err != nil || c.File != "" {
		t.Errorf("looked for: %q, %v, want no file and no error", c.File, err)
	}
	for way, try := range map[string]struct {
		args []string
		env  map[string]string
	}{"flag": {[]string{"--config", missing}, nil}, "variable": {nil, map[string]string{"KAGZI_CONFIG": missing}}} {
		if _, err := settleBeside("", try.args, try.env); err == nil || codeOf(err) != 64 || !mentions(err, missing) {
			t.Errorf("%s: error %v with code %d, want one that names the file, with 64", way, err, codeOf(err))
		}
	}
	named := written(t, "[server]\nretention = \"1h\"\n")
	beside := written(t, "nonsense")
	if c, err := settleBeside(beside, nil, map[string]string{"KAGZI_CONFIG": named}); err != nil || c.File != named ||
		brief(c.Retention) != "1h" {
		t.Errorf("with another one named: %q, %v, want only the other one read", c.File, err)
	}
	if c, err := settleBeside(beside, []string{"--config", "off"}, nil); err != nil || c.File != "" {
		t.Errorf("with none wanted: %q, %v, want no file and no error", c.File, err)
	}
	if _, err := settleBeside(beside, nil, nil); err == nil || !mentions(err, beside+":1") {
		t.Errorf("error %v, want one that names the file that was found", err)
	}
}

func TestWhatIsWrongInAFileIsSaidWithItsLine(t *testing.T) {
	for text, want := range map[string][]string{
		"[server]\n\nlisten = \"127.0.0.1:1\"\nworker-leese = \"30s\"": {
			":4: ", `unknown setting "worker-leese"`, `did you mean "worker-lease"?`},
		"[server]\nconfig = \"x\"":  {":2: ", `unknown setting "config"`},
		"[server]\nzzzzzzzzzz = 1":  {":2: ", `unknown setting "zzzzzzzzzz"`},
		"[server]\nlisten.port = 1": {":2: ", `unknown setting "listen.port"`},
		"[server.listen]\nport = 1": {":1: ", "listen: must be a quoted string"},
		"[server]\nworker-lease = 30": {
			":2: ", "worker-lease", `"30"`, "want a duration from 100ms to 24h"},
		"[server]\ncoordinator-batch-size = 0": {
			":2: ", "coordinator-batch-size", "want a whole number from 1 to 10000"},
		"[server]\ncoordinator-batch-size = 1.5": {
			":2: ", "coordinator-batch-size", "must be a quoted string, a whole number"},
		"[server]\ninsecure = [true]": {
			":2: ", "insecure", "must be a quoted string, a whole number"},
		"[server]\nretention = 2026-01-01": {
			":2: ", "retention", "must be a quoted string, a whole number"},
		"# x\n[sever]\nlisten = \"127.0.0.1:1\"": {
			":2: ", `unknown table "sever"`, `did you mean "server"?`},
		"[Server]\nlisten = \"127.0.0.1:1\"": {
			":2: ", `unknown table "Server"`, `did you mean "server"?`},
		"listen = \"127.0.0.1:1\"": {
			":1: ", `"listen" is outside table [server]`},
		"server = 3":                                   {":1: "},
		"[[server]]\nlisten = \"127.0.0.1:1\"":         {":1: "},
		"[server]\nlisten =":                           {":2: "},
		"[server]\nlisten = \"a:1\"\nlisten = \"a:2\"": {":3: ", "already defined"},
		"[server]\n\"\x1b[2J\" = 1":                    {":2: "},
		"[server]\n\"\\u001b[2J\" = 1":                 {":2: ", `unknown setting "\x1b[2J"`},
	} {
		path := written(t, text)
		_, err := settleBeside(path, nil, nil)
		if err == nil || codeOf(err) != 64 || !mentions(err, append(want, path)...) {
			t.Errorf("%q: error %v with code %d, want one that says %q, with 64", text, err, codeOf(err), want)
			continue
		}
		if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q: the error harms a terminal: %q", text, err)
		}
	}
}

func TestAWrongValueOfADatabaseShowsNoPassword(t *testing.T) {
	path := written(t, "[server]\ndb = \"\"\n")
	if _, err := settleBeside(path, nil, nil); err == nil || !mentions(err, "want sqlite:PATH") {
		t.Errorf("error %v, want one that says what is wanted", err)
	}
	var out bytes.Buffer
	c, err := settleBeside(written(t, "[server]\ndb = \"postgres://kagzi:hunter2@db/kagzi?password=hunter2\"\n"), nil,
		nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := printConfig(&out, &c); err != nil || strings.Contains(out.String(), "hunter2") ||
		!strings.Contains(out.String(), "postgres://kagzi@db/kagzi") {
		t.Errorf("printed %s, %v, want the database without its password", out.String(), err)
	}
}

func TestWhatClientsKeepInTheFileIsTheirs(t *testing.T) {
	path := written(
		t, "[client]\naddress = 3\n[profile.far]\nnonsense = [1]\n[server]\nretention = 0\ninsecure = false\n")
	if c, err := settleBeside(path, nil, nil); err != nil || c.Retention != 0 {
		t.Errorf("retention %v, %v, want 0 and no error", c.Retention, err)
	}
	if c, err := settleBeside(written(t, ""), nil, nil); err != nil || len(c.Sources) != 1 {
		t.Errorf("an empty file: %v, %v, want nothing said and no error", c.Sources, err)
	}
}

func TestDatabaseCommandsReadTheSameFileAndIgnoreTheRestOfIt(t *testing.T) {
	path := written(t, "[server]\ndb = \"sqlite:x.db\"\nworker-lease = \"30s\"\n")
	fs := pflag.NewFlagSet("db", pflag.ContinueOnError)
	register(fs, databaseSettings)
	c, _, err := resolve(fs, databaseSettings,
		surroundings{file: path, lookup: func(string) (string, bool) { return "", false }})
	if err != nil || c.DB != "sqlite:x.db" || c.WorkerLease != Defaults().WorkerLease {
		t.Errorf("%+v, %v, want the database of the file", c, err)
	}
}

func TestPrintedSettingsAreAFileThatSaysTheSame(t *testing.T) {
	path := written(t, "[server]\nlog-format = \"json\"\n")
	env := map[string]string{"KAGZI_WORKER_VISIBILITY_TIMEOUT_SECS": "45"}
	for _, args := range [][]string{
		{"--db=sqlite:/a \"b\"\\c\u202e\x1b/d.db", "--insecure", "--coordinator-batch-size=7", "--http="},
		{"--data-dir=/some/where"},
	} {
		c, err := settleBeside(path, args, env)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := printConfig(&out, &c); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
			if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("the line harms a terminal: %q", line)
			}
		}
		again, err := settleBeside(written(t, out.String()), nil, nil)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, out.String())
		}
		want := c
		again.File, again.Sources, want.Sources = want.File, nil, nil
		if diff := cmp.Diff(want, again); diff != "" {
			t.Errorf("read again (-want +got):\n%s\nof:\n%s", diff, out.String())
		}
	}
}

func TestPrintedSettingsSayWhereTheyComeFrom(t *testing.T) {
	path := written(t, "[server]\nlog-format = \"json\"\n")
	dir := filepath.Join(t.TempDir(), "some where")
	c, err := settleBeside(path, []string{"--data-dir=" + dir, "--http="},
		map[string]string{"KAGZI_SCHEDULER_INTERVAL_SECS": "9"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printConfig(&out, &c); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, line := range strings.Split(out.String(), "\n")[1:] {
		if i := strings.LastIndex(line, "  # "); i >= 0 {
			got[strings.TrimSpace(line[:i])] = line[i+4:]
		}
	}
	for line, source := range map[string]string{
		fmt.Sprintf("# config = %q", path): "default", fmt.Sprintf("data-dir = %q", dir): "flag",
		fmt.Sprintf("# db = %q", "sqlite:"+filepath.Join(dir, "kagzi.db")): "default",
		`http = "off"`: "flag", `coordinator-interval = "9s"`: "environment KAGZI_SCHEDULER_INTERVAL_SECS",
		`log-format = "json"`:        "file " + path + ":2",
		`listen = "127.0.0.1:50051"`: "default", `insecure = false`: "default",
	} {
		if got[line] != source {
			t.Errorf("%s comes from %q, want %q; all:\n%s", line, got[line], source, out.String())
		}
	}
	if len(got) != len(serverSettings) {
		t.Errorf("%d settings are printed, want all %d", len(got), len(serverSettings))
	}
}

func TestADataDirectoryMovesTheDatabaseOfPrintedSettings(t *testing.T) {
	c, err := settleBeside(written(t, ""), []string{"--data-dir=" + t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printConfig(&out, &c); err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	moved, err := settleBeside(written(t, out.String()), []string{"--data-dir=" + elsewhere}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if url, _, err := moved.database(); err != nil || url != "sqlite:"+filepath.Join(elsewhere, "kagzi.db") {
		t.Errorf("the database is %q, %v, want it in %s", url, err, elsewhere)
	}
}

func TestWhereAFileHasTheServerListen(t *testing.T) {
	for text, want := range map[string]string{
		"listen = \"127.0.0.1:8000\"\n": "", "[server]\nlisten = \":9\"\n": ":9", "": "", "listen = ": ""} {
		if got := ListenIn(written(t, text)); got != want {
			t.Errorf("%q has it listen on %q, want %q", text, got, want)
		}
	}
	if got := ListenIn(filepath.Join(t.TempDir(), "nothing")); got != "" {
		t.Errorf("a file that is not there has it listen on %q", got)
	}
}
