package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents have commands that must exist: tests, programs, scenarios, mistakes. The names are
// globs from the top of the repository.
var documents = []string{"*.md", "*/*.md", "engine/decisions/*.md", "installer/guide/*.md"}

// top is the top of the repository, from this package's directory.
const top = ".."

func TestGoCommandsInDocumentsExist(t *testing.T) {
	r := readRepository(t)
	for _, glob := range documents {
		files, err := filepath.Glob(filepath.Join(top, glob))
		if err != nil || len(files) == 0 {
			t.Errorf("no document is called %s: %v", glob, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range pathsOf(string(text)) {
				if found, err := filepath.Glob(filepath.Join(top, path)); err != nil || len(found) == 0 {
					t.Errorf("%s names %s, which is not there", strings.TrimPrefix(file, top+"/"), path)
				}
			}
			for _, found := range testInBackticks.FindAllStringSubmatch(string(text), -1) {
				if !r.hasTest(found[1]) {
					t.Errorf("%s names %s, and no test is called so", strings.TrimPrefix(file, top+"/"), found[1])
				}
			}
			for _, command := range commandsOf(string(text)) {
				for _, problem := range r.check(command) {
					t.Errorf("%s: `%s`: %s", strings.TrimPrefix(file, top+"/"), command, problem)
				}
			}
		}
	}
}

func TestAnUntrueCommandIsFound(t *testing.T) {
	r := readRepository(t)
	for _, try := range []struct{ command, problem string }{
		{"go test ./engine -run TestBackoff", ""},
		{"go test ./engine -run 'TestBackoff|TestNoSuch'", "nothing matches TestNoSuch"},
		{"go test ./engine ./engine/cron -run TestBackoff", "no test of ./engine/cron matches TestBackoff"},
		{"go test ./engine/... -run TestNoSuch", "no test of ./engine/... matches TestNoSuch"},
		{"go test ./nowhere", "there is no package ./nowhere"},
		{"go test ./backends/sqlite -run 'TestStore/(step|stop)'", "no suite matches stop"},
		{"go test ./engine/cron -args -cron.half", "no flag is called cron.half"},
		{"go test ./engine -run '^$' -fuzz FuzzParseID", ""},
		{"go test ./engine -fuzz FuzzNothing", "no test of ./engine matches FuzzNothing"},
		{"go run ./engine/cron", "./engine/cron is no program"},
		{"go run ./engine/lab/torture --scenario F-01,F-99", "there is no scenario F-99"},
		{"go run ./engine/lab/mutants -only 01,99", "there is no mistake 99"},
	} {
		if got := strings.Join(r.check(try.command), "; "); got != try.problem {
			t.Errorf("%s: %q, want %q", try.command, got, try.problem)
		}
	}
}

var (
	inBackticks = regexp.MustCompile("`((?:[A-Z_]+=\\S+ )?go (?:test|run) [^`]+)`")
	onALine     = regexp.MustCompile(`(?m)^ *((?:[A-Z_]+=\S+ )?go (?:test|run) .*)$`)
	comment     = regexp.MustCompile(`\s# .*$`)
)

// testInBackticks is a test that a document names.
var testInBackticks = regexp.MustCompile("`(Test\\w+)`")

// pathInBackticks is a file or a folder of the repository, from its top, as Go and SQL files in documents are named.
var pathInBackticks = regexp.MustCompile("`((?:backends|engine|installer|migrations|proto|sdk|tui)/[\\w./*-]+)`")

// pathsOf returns the files and folders that a document names from the top of the repository, but
// for patterns of names.
func pathsOf(text string) (paths []string) {
	for _, found := range pathInBackticks.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(found[1], "NNNN") && !strings.Contains(found[1], "...") {
			paths = append(paths, found[1])
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// commandsOf returns the go test and go run commands of a document, each once.
func commandsOf(text string) []string {
	var all []string
	for _, found := range slices.Concat(inBackticks.FindAllStringSubmatch(text, -1),
		onALine.FindAllStringSubmatch(text, -1)) {
		all = append(all, strings.Join(strings.Fields(
			comment.ReplaceAllString(strings.ReplaceAll(found[1], `\|`, "|"), "")), " "))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// repository is what commands can name.
type repository struct {
	tests     map[string][]string // names of test, fuzz and benchmark functions, by directory ("engine/cron")
	packages  map[string]string   // name in the package clause, by directory
	flags     map[string]bool
	suites    []string // of backends/storetest
	scenarios map[string]bool
	mistakes  map[string]bool
}

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
	packageName  = regexp.MustCompile(`(?m)^package (\w+)`)
	flagName     = regexp.MustCompile(
		`\.(?:Bool|Int|String|Uint64|Uint|Float64|Duration|Func)(?:Var)?\((?:&[\w.]+, )?"([a-z][a-z.]*)"`)
	suiteName    = regexp.MustCompile(`(?m)^\t\t\{"([a-z -]+)", `)
	scenarioName = regexp.MustCompile(`\bid:\s+"([A-Z]-[0-9]{2}[a-z-]*)"`)
)

func readRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{tests: map[string][]string{}, packages: map[string]string{}, flags: map[string]bool{},
		scenarios: map[string]bool{}, mistakes: map[string]bool{}}
	err := filepath.WalkDir(top, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "testdata" ||
			entry.Name() == "node_modules") {
			return filepath.SkipDir
		}
		name := strings.TrimPrefix(filepath.ToSlash(path), top+"/")
		directory := filepath.ToSlash(filepath.Dir(name))
		if directory == "engine/lab/mutants/patches" {
			r.mistakes[strings.TrimSuffix(entry.Name(), ".patch")] = true
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range flagName.FindAllSubmatch(text, -1) {
			r.flags[string(found[1])] = true
		}
		if strings.HasSuffix(name, "_test.go") {
			for _, found := range testFunction.FindAllSubmatch(text, -1) {
				r.tests[directory] = append(r.tests[directory], string(found[1]))
			}
		} else if clause := packageName.FindSubmatch(text); clause != nil {
			r.packages[directory] = string(clause[1])
		}
		switch {
		case name == "backends/storetest/storetest.go":
			for _, found := range suiteName.FindAllSubmatch(text, -1) {
				r.suites = append(r.suites, strings.ReplaceAll(string(found[1]), " ", "_"))
			}
		case directory == "engine/lab/torture" && !strings.HasSuffix(name, "_test.go"):
			for _, found := range scenarioName.FindAllSubmatch(text, -1) {
				r.scenarios[string(found[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.suites) == 0 || len(r.scenarios) == 0 || len(r.mistakes) == 0 {
		t.Fatalf("%d suites, %d scenarios and %d mistakes: the places where they are written down have changed",
			len(r.suites), len(r.scenarios), len(r.mistakes))
	}
	return r
}

// check returns what of a command does not exist.
func (r *repository) check(command string) (problems []string) {
	words := wordsOf(command)
	for !strings.HasPrefix(words[0], "go") {
		words = words[1:] // variables
	}
	verb, words := words[1], words[2:]
	var packages []string
	for i, word := range words {
		if i == 0 && word == "." || strings.HasPrefix(word, "./") {
			packages = append(packages, word)
		}
	}
	for _, p := range packages {
		if !r.exists(p) {
			return []string{"there is no package " + p}
		}
	}
	if len(packages) == 0 {
		return nil // of another module
	}
	if verb == "run" {
		if r.packages[directoryOf(packages[0])] != "main" {
			return []string{packages[0] + " is no program"}
		}
		packages = packages[1:] // what pause runs the tests of
	}
	for i, word := range words {
		value := ""
		if i+1 < len(words) {
			value = words[i+1]
		}
		name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		switch {
		case word == "-run" || word == "-fuzz" || word == "-bench":
			problems = append(problems, r.checkPattern(packages, value)...)
		case word == "--scenario":
			problems = append(problems, missing("scenario", value, r.scenarios)...)
		case word == "-only":
			problems = append(problems, missing("mistake", value, r.mistakes)...)
		case strings.HasPrefix(word, "-") && strings.Contains(name, ".") && !r.flags[name]:
			problems = append(problems, "no flag is called "+name)
		}
	}
	return problems
}

// checkPattern holds a pattern of -run against the functions of the packages, and its second part
// against the suites of storetest.
func (r *repository) checkPattern(packages []string, pattern string) (problems []string) {
	functions, cases, _ := strings.Cut(pattern, "/")
	if functions == "^$" || functions == "." || len(packages) == 0 {
		return nil
	}
	union := []string{}
	for _, p := range packages {
		names := r.testsOf(p)
		union = append(union, names...)
		if !matchesOne(functions, names) {
			problems = append(problems, fmt.Sprintf("no test of %s matches %s", p, functions))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	for _, alternative := range strings.Split(functions, "|") {
		if !matchesOne(alternative, union) {
			problems = append(problems, "nothing matches "+alternative)
		}
	}
	if cases != "" && functions == "TestStore" {
		suites, _, _ := strings.Cut(cases, "/")
		for _, alternative := range strings.Split(strings.Trim(suites, "()"), "|") {
			if !matchesOne(alternative, r.suites) {
				problems = append(problems, "no suite matches "+alternative)
			}
		}
	}
	return problems
}

func (r *repository) hasTest(name string) bool {
	for _, tests := range r.tests {
		if slices.Contains(tests, name) {
			return true
		}
	}
	return false
}

func matchesOne(pattern string, names []string) bool {
	re, err := regexp.Compile(pattern)
	return err == nil && slices.ContainsFunc(names, re.MatchString)
}

func missing(what, list string, have map[string]bool) (problems []string) {
	for _, name := range strings.Split(list, ",") {
		if !have[name] {
			problems = append(problems, "there is no "+what+" "+name)
		}
	}
	return problems
}

// directoryOf is the directory of a package as a command names it: "engine" for ./engine and ./engine/....
func directoryOf(pattern string) string {
	return filepath.ToSlash(filepath.Clean(strings.TrimSuffix(pattern, "/...")))
}

func (r *repository) exists(pattern string) bool {
	_, err := os.Stat(filepath.Join(top, directoryOf(pattern)))
	return err == nil
}

func (r *repository) testsOf(pattern string) (names []string) {
	directory := directoryOf(pattern)
	for of, tests := range r.tests {
		below := directory == "." || strings.HasPrefix(of, directory+"/")
		if of == directory || strings.HasSuffix(pattern, "/...") && below {
			names = append(names, tests...)
		}
	}
	return names
}

// wordsOf splits a command as a shell does, for words without and in single quotes.
func wordsOf(command string) (words []string) {
	for command = strings.TrimSpace(command); command != ""; command = strings.TrimSpace(command) {
		if quoted, ok := strings.CutPrefix(command, "'"); ok {
			word, rest, _ := strings.Cut(quoted, "'")
			words, command = append(words, word), rest
			continue
		}
		word, rest, _ := strings.Cut(command, " ")
		words, command = append(words, word), rest
	}
	return words
}
