package main

import (
	"fmt"
	"testing"

	"github.com/kagzi/kagzi/engine/simulate/overlay"
)

// TestEveryMistakeStillApplies runs none of them: it tells who changes the code which mistakes are to be written anew.
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
	}
	if len(bugs) != 49 {
		t.Errorf("there are %d mistakes, want 49", len(bugs))
	}
}

func TestWitness(t *testing.T) {
	for output, want := range map[string]string{
		"    x_test.go:1: seed 12: I5 (only the current lease writes): run":          "seed 12, I5",
		"--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/b (0s)\n--- FAIL: TestC (0.1s)": "TestA/b",
		"panic: oh": "a panic",
		"ok":        "",
	} {
		if got := witness(output); got != want {
			t.Errorf("witness(%q) = %q, want %q", output, got, want)
		}
	}
}
