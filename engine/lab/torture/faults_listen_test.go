//go:build linux

package main

import (
	"slices"
	"testing"
	"time"

	"github.com/kagzi/kagzi/engine/lab/torture/fixture"
)

func TestOnlyAConnectionThatListensGoesSilent(t *testing.T) {
	startup := []byte{0, 0, 0, 8, 0, 3, 0, 0}
	e := &ear{}
	listens, other := e.watch(), e.watch()
	listens(true, startup)
	other(true, startup)
	listens(true, message('Q', `listen "kagzi_1"`))
	other(true, message('Q', "select 'listen '"))
	if n := e.listened.Load(); n != 1 {
		t.Fatalf("%d connections listen, want 1", n)
	}
	if v := listens(false, []byte("x")); v != fixture.Pass {
		t.Errorf("before the silence: verdict %d, want that it passes", v)
	}
	if n := e.silence(); n != 1 {
		t.Errorf("%d connections were silenced, want 1", n)
	}
	if e.await(t.Context(), 1, 0) {
		t.Error("another listens, as it seems, and none does")
	}
	next := e.watch()
	next(true, slices.Concat(startup, message('P', "", `listen "kagzi_1"`, "")))
	got := []fixture.Decision{listens(true, message('S')), listens(false, []byte("x")), other(false, []byte("x")),
		next(false, []byte("x"))}
	if want := []fixture.Decision{fixture.Withhold, fixture.Withhold, fixture.Pass, fixture.Pass}; !slices.Equal(
		got, want) {
		t.Errorf("verdicts %v, want %v", got, want)
	}
	if !e.await(t.Context(), 1, time.Minute) {
		t.Error("another listens, and it is not seen")
	}
}

func TestADeafServerMustListenAgainInTime(t *testing.T) {
	for took, want := range map[time.Duration]bool{listenLimit: true, listenLimit + 1: false, -1: false} {
		if f := listensAgain(&torture{relistened: []time.Duration{1, took}}); f.ok != want || f.hard != (took < 0) {
			t.Errorf("after %v: %s, hard %t, want ok %t", took, f, f.hard, want)
		}
	}
	if f := listensAgain(&torture{}); f.ok {
		t.Errorf("never deaf: %s, want that it is missed", f)
	}
}
