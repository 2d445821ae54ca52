// Command mutants tests the tests: it puts known mistakes into the code, one at a time, and runs
// the test that must catch each.
//
//	go run ./engine/lab/mutants                 all of them, and a table
//	go run ./engine/lab/mutants -only 05,18     some
//	go run ./engine/lab/mutants -clean          the tests without any mistake, which must pass
//
// A mistake is a file in patches: its description, the test that catches it, and the lines that it
// changes. The files themselves are not touched (go test -overlay). Lines that do not occur exactly
// once are an error; then the patch must be updated. Exit code 1 if a mistake survives or does not
// apply.
package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kagzi/kagzi/engine/lab/overlay"
)

//go:embed patches/*.patch
var patches embed.FS

// bug is one mistake.
type bug struct {
	id    string
	what  string
	test  []string       // arguments of go test
	edits []overlay.Edit // file names are relative to the module's root
}

// outcome is the result of one mistake.
type outcome struct {
	// "caught", "SURVIVED", "UNCLEAR" (the test ended without a failed assertion), "DOES NOT
	// APPLY", "DOES NOT BUILD"
	verdict string
	by      string // the first test that failed, or the seed
	took    time.Duration
	output  string
}

const testLimit = 10 * time.Minute

func main() {
	only := flag.String("only", "", "try only these mistakes: comma-separated numbers (default all)")
	clean := flag.Bool("clean", false, "run the tests without mistakes; all must pass")
	verbose := flag.Bool("v", false, "show what the tests print")
	flag.Parse()
	ok, err := run(*only, *clean, *verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(only string, clean, verbose bool) (bool, error) {
	root, err := moduleRoot()
	if err != nil {
		return false, err
	}
	bugs, err := load(only)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "kagzi-bugs-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tMISTAKE\tVERDICT\tBY\tSECONDS")
	good, tried := 0, map[string]bool{}
	for _, b := range bugs {
		want := "caught"
		if clean {
			want, b.edits = "passed", nil
			key := strings.Join(b.test, " ")
			if tried[key] {
				good++
				continue
			}
			tried[key] = true
		}
		o := try(root, dir, b)
		fmt.Fprintf(os.Stderr, "%s %s: %s %s (%.1f s)\n", b.id, b.what, o.verdict, o.by, o.took.Seconds())
		if verbose || o.verdict != want {
			fmt.Fprintln(os.Stderr, tail(o.output))
		}
		if o.verdict == want {
			good++
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.1f\n", b.id, b.what, o.verdict, cmp.Or(o.by, "-"), o.took.Seconds())
	}
	if err := table.Flush(); err != nil {
		return false, err
	}
	fmt.Printf("%d of %d\n", good, len(bugs))
	return good == len(bugs), nil
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// load reads the mistakes in order of their numbers. A requested number that does not exist is an
// error, so that it is not counted as caught.
func load(only string) (bugs []bug, err error) {
	wanted := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	names, err := fs.Glob(patches, "patches/*.patch")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := patches.ReadFile(name)
		if err != nil {
			return nil, err
		}
		b, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if only == "" || slices.Contains(wanted, b.id) {
			bugs = append(bugs, b)
		}
		wanted = slices.DeleteFunc(wanted, func(id string) bool { return id == b.id })
	}
	if len(wanted) > 0 || len(bugs) == 0 {
		return nil, fmt.Errorf("no mistake has the number %q", strings.Join(wanted, ","))
	}
	return bugs, nil
}

// parse reads a mistake: a line with number and description, a line that begins with "test", and
// the edits.
func parse(text string) (b bug, err error) {
	head, edits, err := overlay.Parse(text)
	if err != nil {
		return b, err
	}
	lines := strings.Split(strings.TrimSpace(head), "\n")
	var found bool
	if b.id, b.what, found = strings.Cut(lines[0], " "); !found || len(lines) < 2 {
		return b, errors.New("want a line with its number and description, and one with the test")
	}
	test, found := strings.CutPrefix(lines[1], "test ")
	if !found {
		return b, errors.New(`want a line that begins with "test"`)
	}
	b.test, b.edits = strings.Fields(test), edits
	return b, nil
}

// try runs the mistake's test on the changed code.
func try(root, dir string, b bug) (o outcome) {
	began := time.Now()
	defer func() { o.took = time.Since(began) }()
	file, err := overlay.Write(dir, root, b.edits)
	if err != nil {
		return outcome{verdict: "DOES NOT APPLY", output: err.Error()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append(
		[]string{"test", "-overlay", file, "-count=1", "-timeout", "9m"}, b.test...)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	o.output = string(out)
	switch {
	case err == nil && len(b.edits) == 0:
		o.verdict = "passed"
	case err == nil:
		o.verdict = "SURVIVED"
	case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
		o.verdict = "DOES NOT BUILD"
	case len(b.edits) == 0:
		o.verdict = "FALSE ALARM"
	default:
		if o.verdict, o.by = "caught", witness(o.output); o.by == "" {
			o.verdict = "UNCLEAR"
		}
	}
	return o
}

var (
	seedLine = regexp.MustCompile(`seed (\d+): (I\d+)`)
	failLine = regexp.MustCompile(`--- FAIL: (\S+)`)
)

// witness returns the seed that found the mistake, or the innermost test that failed first.
func witness(output string) string {
	if m := seedLine.FindStringSubmatch(output); m != nil {
		return "seed " + m[1] + ", " + m[2]
	}
	longest := ""
	for _, m := range failLine.FindAllStringSubmatch(output, -1) {
		if longest != "" && !strings.HasPrefix(m[1], longest+"/") {
			break
		}
		longest = m[1]
	}
	if longest == "" && strings.Contains(output, "panic:") && !strings.Contains(output, "panic: test timed out") {
		return "a panic"
	}
	return longest
}

// tail returns the end of a long text.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return "    " + strings.Join(lines[max(0, len(lines)-30):], "\n    ")
}
