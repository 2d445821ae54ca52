//go:build unix

package pgtest

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
)

// keeper runs a server until it ends, and then removes its directory. It ends the server when
// standard input ends, which is when this process is gone. QUIT ends Postgres at once. A shell
// makes its background commands ignore QUIT, and some versions of PgBouncer keep that; TERM ends
// these at once.
const keeper = `
dir=$1
shift
exec 3<&0
"$@" >"$dir/log" 2>&1 3<&- &
server=$!
( cat <&3 >/dev/null 2>&1; kill -QUIT $server; kill -TERM $server ) >/dev/null 2>&1 &
watch=$!
exec 3<&-
wait $server
kill $watch # before somebody else gets the number that was the server's
rm -rf "$dir"
`

const settings = "-c max_connections=300 -c shared_buffers=64MB -c max_wal_size=2GB -c logging_collector=off"

// held keeps the pipes to the keepers open until this process ends.
var held struct {
	sync.Mutex
	pipes []*os.File
}

// startServer makes a cluster in a temporary directory and starts its server.
func startServer(durable bool) (*url.URL, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kagzi-pg-")
	if err != nil {
		return nil, err
	}
	owner, err := ownDirectory(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "postgres",
		"-A", "trust",
		"-E", "UTF8", "--no-locale", "--no-sync", "--no-instructions")
	prepare(initdb, dir, owner)
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w: %s", err, out), os.RemoveAll(dir))
	}
	flags := settings
	if !durable {
		flags += " -c fsync=off -c synchronous_commit=off -c full_page_writes=off"
	}
	command := append([]string{filepath.Join(bin, "postgres"), "-D", filepath.Join(dir, "data"), "-k", dir, "-c",
		"listen_addresses="}, strings.Fields(flags)...)
	died, err := serve(dir, owner, command)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	u := socketURL(dir)
	return u, await(u, died)
}

// startPooler starts PgBouncer in transaction mode for a private server.
func startPooler(server *url.URL) (*url.URL, error) {
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		return nil, errors.New("PgBouncer is not installed")
	}
	dir, err := os.MkdirTemp("", "kagzi-pooler-")
	if err != nil {
		return nil, err
	}
	owner, err := ownDirectory(dir)
	if err == nil {
		config := fmt.Sprintf(poolerConfig, server.Query().Get("host"), dir)
		err = os.WriteFile(filepath.Join(dir, "pgbouncer.ini"), []byte(config), 0o644)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	died, err := serve(dir, owner, []string{path, filepath.Join(dir, "pgbouncer.ini")})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	u := socketURL(dir)
	return u, await(u, died)
}

// poolerConfig maps every user to the one in the databases line. A pool is smaller than what a
// store opens, so that connections change sessions.
const poolerConfig = `[databases]
* = host=%s user=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = %s
listen_port = 5432
auth_type = any
pool_mode = transaction
max_client_conn = 1000
default_pool_size = 6
max_db_connections = 6
`

// serve starts the keeper of a command; died is closed when it has ended.
func serve(dir string, owner *syscall.Credential, command []string) (died <-chan struct{}, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", keeper, "keeper", dir}, command...)...)
	cmd.Stdin = read
	prepare(cmd, dir, owner)
	// A process group of its own: Ctrl-C in the tests must not kill the keeper before it has
	// cleaned up.
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, read.Close(), write.Close())
	}
	read.Close()
	held.Lock()
	held.pipes = append(held.pipes, write)
	held.Unlock()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = cmd.Wait()
	}()
	return gone, nil
}

func prepare(cmd *exec.Cmd, dir string, owner *syscall.Credential) {
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner}
}

// ownDirectory gives the directory to a user whom Postgres accepts, because it refuses to run as
// root.
func ownDirectory(dir string) (*syscall.Credential, error) {
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
		if err := os.Chown(dir, int(uid), int(gid)); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("running as root, and there is no user postgres or nobody to run the server as")
}

// findBinaries returns the directory of the server's programs: from PATH, otherwise the newest of
// Debian's.
func findBinaries() (string, error) {
	if path, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(path), nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", errors.New("no PostgreSQL server is installed")
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4]) // a name that is not a number comes last
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

// await waits until the server answers.
func await(u *url.URL, died <-chan struct{}) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		conn, err := pgx.Connect(ctx, u.String())
		if err == nil {
			err = conn.Close(ctx)
		}
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-died:
			return fmt.Errorf("the server ended: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server does not answer: %w", err)
		}
	}
}

func socketURL(dir string) *url.URL {
	return &url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/postgres",
		RawQuery: strings.ReplaceAll(url.Values{"host": {dir}}.Encode(), "%2F", "/")}
}
