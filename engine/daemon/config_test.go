package daemon

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/kagzi/kagzi/engine"
)

// settle resolves a command line and an environment.
func settle(args []string, env map[string]string) (Config, []string, error) {
	fs := pflag.NewFlagSet("server", pflag.ContinueOnError)
	register(fs, serverSettings)
	if err := fs.Parse(args); err != nil {
		return Config{}, nil, err
	}
	return resolve(fs, serverSettings, surroundings{lookup: func(name string) (string, bool) {
		text, ok := env[name]
		return text, ok
	}})
}

// said has one value other than the default for each setting, and its effect.
var said = []struct {
	name, text string
	change     func(*Config)
}{
	{"db", "postgres://kagzi@localhost/kagzi", func(c *Config) { c.DB = "postgres://kagzi@localhost/kagzi" }},
	{"data-dir", "some/dir", func(c *Config) { c.DataDir = "some/dir" }},
	{"listen", "[::1]:0", func(c *Config) { c.Listen = "[::1]:0" }},
	{"http", "off", func(c *Config) { c.HTTP = "" }},
	{"http-host", "kagzi.example,::1", func(c *Config) { c.HTTPHosts = []string{"kagzi.example", "::1"} }},
	{"http-cors", "https://a.example,http://b.example:8080", func(c *Config) {
		c.HTTPOrigins = []string{"https://a.example", "http://b.example:8080"}
	}},
	{"http-base-path", "/a/kagzi/", func(c *Config) { c.HTTPBase = "/a/kagzi" }},
	{"http-trusted-proxy", "10.0.0.0/8,::1/128", func(c *Config) {
		c.TrustedProxies = []string{"10.0.0.0/8", "::1/128"}
	}},
	{"web", "off", func(c *Config) { c.Web = false }},
	{"web-read-only", "true", func(c *Config) { c.WebReadOnly = true }},
	{"mcp-allow-writes", "true", func(c *Config) { c.AgentWrites = true }},
	{"agq", "127.0.0.1:0", func(c *Config) { c.AGQ = "127.0.0.1:0" }},
	{"agq-insecure", "true", func(c *Config) { c.AGQInsecure = true }},
	{"agq-verify", "true", func(c *Config) { c.AGQVerify = true }},
	{"worker-lease", "45s", func(c *Config) { c.WorkerLease = 45 * time.Second }},
	{"heartbeat-interval", "1500ms", func(c *Config) { c.HeartbeatInterval = 1500 * time.Millisecond }},
	{"poll-timeout", "20s", func(c *Config) { c.PollTimeout = 20 * time.Second }},
	{"coordinator-interval", "1m", func(c *Config) { c.CoordinatorInterval = time.Minute }},
	{"coordinator-batch-size", "7", func(c *Config) { c.CoordinatorBatchSize = 7 }},
	{"coordinator-catchup-rate", "7", func(c *Config) { c.CoordinatorCatchupRate = 7 }},
	{"audit-retention", "2h", func(c *Config) { c.AuditRetention = 2 * time.Hour }},
	{"request-retention", "3h", func(c *Config) { c.RequestRetention = 3 * time.Hour }},
	{"retention", "0", func(c *Config) { c.Retention = 0 }},
	{"backup-every", "90m", func(c *Config) { c.BackupEvery = 90 * time.Minute }},
	{"namespace-rate", "500", func(c *Config) { c.NamespaceRate = 500 }},
	{"backup-keep", "7", func(c *Config) { c.BackupKeep = 7 }},
	{"backup-dir", "some/dir", func(c *Config) { c.BackupDir = "some/dir" }},
	{"drain-timeout", "29s", func(c *Config) { c.DrainTimeout = 29 * time.Second }},
	{"tls-cert", "tls/server.crt", func(c *Config) { c.TLSCert = "tls/server.crt" }},
	{"tls-key", "credential:tls-key", func(c *Config) { c.TLSKey = "credential:tls-key" }},
	{"client-ca", "tls/ca.crt", func(c *Config) { c.ClientCA = "tls/ca.crt" }},
	{"insecure", "true", func(c *Config) { c.Insecure = true }},
	{"allow-unleased-workers", "true", func(c *Config) { c.AllowUnleased = true }},
	{"auto-namespaces", "true", func(c *Config) { c.AutoNamespaces = true }},
	{"log-level", "warn", func(c *Config) { c.LogLevel = slog.LevelWarn }},
	{"log-format", "json", func(c *Config) { c.LogFormat = "json" }},
}

func TestEverySettingIsAFlagAndAVariable(t *testing.T) {
	if len(said) != len(serverSettings)-1 {
		t.Fatalf("%d settings are tried, want all %d but the file", len(said), len(serverSettings))
	}
	for _, s := range said {
		want := Defaults()
		s.change(&want)
		variable := "KAGZI_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
		for way, try := range map[string]struct {
			args   []string
			env    map[string]string
			source string
		}{
			"flag":     {[]string{"--" + s.name + "=" + s.text}, nil, "flag"},
			"variable": {nil, map[string]string{variable: s.text}, "environment " + variable},
			"flag over variable": {[]string{"--" + s.name + "=" + s.text},
				map[string]string{variable: "nonsense"}, "flag"},
		} {
			t.Run(s.name+"/"+way, func(t *testing.T) {
				got, warnings, err := settle(try.args, try.env)
				if err != nil || len(warnings) > 0 {
					t.Fatalf("error %v, warnings %q, want none", err, warnings)
				}
				want.Sources = map[string]string{s.name: try.source}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("settings (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestDefaultsApplyWithoutFlagsAndVariables(t *testing.T) {
	got, warnings, err := settle(nil, map[string]string{"KAGZI_LISTEN": "", "KAGZI_RUBBISH": "x"})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %q, want none", err, warnings)
	}
	want := Defaults()
	want.Sources = map[string]string{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if err := got.check(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

func TestSwitchesNeedNoValue(t *testing.T) {
	c, _, err := settle([]string{"--insecure", "--allow-unleased-workers"}, nil)
	if err != nil || !c.Insecure || !c.AllowUnleased {
		t.Fatalf("got %+v, %v, want both on", c, err)
	}
}

func TestOlderNamesStillWork(t *testing.T) {
	for _, try := range []struct {
		variable, text string
		change         func(*Config)
		warning        string
	}{
		{"KAGZI_DB_URL", "sqlite:x.db", func(c *Config) { c.DB = "sqlite:x.db" }, ""},
		{"KAGZI_WORKER_VISIBILITY_TIMEOUT_SECS", "300", func(c *Config) { c.WorkerLease = 5 * time.Minute }, ""},
		{"KAGZI_COORDINATOR_WORKER_STALE_THRESHOLD_SECS", "45", func(c *Config) {
			c.WorkerLease = 45 * time.Second
		}, ""},
		{"KAGZI_WORKER_HEARTBEAT_INTERVAL_SECS", "5", func(c *Config) { c.HeartbeatInterval = 5 * time.Second }, ""},
		{"KAGZI_WORKER_POLL_TIMEOUT_SECS", "50", func(c *Config) { c.PollTimeout = 50 * time.Second }, ""},
		{"KAGZI_COORDINATOR_INTERVAL_SECS", "9", func(c *Config) { c.CoordinatorInterval = 9 * time.Second }, ""},
		{"KAGZI_COORDINATOR_BATCH_SIZE", "9", func(c *Config) { c.CoordinatorBatchSize = 9 }, ""},
		{
			"KAGZI_SCHEDULER_INTERVAL_SECS", "9", func(c *Config) { c.CoordinatorInterval = 9 * time.Second },
			"KAGZI_SCHEDULER_INTERVAL_SECS is an old name; use KAGZI_COORDINATOR_INTERVAL",
		},
		{
			"KAGZI_SCHEDULER_BATCH_SIZE", "9", func(c *Config) { c.CoordinatorBatchSize = 9 },
			"KAGZI_SCHEDULER_BATCH_SIZE is an old name; use KAGZI_COORDINATOR_BATCH_SIZE",
		},
		{
			"KAGZI_SCHEDULER_MAX_WORKFLOWS_PER_TICK", "9", func(c *Config) { c.CoordinatorCatchupRate = 9 },
			"KAGZI_SCHEDULER_MAX_WORKFLOWS_PER_TICK is an old name; use KAGZI_COORDINATOR_CATCHUP_RATE",
		},
	} {
		t.Run(try.variable, func(t *testing.T) {
			got, warnings, err := settle(nil, map[string]string{try.variable: try.text})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Sources) != 1 || slices.Collect(maps.Values(got.Sources))[0] != "environment "+try.variable {
				t.Errorf("sources = %v, want one that is %s", got.Sources, try.variable)
			}
			want := Defaults()
			try.change(&want)
			want.Sources = got.Sources
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			if text := strings.Join(warnings, "\n"); text != try.warning {
				t.Errorf("warnings = %q, want %q", text, try.warning)
			}
		})
	}
}

func TestTheNewNameOfAVariableWinsAndTheOldIsWarnedAbout(t *testing.T) {
	c, warnings, err := settle(nil, map[string]string{
		"KAGZI_WORKER_LEASE": "40s", "KAGZI_WORKER_VISIBILITY_TIMEOUT_SECS": "300",
		"KAGZI_COORDINATOR_WORKER_STALE_THRESHOLD_SECS": "40",
	})
	if err != nil || c.WorkerLease != 40*time.Second {
		t.Fatalf("lease = %v, %v, want 40s", c.WorkerLease, err)
	}
	want := []string{"ignoring KAGZI_WORKER_VISIBILITY_TIMEOUT_SECS, because KAGZI_WORKER_LEASE is set"}
	if !slices.Equal(warnings, want) {
		t.Errorf("warnings = %q, want %q", warnings, want)
	}
}

func TestDurationsMayBeDaysAndWeeks(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"400d": 9600 * time.Hour, "2w": 336 * time.Hour, "0d": 0, "9600h": 9600 * time.Hour, "3650d": engine.MaxDelay} {
		for _, name := range []string{"retention", "audit-retention", "backup-every"} {
			for how, said := range map[string]struct {
				arguments []string
				variables map[string]string
			}{
				"flag": {[]string{"--" + name, text}, nil},
				"variable": {nil, map[string]string{"KAGZI_" +
					strings.ToUpper(strings.ReplaceAll(name, "-", "_")): text}},
			} {
				c, _, err := settle(said.arguments, said.variables)
				got := map[string]time.Duration{"retention": c.Retention, "audit-retention": c.AuditRetention,
					"backup-every": c.BackupEvery}[name]
				if err != nil || got != want {
					t.Errorf("%s by %s = %s: %v, %v, want %v", name, how, text, got, err, want)
				}
			}
		}
	}
	if c, _, err := settle([]string{"--worker-lease", "1d"}, nil); err != nil || c.WorkerLease != 24*time.Hour {
		t.Errorf("a lease of 1d: %v, %v", c.WorkerLease, err)
	}
}

func TestBadValuesAreRefusedByNameValueAndWhatIsWanted(t *testing.T) {
	bad := map[string]struct {
		values []string
		want   string
	}{
		"config":   {nil, "want a file"},
		"db":       {nil, "want sqlite:PATH or postgres://"},
		"data-dir": {nil, "want a directory"},
		"listen": {[]string{"50051", "localhost", "127.0.0.1:70000", "127.0.0.1:http", "::1:5"},
			"want host:port such as 127.0.0.1:50051"},
		"http": {[]string{"50052", "on", "127.0.0.1:70000"},
			"want host:port such as 127.0.0.1:50052, or off"},
		"agq": {[]string{"6380", "on", "127.0.0.1:70000"},
			"want host:port such as 127.0.0.1:6380, or off"},
		"agq-insecure": {[]string{"yes"}, "want true or false"},
		"agq-verify":   {[]string{"yes"}, "want true or false"},
		"http-host": {[]string{"kagzi.example:80", "a,,b", "https://a", "a b"},
			"want names without a port, such as kagzi.example, separated by commas, or off"},
		"http-cors": {[]string{"*", "https://*.example", "https://a.example/", "a.example", "null", "https://a@b",
			"file://x"}, "want exact origins such as https://app.example, separated by commas, or off"},
		"worker-lease": {[]string{"30", "x", "-1s", "99ms", "25h", "9999999999h"},
			"want a duration from 100ms to 24h"},
		"heartbeat-interval":   {[]string{"10", "0s"}, "want a duration from 10ms to 12h"},
		"poll-timeout":         {[]string{"61s", "0s"}, "want a duration from 100ms to 1m"},
		"coordinator-interval": {[]string{"0s", "2h"}, "want a duration from 10ms to 1h"},
		"coordinator-batch-size": {[]string{"0", "-1", "1.5", "10001", "many"},
			"want a whole number from 1 to 10000"},
		"coordinator-catchup-rate": {[]string{"0", "-1", "1.5", "10001", "many"},
			"want a whole number from 1 to 10000"},
		"retention": {[]string{"-1h", "-1d", "30", "d", "1.5d", "1d12h", "3651d", "522w", "4294967296d",
			"9223372036854775808w"}, "want a duration from 0s to 87600h, such as 90m, 720h or 30d"},
		"audit-retention": {[]string{"-1h", "-1d", "30", "d", "1.5d", "1d12h", "3651d", "522w", "4294967296d",
			"9223372036854775808w"}, "want a duration from 0s to 87600h, such as 90m, 720h or 30d"},
		"request-retention": {[]string{"-1h", "-1d", "30", "d", "1.5d", "1d12h", "3651d", "522w", "4294967296d",
			"9223372036854775808w"}, "want a duration from 0s to 87600h, such as 90m, 720h or 30d"},
		"backup-every": {[]string{"-1h", "daily"},
			"want a duration from 0s to 87600h, such as 90m, 720h or 30d"},
		"backup-keep": {[]string{"0", "10001", "all"}, "want a whole number from 1 to 10000"},
		"namespace-rate": {[]string{"-1", "1.5", "1000001", "off"},
			"want a whole number from 1 to 1000000, or 0 for no limit"},
		"backup-dir":    {nil, "want a directory"},
		"drain-timeout": {[]string{"30s", "0s"}, "want a duration from 100ms to 29s"},
		"tls-cert": {[]string{"credential:", "credential:../x"},
			"want a file, credential:NAME, or off"},
		"tls-key":                {[]string{"credential:.."}, "want a file, credential:NAME, or off"},
		"client-ca":              {[]string{"credential:."}, "want a file, credential:NAME, or off"},
		"insecure":               {[]string{"yes"}, "want true or false"},
		"allow-unleased-workers": {[]string{"2"}, "want true or false"},
		"auto-namespaces":        {[]string{"2"}, "want true or false"},
		"http-base-path": {[]string{"kagzi", "/a//b", "/a/../b", "/a b", "/%2e", "//a", "/é", "/" + strings.Repeat("a", 200)},
			"want a path of letters, digits, - and _ such as /kagzi, or off"},
		"http-trusted-proxy": {[]string{"proxy", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.5:80", "a,,b"},
			"want addresses or networks such as 10.0.0.5 or 10.0.0.0/8, separated by commas, or off"},
		"web":              {[]string{"yes", "1"}, "want on or off"},
		"web-read-only":    {[]string{"yes"}, "want true or false"},
		"mcp-allow-writes": {[]string{"yes please"}, "want true or false"},
		"log-level":        {[]string{"loud"}, "want debug, info, warn or error"},
		"log-format":       {[]string{"xml"}, "want text or json"},
	}
	for _, s := range serverSettings {
		try, ok := bad[s.name]
		if !ok {
			t.Errorf("no bad value of %s is tried", s.name)
		}
		for _, text := range append(try.values, "") {
			if s.name == "http" && text == "" {
				continue // off
			}
			_, _, err := settle([]string{"--" + s.name + "=" + text}, nil)
			if err == nil || !mentions(err, "--"+s.name, `"`+text+`"`, try.want) {
				t.Errorf("--%s=%s: error %v, want one that says %q", s.name, text, err, try.want)
			}
			if text == "" {
				continue // an empty variable counts as unset
			}
			_, _, err = settle(nil, map[string]string{s.variable(): text})
			if err == nil || !mentions(err, s.variable(), `"`+text+`"`, try.want) || codeOf(err) != 64 {
				t.Errorf("%s=%s: error %v with code %d, want one that says %q with 64", s.variable(), text, err,
					codeOf(err), try.want)
			}
		}
	}
	for _, text := range []string{"30s", "1.5", "-1", "99999999999"} {
		_, _, err := settle(nil, map[string]string{"KAGZI_WORKER_VISIBILITY_TIMEOUT_SECS": text})
		if err == nil || !mentions(err, "KAGZI_WORKER_VISIBILITY_TIMEOUT_SECS", text, "must be whole seconds") {
			t.Errorf("%s seconds: error %v, want one that asks for whole seconds", text, err)
		}
	}
}

func mentions(err error, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			return false
		}
	}
	return true
}

// codeOf returns an error's exit code, or 1.
func codeOf(err error) int {
	if coded, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err); ok {
		return coded.ExitCode()
	}
	return 1
}

func TestALeaseShorterThanTwoHeartbeatsIsRefused(t *testing.T) {
	c := Defaults()
	c.WorkerLease, c.HeartbeatInterval = 20*time.Second, 10*time.Second
	if err := c.check(); err != nil {
		t.Errorf("exactly two heartbeats: %v, want no error", err)
	}
	c.WorkerLease -= time.Millisecond
	if err := c.check(); err == nil || !mentions(err, "19.999s", "10s", "--worker-lease 20s") || codeOf(err) != 64 {
		t.Errorf("a millisecond less: %v with code %d, want an error that names both and 64", err, codeOf(err))
	}
}

func TestTheDefaultDataDirectoryIsTheSystemsPlaceForData(t *testing.T) {
	home, data := filepath.Join(t.TempDir(), "home"), filepath.Join(t.TempDir(), "data")
	for _, try := range []struct{ system, xdg, want string }{
		{"linux", "", filepath.Join(home, ".local", "share", "kagzi")},
		{"linux", data, filepath.Join(data, "kagzi")},
		{"linux", "relative", filepath.Join(home, ".local", "share", "kagzi")},
		{"freebsd", "", filepath.Join(home, ".local", "share", "kagzi")},
		{"darwin", data, filepath.Join(home, "Library", "Application Support", "kagzi")},
		{"windows", data, filepath.Join(data, "kagzi")},
	} {
		t.Setenv("HOME", home)
		t.Setenv("XDG_DATA_HOME", try.xdg)
		t.Setenv("LocalAppData", data)
		if got, err := defaultDataDir(try.system); err != nil || got != try.want {
			t.Errorf("%s with %q: %q, %v, want %q", try.system, try.xdg, got, err, try.want)
		}
	}
	for _, system := range []string{"linux", "darwin", "windows"} {
		t.Setenv("HOME", "")
		t.Setenv("XDG_DATA_HOME", "")
		t.Setenv("LocalAppData", "")
		if _, err := defaultDataDir(system); err == nil || !mentions(err, "--data-dir") {
			t.Errorf("%s without any place: %v, want an error that names --data-dir", system, err)
		}
	}
}

func TestTheDataDirectoryIsMadeForItsOwnerOnly(t *testing.T) {
	c := Defaults()
	c.DataDir = filepath.Join(t.TempDir(), "a", "b")
	url, err := c.privateDatabase()
	if want := "sqlite:" + filepath.Join(c.DataDir, "kagzi.db"); err != nil || url != want {
		t.Fatalf("database = %q, %v, want %q", url, err, want)
	}
	info, err := os.Stat(c.DataDir)
	if err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("directory: %v, %v, want mode 0700", info, err)
	}
}

func TestMisspeltVariablesAreWarnedAbout(t *testing.T) {
	from := surroundings{environ: func() []string {
		return []string{"KAGZI_LISTENN=1", "KAGZI_WORKER_LAESE=1m", "KAGZI_\x1bDB=x", "KAGZI_LISTEN=:1",
			"KAGZI_DB_URL=x", "KAGZI_TLS=1", "KAGZI_TIME=utc",
			"KAGZI_PORT=tcp://10.0.0.1:50051", "KAGZI_SERVICE_HOST=10.0.0.1", "KAGZI_API_KEYS=x", "LISTEN=1",
			"PATH=/bin"}
	}}
	want := []string{
		"ignoring KAGZI_LISTENN: unknown setting; did you mean KAGZI_LISTEN?",
		"ignoring KAGZI_WORKER_LAESE: unknown setting; did you mean KAGZI_WORKER_LEASE?",
		`ignoring KAGZI_\x1bDB: unknown setting; did you mean KAGZI_DB?`,
	}
	if got := from.misspelt(); !slices.Equal(got, want) {
		t.Errorf("warnings:\n%q\nwant:\n%q", got, want)
	}
	if got := (surroundings{}).misspelt(); got != nil {
		t.Errorf("of an unknown environment: %q", got)
	}
}
