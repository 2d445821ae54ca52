//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// cluster is a private Postgres on a socket in its own directory, which syncs what it commits. It can be killed and started again.
type cluster struct {
	bin, dir string
	owner    *syscall.Credential
	flags    []string
	clock    *databaseClock // nil: that of the machine
	life     *process
	left     []leftover // by its last life, which was killed
	back     *moments   // when it answered again after an outage, or what was promoted in its place did
}

// moments are some of history.Now.
type moments struct {
	mu sync.Mutex
	at []int64
}

// note adds the present one.
func (m *moments) note() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = append(m.at, history.Now())
}

func (m *moments) all() []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.at)
}

// socket is where the cluster listens.
func (c *cluster) socket() string { return filepath.Join(c.dir, ".s.PGSQL.5432") }

// data is the directory of its files.
func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

// create makes the cluster's files and starts it.
func (c *cluster) create(ctx context.Context) error {
	if err := c.tool(ctx, "initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-instructions"); err != nil {
		return err
	}
	return c.begin(ctx)
}

// standby makes a second cluster that follows this one.
func (c *cluster) standby(ctx context.Context, dir string, flags ...string) (*cluster, error) {
	s, err := emptyCluster(dir, flags...)
	if err != nil {
		return nil, err
	}
	if err := s.tool(ctx, "pg_basebackup", "-h", c.dir, "-U", "postgres", "-D", s.data(), "-R", "-X", "stream", "-c", "fast"); err != nil {
		return nil, err
	}
	s.back = c.back
	if err := s.begin(ctx); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// emptyCluster is a cluster of which there is only its directory.
func emptyCluster(dir string, flags ...string) (*cluster, error) {
	bin, err := serverPrograms()
	if err != nil {
		return nil, notHere("%v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	c := &cluster{bin: bin, dir: dir, flags: flags, back: &moments{}}
	c.owner, err = unprivileged(dir)
	return c, err
}

// tool runs one of Postgres's programs as the cluster's owner.
func (c *cluster) tool(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, name), args...)
	c.own(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

func (c *cluster) own(cmd *exec.Cmd) {
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + c.dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner}
}

// start ends an outage: it starts the cluster and waits until it answers.
func (c *cluster) start(ctx context.Context) error {
	err := c.begin(ctx)
	if err == nil {
		c.back.note()
	}
	return err
}

// begin starts the cluster and waits until it answers.
func (c *cluster) begin(ctx context.Context) error {
	args := []string{"-D", c.data(), "-k", c.dir, "-c", "listen_addresses=", "-c", "max_connections=120", "-c", "shared_buffers=128MB",
		"-c", "logging_collector=off", "-c", "log_checkpoints=off"}
	for _, f := range c.flags {
		args = append(args, "-c", f)
	}
	limit := time.Now().Add(startLimit)
	for {
		cmd := exec.Command(filepath.Join(c.bin, "postgres"), args...)
		c.own(cmd)
		if c.clock != nil {
			cmd.Env = append(cmd.Env, c.clock.env()...)
		}
		var err error
		if c.life, err = spawn(cmd, filepath.Join(c.dir, "log")); err != nil {
			return err
		}
		if err = c.answers(ctx, limit); err == nil {
			c.left = nil // it has taken it away, as every Postgres does
			return nil
		}
		// What a killed server has left, memory and a lock file, may stand in the way for a moment.
		if time.Now().After(limit) || ctx.Err() != nil {
			return fmt.Errorf("start of Postgres: %w: %s", err, c.life.out.tail())
		}
		c.life.kill()
		time.Sleep(100 * time.Millisecond)
	}
}

// startLimit is how long a server or a database may take to come up.
const startLimit = 60 * time.Second

func (c *cluster) answers(ctx context.Context, limit time.Time) error {
	for {
		err := c.ask(ctx, `select 1`)
		if err == nil || c.life.ended() || time.Now().After(limit) || ctx.Err() != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// ask runs statements on a connection of their own, past all proxies.
func (c *cluster) ask(ctx context.Context, statements ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// askOne is the text that a query answers with.
func (c *cluster) askOne(ctx context.Context, query string) (text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := c.connect(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, query).Scan(&text); err != nil {
		return "", fmt.Errorf("%s: %w", query, err)
	}
	return text, nil
}

func (c *cluster) connect(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, c.url("")) }

// url is how to reach the cluster: on its socket, or through a proxy that listens on an address.
func (c *cluster) url(address string) string {
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/postgres"}
	query := url.Values{"sslmode": {"disable"}}
	if address == "" {
		query.Set("host", c.dir)
	} else {
		u.Host = address
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "%2F", "/")
	return u.String()
}

// backends are the pids of all processes of the cluster.
func (c *cluster) backends() []int {
	pids := []int{c.life.pid()}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(c.life.pid()) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// signalAll sends a signal to every process of the cluster.
func (c *cluster) signalAll(s syscall.Signal) bool {
	hit := false
	for _, pid := range c.backends() {
		hit = syscall.Kill(pid, s) == nil || hit
	}
	return hit
}

// kill ends all of its processes at once.
func (c *cluster) kill() bool {
	if c.life.ended() {
		return false
	}
	c.left = c.leftovers()
	hit := c.signalAll(syscall.SIGKILL)
	<-c.life.done
	return hit
}

// end ends it for good, and leaves nothing of it in the machine's memory: in immediate mode, as a killed Postgres leaves that to its next start.
func (c *cluster) end() {
	if c.life == nil {
		return
	}
	if !c.life.ended() {
		c.signalAll(syscall.SIGCONT)
		c.life.signal(syscall.SIGQUIT)
		select {
		case <-c.life.done:
		case <-time.After(endLimit):
			c.kill()
		}
	}
	for _, l := range c.left {
		l.remove()
	}
	c.left = nil
}

// endLimit is how long a Postgres may take that is to end at once.
const endLimit = 15 * time.Second

// leftover is memory that a killed Postgres leaves: a file, or by its number what is older than files.
type leftover struct {
	path string
	id   int
}

func (l leftover) remove() {
	if l.path != "" {
		_ = os.Remove(l.path) // somebody else may have
		return
	}
	_, _ = unix.SysvShmCtl(l.id, unix.IPC_RMID, nil)
}

// leftovers is the memory that its processes share.
func (c *cluster) leftovers() []leftover {
	var all []leftover
	for _, pid := range c.backends() {
		maps, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "maps"))
		for line := range strings.Lines(string(maps)) {
			all = append(all, sharedIn(line)...)
		}
	}
	return all
}

// sharedIn is the shared memory of a line of a process's maps.
func sharedIn(line string) []leftover {
	fields := strings.Fields(line)
	switch {
	case len(fields) < 6:
	case strings.HasPrefix(fields[5], "/dev/shm/PostgreSQL."):
		return []leftover{{path: fields[5]}}
	case strings.HasPrefix(fields[5], "/SYSV"):
		if id, err := strconv.Atoi(fields[4]); err == nil {
			return []leftover{{id: id}}
		}
	}
	return nil
}

// shut ends it by the signal that stands for a mode: SIGINT for fast, SIGQUIT for immediate.
func (c *cluster) shut(s syscall.Signal) bool {
	hit := c.life.signal(s)
	select {
	case <-c.life.done:
	case <-time.After(startLimit):
		c.kill()
	}
	return hit
}

// serverPrograms is the directory of the newest Postgres that is installed.
func serverPrograms() (string, error) {
	if path, err := exec.LookPath("postgres"); err == nil {
		real, err := filepath.EvalSymlinks(path) // where its other programs are
		return filepath.Dir(real), err
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(found) == 0 {
		return "", errors.Join(errors.New("no PostgreSQL server is installed"), err)
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4]) // a name that is no number comes last
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

// unprivileged gives a directory to a user whom Postgres accepts: it refuses to run as root.
func unprivileged(dir string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 != nil || err2 != nil {
			continue
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, int(uid), int(gid))
	}
	return nil, notHere("Postgres does not run as root, and there is no user postgres or nobody")
}

// freshSchema makes an empty schema in a given database and returns the URL of it. It stays there for whoever wants to look.
func freshSchema(ctx context.Context, given string) (string, error) {
	u, err := url.Parse(given)
	if err != nil {
		return "", errors.New("the database URL cannot be read; want sqlite, postgres, or postgres://USER@HOST/DATABASE")
	}
	conn, err := pgx.Connect(ctx, given)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	name := fmt.Sprintf("kagzi_torture_%d", time.Now().UnixNano())
	if _, err := conn.Exec(ctx, "create schema "+name); err != nil {
		return "", err
	}
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	return u.String(), nil
}
