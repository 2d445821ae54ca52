package demo

import (
	"os"
	"slices"
	"sync"
	"testing"
)

func TestTheLedgerKeepsEveryLineOfStepsThatRunAtOnce(t *testing.T) {
	l := ledger(t.TempDir())
	var writers sync.WaitGroup
	for n := range 50 {
		writers.Go(func() {
			if err := l.add("run", execution{stepName(n), "worker-1", 7}); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	got, err := l.read("run")
	if err != nil || len(got) != 50 {
		t.Fatalf("read = %d lines, %v, want 50", len(got), err)
	}
	for n := range 50 {
		if !slices.Contains(got, execution{stepName(n), "worker-1", 7}) {
			t.Errorf("%s is missing", stepName(n))
		}
	}
}

func TestTheLedgerOfARunThatHasNotBegunIsEmpty(t *testing.T) {
	got, err := ledger(t.TempDir()).read("run")
	if err != nil || len(got) != 0 {
		t.Errorf("read = %v, %v, want nothing", got, err)
	}
}

func TestALineThatIsBeingWrittenIsNotRead(t *testing.T) {
	l := ledger(t.TempDir())
	if err := l.add("run", execution{"a", "w", 1}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(l.file("run"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString("b w")
	_ = f.Close()
	if got, err := l.read("run"); err != nil || len(got) != 1 {
		t.Errorf("read = %v, %v, want the first line only", got, err)
	}
}

func TestALineThatIsNotTheLedgersIsAnError(t *testing.T) {
	l := ledger(t.TempDir())
	if err := os.WriteFile(l.file("run"), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := l.read("run"); err == nil {
		t.Errorf("read = %v, want an error", got)
	}
}
