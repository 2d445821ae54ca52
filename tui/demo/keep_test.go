package demo

import (
	"os/exec"
	"testing"
)

func TestTheProgramIsNamedAsAShellFindsIt(t *testing.T) {
	for argument, want := range map[string]string{
		"/tmp/go-build12/b001/exe/kagzi": "go run .",
		"./kagzi":                        "./kagzi",
		"/usr/bin/installed":             "installed",
		"./a b/kagzi":                    "kagzi",
		"./\x1b[31m/kagzi":               "kagzi",
	} {
		got := called(argument, func(name string) (string, error) {
			if name == "installed" {
				return "/usr/bin/installed", nil
			}
			return "", exec.ErrNotFound
		})
		if got != want {
			t.Errorf("%q is named %q, want %q", argument, got, want)
		}
	}
}
