// Command package writes the files that archives and packages of Kagzi contain in addition to the
// program, and bills of materials. The rest of a release is configuration:
//
//   - .goreleaser.yml, at the top of the repository, defines the release: programs for Linux, macOS
//     and Windows, archives, bills of materials, checksums.
//   - nfpm.yaml defines the .deb and the .rpm; nfpm.sh builds both from one program.
//   - linux.sh builds program and packages of one version for this machine, with nfpm alone.
//
// The packages are not in .goreleaser.yml, because CI builds and boots them on every change. From an
// empty cache nfpm takes 65 s of processor time and 200 MB of modules; goreleaser 2.15.1 takes 330 s
// and 1.9 GB. So goreleaser calls nfpm.sh, and both build from the same file.
//
// The bill of materials has its own code, because cyclonedx-gomod 1.9 writes the current time into
// it. Here the same commit gives the same bytes: all times are SOURCE_DATE_EPOCH or, if it is not
// set, the time of the commit.
//
//	go run ./installer/package files VERSION DIRECTORY [PROGRAM]
//	go run ./installer/package bill VERSION PROGRAM FILE
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const usage = `usage:
  go run ./installer/package files VERSION DIRECTORY [PROGRAM]
  go run ./installer/package bill VERSION PROGRAM FILE`

func main() {
	err := run(os.Args[1:])
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(64)
	case err != nil:
		fmt.Fprintln(os.Stderr, "package:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("wrong usage")

func run(args []string) error {
	if len(args) < 4 && (len(args) != 3 || args[0] != "files") || len(args) > 4 {
		return errUsage
	}
	version, err := versionOf(args[1])
	if err != nil {
		return err
	}
	switch args[0] {
	case "files":
		program := ""
		if len(args) == 4 {
			program = args[3]
		}
		return writeFiles(version, args[2], program)
	case "bill":
		return writeBill(version, args[2], args[3])
	}
	return errUsage
}

var versionForm = regexp.MustCompile(`^v?([0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?)$`)

// versionOf returns a version without the v.
func versionOf(text string) (string, error) {
	parts := versionForm.FindStringSubmatch(text)
	if parts == nil {
		return "", fmt.Errorf("version %q: must be one such as v1.2.3 or v1.2.3-rc.1", text)
	}
	return parts[1], nil
}

// sourceDate returns the time of the release.
func sourceDate() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.Command("git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{},
				errors.New("the commit's time is unknown; set SOURCE_DATE_EPOCH to seconds since 1970")
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: must be seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// command runs a command; an error has its arguments and output.
func command(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, cmp.Or(string(out), "no output"))
	}
	return nil
}
