package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestEachTestGetsAnEmptySchemaOfItsOwn(t *testing.T) {
	first, second := URL(t), URL(t)
	if first == second {
		t.Fatalf("both got %s", first)
	}
	start := time.Now()
	URL(t)
	t.Logf("a fresh schema took %s", time.Since(start))
	ctx := context.Background()
	for _, u := range []string{first, second} {
		conn, err := pgx.Connect(ctx, u)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(ctx, "create table t (a int)"); err != nil {
			t.Fatalf("the schema is not empty: %v", err)
		}
		conn.Close(ctx)
	}
}
