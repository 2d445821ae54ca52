package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// workflow is the part of a GitHub workflow that the test reads.
type workflow struct {
	Name string         `yaml:"name"`
	On   map[string]any `yaml:"on"`
	Jobs map[string]struct {
		RunsOn   string `yaml:"runs-on"`
		Minutes  int    `yaml:"timeout-minutes"`
		Strategy struct {
			Matrix struct {
				Include []map[string]string `yaml:"include"`
			} `yaml:"matrix"`
		} `yaml:"strategy"`
		Steps []struct {
			Uses string `yaml:"uses"`
			Run  string `yaml:"run"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

// repository is the top of the repository, from this package's directory.
const repository = "../.."

// partsOfCI reads the names of the parts from .ci/run, and checks that each of its steps belongs to one of them.
func partsOfCI(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, ".ci/run"))
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^parts=\(([a-z ]+)\)$`).FindSubmatch(text)
	if list == nil {
		t.Fatal(".ci/run has no line parts=(…)")
	}
	parts := strings.Fields(string(list[1]))
	used := map[string]bool{}
	for _, step := range regexp.MustCompile(`(?m)^if step ([a-z]+) `).FindAllSubmatch(text, -1) {
		used[string(step[1])] = true
		if !slices.Contains(parts, string(step[1])) {
			t.Errorf(".ci/run has a step of part %s, which is not one of %q", step[1], parts)
		}
	}
	for _, part := range parts {
		if !used[part] {
			t.Errorf(".ci/run has no step of part %s", part)
		}
	}
	return parts
}

func TestWorkflowsRunPartsAndFilesThatExist(t *testing.T) {
	parts := partsOfCI(t)
	files, err := filepath.Glob(filepath.Join(repository, ".github/workflows/*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	covered := map[string]bool{} // by ci.yml
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.UnmarshalWithOptions(text, &w); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if w.Name == "" || len(w.On) == 0 || len(w.Jobs) == 0 {
			t.Errorf("%s has no name, no trigger or no jobs", file)
		}
		for name, job := range w.Jobs {
			if job.RunsOn == "" || job.Minutes == 0 {
				t.Errorf("%s: job %s has no runs-on or no timeout-minutes", file, name)
			}
			var runs []string
			for _, step := range job.Steps {
				if (step.Uses == "") == (step.Run == "") {
					t.Errorf("%s: job %s has a step that has not one of uses and run", file, name)
				}
				runs = append(runs, commands(step.Run, job.Strategy.Matrix.Include)...)
			}
			for _, run := range runs {
				checkCommand(t, file, run, parts, covered)
			}
		}
	}
	for _, part := range parts {
		if !covered[part] {
			t.Errorf("no workflow runs part %s of .ci/run", part)
		}
	}
}

// commands is a run line for each combination of the matrix that it mentions.
func commands(run string, matrix []map[string]string) []string {
	if !strings.Contains(run, "${{ matrix.part }}") {
		return []string{run}
	}
	var all []string
	for _, values := range matrix {
		all = append(all, strings.ReplaceAll(run, "${{ matrix.part }}", values["part"]))
	}
	return all
}

// checkCommand looks for the files of this repository that a command names, and for the parts that it gives to .ci/run.
func checkCommand(t *testing.T, file, run string, parts []string, covered map[string]bool) {
	t.Helper()
	words := strings.Fields(run)
	for i, word := range words {
		if path := strings.TrimPrefix(word, "./"); strings.HasPrefix(word, "./") || strings.HasPrefix(word, ".ci/") ||
			strings.HasPrefix(word, "installer/") {
			if _, err := os.Stat(filepath.Join(repository, path)); err != nil {
				t.Errorf("%s runs %q, of which %s does not exist", file, run, word)
			}
		}
		if word != ".ci/run" {
			continue
		}
		chosen := words[i+1:]
		if len(chosen) == 0 {
			chosen = parts
		}
		for _, part := range chosen {
			covered[part] = true
			if !slices.Contains(parts, part) {
				t.Errorf("%s runs %q, and .ci/run has no part %s", file, run, part)
			}
		}
	}
}

func TestFormsOfIssuesAreYAML(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, ".github/ISSUE_TEMPLATE/*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no issue templates: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var form map[string]any
		if err := yaml.Unmarshal(text, &form); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if filepath.Base(file) != "config.yml" && (form["name"] == nil || form["body"] == nil) {
			t.Errorf("%s has no name or no body", file)
		}
	}
}
