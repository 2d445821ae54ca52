package main

import (
	"runtime"
	"testing"

	"github.com/kagzi/kagzi/engine/lab/overlay"
)

func TestTheRuntimeIsTheOneThatThePatchWasWrittenFor(t *testing.T) {
	_, edits, err := overlay.Parse(patch)
	if err != nil {
		t.Fatal(err)
	}
	root, err := goRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := overlay.Write(t.TempDir(), root, edits); err != nil {
		t.Errorf("%s: %v", runtime.Version(), err)
	}
}
