package sqlite

import (
	"context"
	"runtime"
	"testing"
	"time"

	lib "modernc.org/sqlite/lib"
)

func TestAnInterruptThatComesLateIsNotTheNextCallersTrouble(t *testing.T) {
	s := fresh(t)
	c, err := connectReader(s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	rows := "select 1 union all select 2"
	ctx, giveUp := context.WithCancel(t.Context())
	c.mu.Lock() // which keeps an interrupt waiting
	late := time.AfterFunc(50*time.Millisecond, c.mu.Unlock)
	if err := c.query(ctx, &rows, func(*row) error { giveUp(); return nil }); err != nil {
		t.Fatalf("a query that was done before the interrupt came: %v", err)
	}
	err = c.query(t.Context(), &rows, func(*row) error {
		if late.Stop() { // the interrupt waits still
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
