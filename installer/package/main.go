// Command package builds all that a release hands out, from the repository that it is called in: archives for Linux, macOS and
// Windows, packages for Debian's and Red Hat's families, a bill of materials for each program, and the checksums of all.
//
//	go run ./installer/package v1.2.3 [DIRECTORY [TARGET...]]
//
// The directory is dist when left out, and the targets are all of them; linux/amd64 is one. The same commit built twice gives the same bytes: all times are SOURCE_DATE_EPOCH, or, when
// that is not set, the time of the commit.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./installer/package VERSION [DIRECTORY [TARGET...]]")
		os.Exit(64)
	}
	directory, wanted := "dist", targets
	if len(os.Args) > 2 {
		directory = os.Args[2]
	}
	if len(os.Args) > 3 {
		wanted = nil
	}
	for _, name := range os.Args[min(3, len(os.Args)):] {
		i := slices.IndexFunc(targets, func(t target) bool { return t.String() == name })
		if i < 0 {
			fmt.Fprintf(os.Stderr, "package: there is no target %q; there are %v\n", name, targets)
			os.Exit(64)
		}
		wanted = append(wanted, targets[i])
	}
	if err := build(os.Args[1], directory, wanted); err != nil {
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

// target is a system to build for.
type target struct{ os, arch string }

var targets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}

func (t target) String() string { return t.os + "/" + t.arch }

// program is what the binary is called there.
func (t target) program() string {
	if t.os == "windows" {
		return "kagzi.exe"
	}
	return "kagzi"
}

// release is what is built, and where.
type release struct {
	version string // without the v
	time    time.Time
	out     string // directory
	scratch string // directory, removed afterwards
	shared  []file // what every archive holds beside the program
}

// file is one file of an archive or a package.
type file struct {
	path    string // relative
	mode    os.FileMode
	content []byte
}

var versionForm = regexp.MustCompile(`^v?([0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?)$`)

func build(version, out string, wanted []target) (err error) {
	parts := versionForm.FindStringSubmatch(version)
	if parts == nil {
		return fmt.Errorf("version %q: want one such as v1.2.3 or v1.2.3-rc.1", version)
	}
	r := release{version: parts[1], out: out}
	if r.time, err = sourceDate(); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if r.scratch, err = os.MkdirTemp("", "kagzi-package-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.scratch)) }()
	if r.shared, err = r.documents(); err != nil {
		return err
	}
	var made []string
	for _, t := range wanted {
		names, err := r.buildFor(t)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		made = append(made, names...)
	}
	return writeChecksums(out, made)
}

// sourceDate is the time that all files get.
func sourceDate() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.Command("git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, errors.New("the time of the commit is not known here; set SOURCE_DATE_EPOCH to seconds since 1970")
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: want seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// buildFor makes all for one target and returns the names of the files.
func (r *release) buildFor(t target) ([]string, error) {
	path := filepath.Join(r.scratch, t.os+"-"+t.arch, t.program())
	if err := r.compile(t, path); err != nil {
		return nil, err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	base := fmt.Sprintf("kagzi_%s_%s_%s", r.version, t.os, t.arch)
	files := append([]file{{t.program(), 0o755, program}}, r.shared...)
	name, pack := base+".tar.gz", tarball
	if t.os == "windows" {
		name, pack = base+".zip", zipped
	}
	archive, err := pack(base, files, r.time)
	if err != nil {
		return nil, err
	}
	bill, err := r.billOf(path, t)
	if err != nil {
		return nil, err
	}
	made := []string{name, base + ".cdx.json"}
	for i, content := range [][]byte{archive, bill} {
		if err := os.WriteFile(filepath.Join(r.out, made[i]), content, 0o644); err != nil {
			return nil, err
		}
	}
	if t.os == "linux" {
		packages, err := r.packages(t, path)
		if err != nil {
			return nil, err
		}
		made = append(made, packages...)
	}
	for _, name := range made {
		fmt.Println(filepath.Join(r.out, name))
	}
	return made, nil
}

// compile builds the program for a target; an empty target is this system.
func (r *release) compile(t target, path string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=v"+r.version, "-o", path, "github.com/kagzi/kagzi")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
	if t.os != "" {
		cmd.Env = append(cmd.Env, "GOOS="+t.os, "GOARCH="+t.arch)
	}
	return run(cmd)
}

// documents are what the program says about itself, and what stands in the repository about it.
func (r *release) documents() ([]file, error) {
	self := filepath.Join(r.scratch, "kagzi-here")
	if err := r.compile(target{}, self); err != nil {
		return nil, err
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("find the repository: %w", err)
	}
	var files []file
	for _, name := range []string{"LICENSE", "README.md"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, 0o644, text})
	}
	for _, c := range []struct{ shell, path string }{
		{"bash", "completions/kagzi.bash"}, {"zsh", "completions/_kagzi"}, {"fish", "completions/kagzi.fish"}, {"powershell", "completions/kagzi.ps1"},
	} {
		text, err := exec.Command(self, "completion", c.shell).Output()
		if err != nil {
			return nil, fmt.Errorf("kagzi completion %s: %w", c.shell, err)
		}
		files = append(files, file{c.path, 0o644, text})
	}
	manual := filepath.Join(r.scratch, "man")
	if err := run(exec.Command(self, "man", "--dir", manual)); err != nil {
		return nil, err
	}
	pages, err := os.ReadDir(manual)
	if err != nil {
		return nil, err
	}
	for _, page := range pages { // sorted by name
		text, err := os.ReadFile(filepath.Join(manual, page.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{"man/man1/" + page.Name(), 0o644, text})
	}
	return files, nil
}

// run runs a command, whose words are in the error.
func run(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, cmp.Or(string(out), "it said nothing"))
	}
	return nil
}
