package limit

import (
	"fmt"
	"testing"
	"time"
)

func TestANamespaceMayBeASecondAheadOfItsQuota(t *testing.T) {
	q, now := NamespaceRate{PerSecond: 10}, time.Now()
	take := func(n int, wait time.Duration, which string) {
		t.Helper()
		if named, got := q.take(map[string]int{"a": n}, now); got != wait || wait > 0 && named != "a" {
			t.Errorf("%s: %q waits %s, want %s", which, named, got, wait)
		}
	}
	for i := range 10 {
		take(1, 0, fmt.Sprint(i+1, " at once"))
	}
	take(1, time.Millisecond, "one more")
	now = now.Add(time.Millisecond)
	take(1, 0, "that one, when its time has come")
	take(1, 100*time.Millisecond, "the next")
	now = now.Add(90 * time.Millisecond)
	take(1, 10*time.Millisecond, "the next, too early")
	now = now.Add(10 * time.Millisecond)
	take(1, 0, "the next, when its time has come")
	now = now.Add(time.Minute)
	take(100, 0, "a batch goes through whole")
	take(1, 9*time.Second+time.Millisecond, "behind the batch")
	now = now.Add(9*time.Second + time.Millisecond)
	take(1, 0, "when the batch is paid for")
}

func TestABatchIsRefusedAsAWholeAndCountsForEachOfItsNamespaces(t *testing.T) {
	q, now := NamespaceRate{PerSecond: 10}, time.Now()
	if _, wait := q.take(map[string]int{"a": 10, "b": 1}, now); wait != 0 {
		t.Fatalf("the first waits %s", wait)
	}
	for range 20 {
		if named, wait := q.take(map[string]int{"a": 1, "b": 1}, now); wait == 0 || named != "a" {
			t.Fatalf("%q waits %s, want that of a", named, wait)
		}
	}
	if _, wait := q.take(map[string]int{"b": 1}, now); wait != 0 {
		t.Errorf("b waits %s, although nothing of it has gone through but one", wait)
	}
}

func TestNamespacesBeyondTheLimitShareAQuota(t *testing.T) {
	q, now := NamespaceRate{PerSecond: 1}, time.Now()
	for i := range maxQuotas {
		q.take(map[string]int{fmt.Sprint(i): 1}, now)
	}
	if _, wait := q.take(map[string]int{"one": 2}, now); wait != 0 {
		t.Errorf("the first past them waits %s", wait)
	}
	if _, wait := q.take(map[string]int{"another": 1}, now); wait == 0 {
		t.Error("the second does not wait for the first")
	}
	now = now.Add(time.Minute)
	q.take(map[string]int{"one": 1}, now)
	if len(q.free) != 1 {
		t.Errorf("%d are told apart after a minute, want 1", len(q.free))
	}
}
