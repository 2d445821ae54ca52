package sqlite3

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	lib "modernc.org/sqlite/lib"
)

func TestAnInterruptThatComesLateIsNotTheNextCallersTrouble(t *testing.T) {
	c, err := Open(DSN(filepath.Join(t.TempDir(), "any.db")))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rows := "select 1 union all select 2"
	ctx, giveUp := context.WithCancel(t.Context())
	c.mu.Lock() // keeps an interrupt waiting
	late := time.AfterFunc(50*time.Millisecond, c.mu.Unlock)
	if err := c.Query(ctx, &rows, func(*Row) error { giveUp(); return nil }); err != nil {
		t.Fatalf("a query that was done before the interrupt came: %v", err)
	}
	err = c.Query(t.Context(), &rows, func(*Row) error {
		if late.Stop() { // the interrupt is still waiting
			c.mu.Unlock()
			for lib.Xsqlite3_is_interrupted(c.tls, c.db) == 0 {
				runtime.Gosched()
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("another caller's query of the same connection: %v", err)
	}
}
