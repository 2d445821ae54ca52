package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kagzi/kagzi/engine"
)

// setting can be set by a flag, an environment variable or a file. The variable is KAGZI_ plus the
// name in capitals.
type setting struct {
	name  string
	usage string
	older []variable
	parse func(c *Config, text string) error // the error says what is expected
	show  func(c *Config) string             // in the form that parse takes
	form  string                             // the value's placeholder in help
	onOff bool                               // --name alone means true
	live  bool                               // can change while the server runs
}

// formNumber marks settings that a file may have without quotes.
const formNumber = "number"

// variable is an older environment variable of a setting.
type variable struct {
	name       string
	seconds    bool // its value is in whole seconds
	deprecated bool
}

// open returns a value for display: database URLs without the password.
func (s *setting) open(text string) string {
	if s.name == "db" {
		return withoutPassword(text)
	}
	return text
}

func (s *setting) variable() string {
	return "KAGZI_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// databaseSettings are shared by `kagzi db` and the server. config comes first, because the file
// holds the others.
var databaseSettings = []setting{
	{
		name:  "config",
		usage: "settings file, or off (default kagzi.toml in your configuration directory, if it exists)",
		form:  "file",
		parse: textOf(func(c *Config) *string { return &c.File }, "a file"),
		show:  func(c *Config) string { return c.File },
	},
	{
		name: "db", usage: "database: sqlite:PATH or postgres://…[?schema=NAME] (default sqlite:<data-dir>/kagzi.db)",
		form:  "url",
		older: []variable{{name: "KAGZI_DB_URL"}},
		parse: textOf(func(c *Config) *string { return &c.DB }, "sqlite:PATH or postgres://USER@HOST/DATABASE"),
		show:  func(c *Config) string { return c.DB },
	},
	{
		name: "data-dir", usage: "directory of the embedded database (default: the system's directory for user data)",
		form:  "directory",
		parse: textOf(func(c *Config) *string { return &c.DataDir }, "a directory"),
		show:  func(c *Config) string { return c.DataDir },
	},
}

var serverSettings = slices.Concat(databaseSettings, []setting{
	{
		name: "listen", usage: "gRPC address; port 0 picks a free one",
		form: "host:port", parse: parseListen, show: func(c *Config) string { return c.Listen },
	},
	{
		name: "http", usage: `HTTP address of the web page, JSON API, metrics and health; "" or off to disable`,
		form: "host:port", parse: parseHTTP, show: func(c *Config) string { return cmp.Or(c.HTTP, off) },
	},
	{
		name:  "http-host",
		usage: "names by which HTTP is reached on loopback or without keys, separated by commas, or off",
		form:  "names", parse: listOf(func(c *Config) *[]string { return &c.HTTPHosts }, parseHost),
		show: showList(func(c *Config) []string { return c.HTTPHosts }),
	},
	{
		name:  "http-cors",
		usage: "origins whose pages may use HTTP, such as https://app.example, separated by commas, or off",
		form:  "origins", parse: listOf(func(c *Config) *[]string { return &c.HTTPOrigins }, parseOrigin),
		show: showList(func(c *Config) []string { return c.HTTPOrigins }),
	},
	{
		name:  "http-base-path",
		usage: "path before all others on HTTP, for a proxy that serves more, such as /kagzi, or off",
		form:  "path", parse: parseBasePath, show: func(c *Config) string { return cmp.Or(c.HTTPBase, off) },
	},
	{
		name:  "http-trusted-proxy",
		usage: "addresses or networks of proxies whose X-Forwarded headers to believe, separated by commas, or off",
		form:  "networks", parse: listOf(func(c *Config) *[]string { return &c.TrustedProxies }, parseNetwork),
		show: showList(func(c *Config) []string { return c.TrustedProxies }),
	},
	{
		name: "web", usage: "serve the web page on the HTTP address: on or off", form: "on/off",
		parse: parseOnOff(func(c *Config) *bool { return &c.Web }),
		show:  func(c *Config) string { return map[bool]string{true: "on", false: off}[c.Web] },
	},
	{
		name: "web-read-only", usage: "the web page changes nothing, whatever the role of a key",
		onOff: true,
		parse: switchOf(func(c *Config) *bool { return &c.WebReadOnly }),
		show:  func(c *Config) string { return strconv.FormatBool(c.WebReadOnly) },
	},
	{
		name: "mcp-allow-writes", usage: "let agents on /mcp change things, as far as their key's role allows",
		onOff: true,
		parse: switchOf(func(c *Config) *bool { return &c.AgentWrites }),
		show:  func(c *Config) string { return strconv.FormatBool(c.AgentWrites) },
	},
	{
		name: "agq", usage: `address of AGQ's protocol (RESP) for AGW workers and AGX clients; off by default`,
		form: "host:port", parse: parseAGQ, show: func(c *Config) string { return cmp.Or(c.AGQ, off) },
	},
	{
		name: "agq-insecure", usage: "allow --agq to be reachable by other machines without TLS, which AGW does not speak",
		onOff: true,
		parse: switchOf(func(c *Config) *bool { return &c.AGQInsecure }),
		show:  func(c *Config) string { return strconv.FormatBool(c.AGQInsecure) },
	},
	{
		name: "agq-verify", usage: "let operators have AGQ's workers run their tools, to see what they are (WORKER.VERIFY)",
		onOff: true,
		parse: switchOf(func(c *Config) *bool { return &c.AGQVerify }),
		show:  func(c *Config) string { return strconv.FormatBool(c.AGQVerify) },
	},
	duration("worker-lease", "how long a worker may go without a heartbeat before other workers get its runs",
		func(c *Config) *time.Duration { return &c.WorkerLease }, 100*time.Millisecond, 24*time.Hour,
		"KAGZI_WORKER_VISIBILITY_TIMEOUT_SECS", "KAGZI_COORDINATOR_WORKER_STALE_THRESHOLD_SECS"),
	duration("heartbeat-interval", "heartbeat interval for workers, at most half of the lease",
		func(c *Config) *time.Duration { return &c.HeartbeatInterval }, 10*time.Millisecond, 12*time.Hour,
		"KAGZI_WORKER_HEARTBEAT_INTERVAL_SECS"),
	duration("poll-timeout", "how long a poll waits if the worker sets no timeout",
		func(c *Config) *time.Duration { return &c.PollTimeout }, 100*time.Millisecond, engine.MaxPollWait,
		"KAGZI_WORKER_POLL_TIMEOUT_SECS"),
	duration("coordinator-interval", "fallback interval of timers, and the pause after a database error",
		func(c *Config) *time.Duration { return &c.CoordinatorInterval }, 10*time.Millisecond, time.Hour,
		"KAGZI_COORDINATOR_INTERVAL_SECS", "KAGZI_SCHEDULER_INTERVAL_SECS"),
	{
		name: "coordinator-batch-size", usage: "timeouts and deletions per transaction",
		older: []variable{{name: "KAGZI_SCHEDULER_BATCH_SIZE", deprecated: true}},
		form:  formNumber, parse: parseNumber(func(c *Config) *int { return &c.CoordinatorBatchSize }),
		show: func(c *Config) string { return strconv.Itoa(c.CoordinatorBatchSize) },
	},
	{
		name: "coordinator-catchup-rate", usage: "missed schedule ticks to fire per second, over all schedules",
		// the limit for each round of the scheduler
		older: []variable{{name: "KAGZI_SCHEDULER_MAX_WORKFLOWS_PER_TICK", deprecated: true}},
		form:  formNumber, parse: parseNumber(func(c *Config) *int { return &c.CoordinatorCatchupRate }),
		show: func(c *Config) string { return strconv.Itoa(c.CoordinatorCatchupRate) },
	},
	duration("retention", "how long to keep ended runs, such as 720h or 30d; 0 keeps them forever",
		func(c *Config) *time.Duration { return &c.Retention }, 0, engine.MaxDelay),
	duration("audit-retention", "how long to keep the audit log, such as 400d; 0 keeps it forever",
		func(c *Config) *time.Duration { return &c.AuditRetention }, 0, engine.MaxDelay),
	duration("request-retention",
		"how long a request id is known after its run was deleted, counted from the request; 0 for ever",
		func(c *Config) *time.Duration { return &c.RequestRetention }, 0, engine.MaxDelay),
	duration("backup-every", "how often to back up the database; 0 for never",
		func(c *Config) *time.Duration { return &c.BackupEvery }, 0, engine.MaxDelay),
	{
		name: "backup-keep", usage: "how many of these backups to keep",
		form: formNumber, parse: parseNumber(func(c *Config) *int { return &c.BackupKeep }),
		show: func(c *Config) string { return strconv.Itoa(c.BackupKeep) },
	},
	{
		name:  "backup-dir",
		usage: "directory of these backups (default: backups in the data directory or next to the database file)",
		form:  "directory",
		parse: textOf(func(c *Config) *string { return &c.BackupDir }, "a directory"),
		show:  func(c *Config) string { return c.BackupDir },
	},
	{
		name:  "namespace-rate",
		usage: "limit of runs and signals per second that clients may add to a namespace on this server; 0 for no limit",
		form:  formNumber,
		parse: parseRate,
		show:  func(c *Config) string { return strconv.Itoa(c.NamespaceRate) },
	},
	duration("drain-timeout", "how long calls in progress may continue after SIGTERM or Ctrl-C",
		func(c *Config) *time.Duration { return &c.DrainTimeout }, 100*time.Millisecond, stopLimit-time.Second),
	tlsFile("tls-cert", "server certificate in PEM, with intermediates; enables TLS",
		func(c *Config) *string { return &c.TLSCert }),
	tlsFile("tls-key", "private key of the server certificate", func(c *Config) *string { return &c.TLSKey }),
	tlsFile("client-ca", "CA of client certificates; their common name is the name of a key",
		func(c *Config) *string { return &c.ClientCA }),
	{
		name:  "insecure",
		usage: "allow --listen and --http to be reachable by other machines without TLS or without a key",
		onOff: true,
		parse: switchOf(func(c *Config) *bool { return &c.Insecure }),
		show:  func(c *Config) string { return strconv.FormatBool(c.Insecure) },
	},
	{
		name: "allow-unleased-workers", usage: "accept writes without a lease token, from workers of the first Kagzi",
		onOff: true,
		parse: switchOf(func(c *Config) *bool { return &c.AllowUnleased }),
		show:  func(c *Config) string { return strconv.FormatBool(c.AllowUnleased) },
	},
	{
		name: "auto-namespaces", usage: "create a namespace on its first use; --allow-unleased-workers implies it",
		onOff: true,
		parse: switchOf(func(c *Config) *bool { return &c.AutoNamespaces }),
		show:  func(c *Config) string { return strconv.FormatBool(c.AutoNamespaces) },
	},
	{
		name: "log-level", usage: "debug, info, warn or error",
		form: "level", parse: parseLogLevel, show: func(c *Config) string {
			return strings.ToLower(c.LogLevel.String())
		},
		live: true,
	},
	{
		name: "log-format", usage: "text or json",
		form: "format", parse: parseLogFormat, show: func(c *Config) string { return c.LogFormat },
	},
})

func textOf(field func(*Config) *string, want string) func(*Config, string) error {
	return func(c *Config, text string) error {
		if text == "" {
			return errors.New("want " + want)
		}
		*field(c) = text
		return nil
	}
}

// tlsFile is the setting of an optional TLS file, which can change while the server runs.
func tlsFile(name, usage string, field func(*Config) *string) setting {
	return setting{
		name: name, usage: usage, form: "file", live: true,
		parse: func(c *Config, text string) error {
			if _, err := credentialOf(text); text == "" || err != nil {
				return errors.New("want a file, credential:NAME, or off")
			}
			if text == off {
				text = ""
			}
			*field(c) = text
			return nil
		},
		show: func(c *Config) string { return cmp.Or(*field(c), off) },
	}
}

// duration is a duration setting between least and most. Older variables are in whole seconds;
// those of the scheduler are deprecated.
func duration(name, usage string, field func(*Config) *time.Duration, least, most time.Duration,
	older ...string) setting {
	s := setting{name: name, usage: usage, form: "duration", show: func(c *Config) string { return brief(*field(c)) }}
	s.parse = func(c *Config, text string) error {
		d, err := parseDuration(text)
		if err != nil || d < least || d > most {
			example := "10s or 1m30s"
			if most > 24*time.Hour {
				example = "90m, 720h or 30d"
			}
			return fmt.Errorf("want a duration from %s to %s, such as %s", brief(least), brief(most), example)
		}
		*field(c) = d
		return nil
	}
	for _, name := range older {
		s.older = append(s.older, variable{name: name, seconds: true,
			deprecated: strings.HasPrefix(name, "KAGZI_SCHEDULER_")})
	}
	return s
}

// parseDuration parses a Go duration, or whole days or weeks as the client commands do.
func parseDuration(text string) (time.Duration, error) {
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			n, err := strconv.ParseUint(number, 10, 13) // far from an overflow
			return time.Duration(n) * length, err
		}
	}
	return time.ParseDuration(text)
}

// brief formats 24h0m0s as 24h.
func brief(d time.Duration) string {
	text := d.String()
	for _, tail := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, tail) {
			text = text[:len(text)-2]
		}
	}
	return text
}

func switchOf(field func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, text string) error {
		on, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("want true or false")
		}
		*field(c) = on
		return nil
	}
}

func parseListen(c *Config, text string) error {
	if !isHostPort(text) {
		return errors.New("want host:port such as 127.0.0.1:50051")
	}
	c.Listen = text
	return nil
}

// off disables a setting, where empty text would count as not set.
const off = "off"

func parseHTTP(c *Config, text string) error {
	if text == off {
		text = ""
	}
	if text != "" && !isHostPort(text) {
		return errors.New("want host:port such as 127.0.0.1:50052, or off")
	}
	c.HTTP = text
	return nil
}

// listOf parses texts separated by commas, each with parse; off is none.
func listOf(field func(*Config) *[]string, parse func(string) (string, error)) func(*Config, string) error {
	return func(c *Config, text string) error {
		var list []string
		for part := range strings.SplitSeq(text, ",") {
			if text == off {
				break
			}
			one, err := parse(strings.TrimSpace(part))
			if err != nil {
				return err
			}
			list = append(list, one)
		}
		*field(c) = list
		return nil
	}
}

func showList(field func(*Config) []string) func(*Config) string {
	return func(c *Config) string { return cmp.Or(strings.Join(field(c), ","), off) }
}

func parseHost(text string) (string, error) {
	if address, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return address.String(), nil
	}
	if text == "" || len(text) > 253 || strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_')
	}) {
		return "", errors.New("want names without a port, such as kagzi.example, separated by commas, or off")
	}
	return strings.ToLower(text), nil
}

func parseOrigin(text string) (string, error) {
	origin, err := url.Parse(text)
	if err != nil || origin.Scheme != "http" && origin.Scheme != "https" || origin.Host == "" ||
		text != origin.Scheme+"://"+origin.Host || strings.ContainsAny(origin.Host, "*@ ") {
		return "", errors.New("want exact origins such as https://app.example, separated by commas, or off")
	}
	return strings.ToLower(text), nil
}

func isHostPort(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return err == nil
}

func parseNumber(field func(*Config) *int) func(*Config, string) error {
	return func(c *Config, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 10_000 {
			return errors.New("want a whole number from 1 to 10000")
		}
		*field(c) = n
		return nil
	}
}

func parseRate(c *Config, text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1_000_000 {
		return errors.New("want a whole number from 1 to 1000000, or 0 for no limit")
	}
	c.NamespaceRate = n
	return nil
}

func parseLogLevel(c *Config, text string) error {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn,
		"error": slog.LevelError}
	level, ok := levels[strings.ToLower(text)]
	if !ok {
		return errors.New("want debug, info, warn or error")
	}
	c.LogLevel = level
	return nil
}

func parseLogFormat(c *Config, text string) error {
	if text != "text" && text != "json" {
		return errors.New("want text or json")
	}
	c.LogFormat = text
	return nil
}

// flagValue is a setting as a flag: the validated text.
type flagValue struct {
	setting *setting
	text    string
}

func (v *flagValue) String() string { return v.text }

func (v *flagValue) Type() string {
	if v.setting.onOff {
		return "bool"
	}
	return v.setting.form
}

func (v *flagValue) Set(text string) error {
	scratch := Defaults()
	if err := v.setting.parse(&scratch, text); err != nil {
		return err
	}
	v.text = text
	return nil
}

// register defines the settings as flags.
func register(fs *pflag.FlagSet, settings []setting) {
	defaults := Defaults()
	for i := range settings {
		s := &settings[i]
		f := fs.VarPF(&flagValue{setting: s, text: s.show(&defaults)}, s.name, "", s.usage+" ["+s.variable()+"]")
		if s.onOff {
			f.NoOptDefVal = "true"
		}
	}
}
