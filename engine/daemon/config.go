package daemon

import (
	"log/slog"
	"path/filepath"
	"runtime"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Config holds the settings of a server process. Start from Defaults.
type Config struct {
	DB      string // URL of the database; empty: sqlite:<DataDir>/kagzi.db
	DataDir string // empty: the system's directory for user data
	Listen  string // host:port for gRPC; port 0 picks a free one
	// host:port of the HTTP API, metrics and health; port 0 picks a free one; empty: none. If it is
	// taken and not in Sources, the server runs without.
	HTTP        string
	HTTPHosts   []string // further names under which HTTP is reached, in lower case and without a port
	HTTPOrigins []string // whose pages may use the HTTP API: "https://app.example"
	HTTPBase    string   // path before all others on HTTP, such as "/kagzi"; empty: none
	// networks of proxies whose X-Forwarded headers say from where a request is: "10.0.0.0/8"
	TrustedProxies []string
	Web            bool // serve the web page on HTTP
	WebReadOnly    bool // the web page offers no action
	// host:port of AGQ's protocol, for workers and clients that speak RESP; port 0 picks a free one; empty: none
	AGQ         string
	AGQInsecure bool   // serve it without TLS where other machines can reach it
	AGQVerify   bool   // operators may have its workers run their tools
	AgentWrites bool   // tools of agents on /mcp may change things, as far as the key's role allows
	File        string // the settings file that was read; empty: none

	WorkerLease            time.Duration // how long a worker may go without a heartbeat; at least two heartbeats
	HeartbeatInterval      time.Duration
	PollTimeout            time.Duration // of a long poll that sets no timeout
	CoordinatorInterval    time.Duration
	CoordinatorBatchSize   int
	CoordinatorCatchupRate int
	Retention              time.Duration // how long ended runs are kept; 0: forever
	AuditRetention         time.Duration // how long audit entries are kept; 0: forever
	RequestRetention       time.Duration // how long request ids of deleted runs are known; 0: forever
	BackupEvery            time.Duration // 0: no scheduled backups
	BackupKeep             int           // how many scheduled backups are kept
	// limit of runs and signals per second that clients may add to one namespace; 0: no limit
	NamespaceRate int
	BackupDir     string        // empty: backups in the data directory, or next to the database file
	DrainTimeout  time.Duration // how long calls in progress may continue after the process was told to stop

	// TLS files in PEM, as paths or credential:NAME from systemd. TLSCert and TLSKey go together;
	// empty: plaintext.
	TLSCert  string // with intermediate certificates
	TLSKey   string
	ClientCA string // CAs of client certificates; empty: clients are asked for none

	Insecure      bool // listen where other machines can reach it, without TLS or keys
	AllowUnleased bool // accept writes without a lease token, from clients that have none
	// the first use of a namespace creates it; AllowUnleased implies it
	AutoNamespaces bool

	LogLevel  slog.Level
	LogFormat string // text or json

	Version string       // of the program
	Log     *slog.Logger // nil: none; `kagzi server` creates one from LogLevel and LogFormat
	// LogDropped returns how many lines of Log were dropped, because nobody read them; nil: none are
	LogDropped func() uint64

	// Sources holds the origin of settings by flag name: "flag", "environment KAGZI_LISTEN", "file
	// /etc/kagzi/kagzi.toml:3". Settings not in it are defaults or were set by a program.
	Sources map[string]string
}

// Defaults returns the Config of a server without any settings.
func Defaults() Config {
	return Config{
		Listen:                 "127.0.0.1:50051",
		HTTP:                   "127.0.0.1:50052",
		Web:                    true,
		WorkerLease:            30 * time.Second,
		HeartbeatInterval:      10 * time.Second,
		PollTimeout:            engine.MaxPollWait,
		CoordinatorInterval:    5 * time.Second,
		CoordinatorBatchSize:   100,
		CoordinatorCatchupRate: 100,
		Retention:              720 * time.Hour,
		AuditRetention:         9600 * time.Hour,
		RequestRetention:       720 * time.Hour,
		BackupKeep:             24,
		DrainTimeout:           25 * time.Second,
		LogFormat:              "text",
	}
}

// check rejects settings that contradict each other.
func (c *Config) check() error {
	if c.BackupEvery > 0 && c.BackupEvery < minBackupEvery {
		return usagef(
			"--backup-every %s is too short; it must be at least %s, or 0 for no backups",
			c.BackupEvery, brief(minBackupEvery))
	}
	if c.WorkerLease < 2*c.HeartbeatInterval {
		return usagef(
			"--worker-lease %s is shorter than two heartbeats of %s: one late heartbeat would cost a worker its runs; "+
				"use --worker-lease %s or longer, or a shorter --heartbeat-interval", c.WorkerLease,
			c.HeartbeatInterval,
			2*c.HeartbeatInterval)
	}
	return c.checkTLS()
}

// database returns the URL to open. It creates nothing on disk.
func (c *Config) database() (url, dataDir string, err error) {
	url, err = c.databaseAsAsked()
	if err != nil {
		return "", "", err
	}
	url = safeURL(url)
	if c.DB == "" {
		path, _ := sqliteFile(url)
		dataDir = filepath.Dir(path)
	}
	return url, dataDir, nil
}

// databaseAsAsked returns the URL as the settings have it, even if anybody may write to the
// directory.
func (c *Config) databaseAsAsked() (url string, err error) {
	if c.DB != "" {
		return c.DB, nil
	}
	dir := c.DataDir
	if dir == "" {
		if dir, err = defaultDataDir(runtime.GOOS); err != nil {
			return "", err
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", usagef("data directory %q: %w", dir, err)
	}
	return "sqlite:" + filepath.Join(dir, "kagzi.db"), nil
}

// privateDatabase returns the same after creating and checking the data directory.
func (c *Config) privateDatabase() (url string, err error) {
	url, dir, err := c.database()
	switch {
	case err != nil:
	case dir != "":
		err = makePrivate(dir)
	default:
		err = makeOwnFolder(url)
	}
	return url, err
}
