package daemon

import (
	"log/slog"
	"path/filepath"
	"runtime"
	"time"

	"github.com/kagzi/kagzi/engine"
)

// Config is what a server process can be told. Start from Defaults.
type Config struct {
	DB      string // URL of the database; empty: sqlite:<DataDir>/kagzi.db
	DataDir string // empty: the system's place for a user's data
	Listen  string // host:port for gRPC; port 0 picks a free one
	// host:port of metrics and health, done without if it is taken and not in Sources; port 0 picks
	// a free one; empty: none
	HTTP string
	File string // that settings were read from; empty: none

	WorkerLease            time.Duration // how long a worker may be silent, at least two heartbeats
	HeartbeatInterval      time.Duration
	PollTimeout            time.Duration // of a long poll that names none
	CoordinatorInterval    time.Duration
	CoordinatorBatchSize   int
	CoordinatorCatchupRate int
	Retention              time.Duration // how long ended runs are kept; 0: for good
	AuditRetention         time.Duration // how long it is kept who changed what; 0: for good
	BackupEvery            time.Duration // 0: no scheduled backups
	BackupKeep             int           // how many of them stay
	// runs and signals that clients may add to one namespace in a second; 0: no limit
	NamespaceRate int
	BackupDir     string        // empty: backups in the data directory, or beside the database file
	DrainTimeout  time.Duration // how long calls under way may go on after the process was told to stop

	// Files of TLS in PEM, as paths or as credential:NAME, which systemd handed over. The first two
	// go together; empty: plaintext.
	TLSCert  string // with the certificates between it and its authority
	TLSKey   string
	ClientCA string // authorities of clients' certificates; empty: clients are asked for none

	Insecure      bool // listen where other machines can reach it, without encryption or keys
	AllowUnleased bool // accept writes without a lease token, from clients that know none

	LogLevel  slog.Level
	LogFormat string // text or json

	Version string       // of the program
	Log     *slog.Logger // nil: none; `kagzi server` makes one of LogLevel and LogFormat

	// Sources says where settings come from, by their names as flags: "flag", "environment
	// KAGZI_LISTEN", "file /etc/kagzi/kagzi.toml:3". Those left out are defaults, or were set by a
	// program.
	Sources map[string]string
}

// Defaults is the Config of a server that is told nothing.
func Defaults() Config {
	return Config{
		Listen:                 "127.0.0.1:50051",
		HTTP:                   "127.0.0.1:50052",
		WorkerLease:            30 * time.Second,
		HeartbeatInterval:      10 * time.Second,
		PollTimeout:            engine.MaxPollWait,
		CoordinatorInterval:    5 * time.Second,
		CoordinatorBatchSize:   100,
		CoordinatorCatchupRate: 100,
		Retention:              720 * time.Hour,
		AuditRetention:         9600 * time.Hour,
		BackupKeep:             24,
		DrainTimeout:           25 * time.Second,
		LogFormat:              "text",
	}
}

// check refuses settings that each are fine and together are not.
func (c *Config) check() error {
	if c.BackupEvery > 0 && c.BackupEvery < minBackupEvery {
		return usagef(
			"a backup every %s would leave time for little else; want --backup-every %s or longer, or 0 for none",
			c.BackupEvery, brief(minBackupEvery))
	}
	if c.WorkerLease < 2*c.HeartbeatInterval {
		return usagef(
			"a worker lease of %s is shorter than two heartbeats of %s: a single late one would cost a worker its runs; "+
				"want --worker-lease %s or longer, or a shorter --heartbeat-interval", c.WorkerLease,
			c.HeartbeatInterval,
			2*c.HeartbeatInterval)
	}
	return c.checkTLS()
}

// database is the URL to open. Nothing is made on disk.
func (c *Config) database() (url, dataDir string, err error) {
	if c.DB != "" {
		return c.DB, "", nil
	}
	dir := c.DataDir
	if dir == "" {
		if dir, err = defaultDataDir(runtime.GOOS); err != nil {
			return "", "", err
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", "", usagef("data directory %q: %w", dir, err)
	}
	return "sqlite:" + filepath.Join(dir, "kagzi.db"), dir, nil
}

// privateDatabase is database, with the data directory made and found fit to hold it.
func (c *Config) privateDatabase() (url string, err error) {
	url, dir, err := c.database()
	if err == nil && dir != "" {
		err = makePrivate(dir)
	}
	return url, err
}
