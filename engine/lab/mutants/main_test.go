package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/engine/lab/overlay"
)

// TestEveryMistakeStillApplies runs no mistake: it shows which patches a change of the code has
// outdated.
func TestEveryMistakeStillApplies(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	bugs, err := load("")
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range bugs {
		if want := fmt.Sprintf("%02d", i+1); b.id != want {
			t.Errorf("the mistake after %02d is %s", i, b.id)
		}
		if _, err := overlay.Write(t.TempDir(), root, b.edits); err != nil {
			t.Errorf("mistake %s (%s): %v", b.id, b.what, err)
		}
		if !hasTest(t, root, b.test) {
			t.Errorf("mistake %s (%s): go test %s runs no test", b.id, b.what, strings.Join(b.test, " "))
		}
	}
	if len(bugs) != 80 {
		t.Errorf("there are %d mistakes, want 80", len(bugs))
	}
}

// testFunction finds the names of test functions in a file.
var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// hasTest reports whether a package has a test function that the arguments' -run matches.
func hasTest(t *testing.T, root string, args []string) bool {
	run := regexp.MustCompile("")
	for i, arg := range args {
		if arg == "-run" {
			top, _, _ := strings.Cut(args[i+1], "/")
			run = regexp.MustCompile(top)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, args[0], "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunction.FindAllSubmatch(text, -1) {
			if run.Match(m[1]) {
				return true
			}
		}
	}
	return false
}

func TestWitness(t *testing.T) {
	for output, want := range map[string]string{
		"    x_test.go:1: seed 12: I5 (only the current lease writes): run":          "seed 12, I5",
		"--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/b (0s)\n--- FAIL: TestC (0.1s)": "TestA/b",
		"panic: oh": "a panic",
		// a slow machine or a hang: unclear
		"panic: test timed out after 9m0s\n\trunning tests:\n\t\tTestA (9m0s)": "",
		"--- FAIL: TestA (0.1s)\npanic: test timed out after 9m0s":             "TestA",
		"ok": "",
	} {
		if got := witness(output); got != want {
			t.Errorf("witness(%q) = %q, want %q", output, got, want)
		}
	}
}

func TestOnlyMistakesThatAreThereAreTried(t *testing.T) {
	for only, want := range map[string]int{"": 80, "05": 1, "05,18": 2, "05,99": 0, "99": 0, "5": 0, ",": 0} {
		bugs, err := load(only)
		if len(bugs) != want || (err == nil) != (want > 0) {
			t.Errorf("of %q there are %d (%v), want %d", only, len(bugs), err, want)
		}
	}
}

// TestVerdict puts a mistake into a small module that has one test.
func TestVerdict(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a module for each verdict")
	}
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.24\n", "m.go": "package m\n\nfunc two() int { return 2 }\n",
		"m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif two() != 2 {\n\t\tt.Error(\"not two\")\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit := func(from, to string) []overlay.Edit { return []overlay.Edit{{File: "m.go", Old: from, New: to}} }
	for name, test := range map[string]struct {
		edits []overlay.Edit
		test  string
		want  string
		by    string
	}{
		"no mistake":                      {nil, "TestTwo", "passed", ""},
		"a mistake":                       {edit("return 2", "return 3"), "TestTwo", "caught", "TestTwo"},
		"a mistake that nobody looks for": {edit("return 2", "return 3"), "TestOne", "SURVIVED", ""},
		"code that does not build":        {edit("return 2", "return \"2\""), "TestTwo", "DOES NOT BUILD", ""},
		"other code":                      {edit("return 4", "return 3"), "TestTwo", "DOES NOT APPLY", ""},
		"an end without a test's failure": {edit("return 2", "os.Exit(3); return 2"), "TestTwo", "UNCLEAR", ""},
	} {
		if name == "an end without a test's failure" {
			test.edits = append(test.edits, overlay.Edit{
				File: "m.go", Old: "package m\n", New: "package m\n\nimport \"os\"\n"})
		}
		o := try(root, t.TempDir(), bug{test: []string{".", "-run", test.test}, edits: test.edits})
		if o.verdict != test.want || o.by != test.by {
			t.Errorf("%s: %s by %q, want %s by %q; %s", name, o.verdict, o.by, test.want, test.by, o.output)
		}
	}
}
