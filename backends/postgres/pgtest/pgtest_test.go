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

var made int // how often oneTable was called

// oneTable stands for the migrations.
func oneTable(ctx context.Context, url string) error {
	made++
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `create table schema_migrations (a int); insert into schema_migrations values (1);
		create table t (a int generated always as identity, b int)`)
	return err
}

func TestWhatIsLentHasItsTablesAndNoRows(t *testing.T) {
	for _, kind := range []struct {
		name string
		lend func(T, Migrate) *Place
	}{{"a schema", Lend}, {"a database behind a pooler", LendPooled}} {
		t.Run(kind.name, func(t *testing.T) {
			made = 0
			lent := map[string]bool{}
			for range 3 {
				t.Run("", func(t *testing.T) {
					place := kind.lend(t, oneTable)
					lent[place.URL] = true
					var first, migrations int
					err := place.Session.QueryRow(t.Context(),
						"insert into t (b) select count(*) from t returning a + b").Scan(&first)
					if err != nil || first != 1 {
						t.Fatalf("the first row is %d (%v), want 1: nothing was there", first, err)
					}
					err = place.Session.QueryRow(t.Context(), "select count(*) from schema_migrations").Scan(
						&migrations)
					if err != nil || migrations != 1 {
						t.Fatalf("%d migrations (%v), want 1", migrations, err)
					}
				})
			}
			if len(lent) == 0 && !t.Failed() {
				t.Skip("there was nothing to lend, as is said above")
			}
			if !fast.given && (len(lent) != 1 || made > 1) {
				t.Fatalf("%d places were lent, made %d times; want one for all", len(lent), made)
			}
		})
	}
}

func TestChangedPlaceIsNotLentAgain(t *testing.T) {
	for name, change := range map[string]string{
		"a transaction is open": "begin; insert into t (b) values (1)",
		"a lock is held":        "select pg_advisory_lock_shared(1, current_schema()::regnamespace::oid::int)",
		"a trigger":             "create trigger g before update on t execute function suppress_redundant_updates_trigger()",
		"a function":            "create function f() returns int language sql as 'select 1'",
		"an index":              "create index i on t (b)",
		"another column":        "alter table t rename b to c",
		"a constraint":          "alter table t add constraint c check (b > 0)",
		"statistics":            "insert into t (b) values (1); analyze t",
	} {
		var first string
		t.Run(name, func(t *testing.T) {
			var conn *pgx.Conn
			// runs after Lend has checked the place; otherwise the garbage collector may close it
			// before
			t.Cleanup(func() {
				if conn != nil {
					conn.Close(context.Background())
				}
			})
			first = Lend(t, oneTable).URL
			var err error
			conn, err = pgx.Connect(context.Background(), first)
			if err == nil {
				_, err = conn.Exec(context.Background(), change)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		t.Run("after "+name, func(t *testing.T) {
			if second := Lend(t, oneTable); first == "" || second.URL == first {
				t.Fatalf("%s is lent again", first)
			}
		})
	}
}
