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

// keeper runs the server and takes it down, with its directory, when standard input ends: when this process is gone.
const keeper = `
"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= $3 >"$2/log" 2>&1 &
server=$!
( while kill -0 $server 2>/dev/null; do sleep 1; done; kill $$ 2>/dev/null ) >/dev/null 2>&1 &
trap 'rm -rf "$2"; exit 0' TERM
cat >/dev/null
trap - TERM
kill -QUIT $server
wait $server
rm -rf "$2"
`

const settings = "-c max_connections=300 -c shared_buffers=256MB -c max_wal_size=2GB -c logging_collector=off"

// held keeps the pipes to the keepers open until this process ends.
var held struct {
	sync.Mutex
	pipes []*os.File
}

// startServer makes a cluster in a temporary directory and serves it there.
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
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "postgres", "-A", "trust",
		"-E", "UTF8", "--no-locale", "--no-sync", "--no-instructions")
	prepare(initdb, dir, owner)
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w: %s", err, out), os.RemoveAll(dir))
	}
	flags := settings
	if !durable {
		flags += " -c fsync=off -c synchronous_commit=off -c full_page_writes=off"
	}
	died, err := serve(bin, dir, flags, owner)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	u := socketURL(dir)
	return u, await(u, died)
}

// serve starts the keeper; died is closed when it has ended.
func serve(bin, dir, flags string, owner *syscall.Credential) (died <-chan struct{}, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", keeper, "keeper", bin, dir, flags)
	cmd.Stdin = read
	prepare(cmd, dir, owner)
	// A group of its own: Ctrl-C at the tests must not kill the keeper before it has tidied up.
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

// ownDirectory gives the directory to somebody whom Postgres accepts: it refuses to run as root.
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

// findBinaries is the directory of the server's programs: that of PATH, else the newest of Debian's.
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
		n, _ := strconv.Atoi(strings.Split(path, "/")[4]) // a name that is no number comes last
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

// await asks until the server answers.
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
