package pgtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Place is where a store can be opened: a schema, or a database behind a pooler. It has all tables
// and no rows.
type Place struct {
	URL     string
	Direct  string    // URL of the database itself, if a pooler is in between
	Session *pgx.Conn // for reading the place; the next test that borrows it gets the session too
	// Kept is anything else that the next borrower gets. It is nil at first; a test that sets it
	// must not use it after its end.
	Kept interface{ Close() }
	made string // result of describeSQL when it was made
}

// Migrate migrates the database of an address. It must be the same function in all calls of a
// process.
type Migrate func(ctx context.Context, url string) error

// Lend gives t a migrated schema that an earlier test may have used, because making one with its
// tables, and a session to read it, takes longer than most tests. A schema with changed tables, new
// triggers or statistics is not lent again. On a server that KAGZI_TEST_POSTGRES names, each schema
// is new.
func Lend(t T, migrate Migrate) *Place {
	t.Helper()
	return schemas.lend(t, migrate, !fast.given, func() (string, string) {
		url := URL(t)
		return url, url
	})
}

// LendPooled is Lend for a database behind PgBouncer.
func LendPooled(t T, migrate Migrate) *Place {
	t.Helper()
	return databases.lend(t, migrate, true, func() (string, string) { return PooledURL(t) })
}

var schemas, databases shelf

// shelf holds the places that are not in use.
type shelf struct {
	sync.Mutex
	places []*Place
}

func (s *shelf) lend(t T, migrate Migrate, keep bool, make func() (url, direct string)) *Place {
	t.Helper()
	place := s.take()
	if place == nil {
		place = &Place{}
		place.URL, place.Direct = make()
		if err := place.prepare(migrate); err != nil {
			t.Fatalf("a place for the test: %v", err)
		}
	}
	t.Cleanup(func() {
		failed, ok := t.(interface{ Failed() bool })
		if !keep || ok && failed.Failed() || place.empty() != nil {
			place.Session.Close(context.Background())
			if place.Kept != nil {
				place.Kept.Close()
			}
			return
		}
		s.Lock()
		defer s.Unlock()
		s.places = append(s.places, place)
	})
	return place
}

func (s *shelf) take() *Place {
	s.Lock()
	defer s.Unlock()
	if len(s.places) == 0 {
		return nil
	}
	last := len(s.places) - 1
	place := s.places[last]
	s.places = s.places[:last]
	return place
}

func (p *Place) prepare(migrate Migrate) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := migrate(ctx, p.Direct); err != nil {
		return fmt.Errorf("migrate it: %w", err)
	}
	if p.Session, err = pgx.Connect(ctx, p.Direct); err != nil {
		return err
	}
	p.made, err = p.describe(ctx)
	return err
}

// describeSQL describes everything that a test may leave behind except rows: tables, indexes and
// columns, constraints, triggers, functions and statistics.
const describeSQL = `
with ours as (select oid from pg_class where relnamespace = current_schema()::regnamespace)
select concat_ws(' ',
	(select md5(string_agg(oid::text, ',' order by oid)) from ours),
	(select md5(string_agg(a::text, ',' order by attrelid, attnum)) from pg_attribute a where attrelid in (select oid from ours)),
	(select md5(string_agg(c::text, ',' order by oid)) from pg_constraint c where connamespace = current_schema()::regnamespace),
	(select count(*) from pg_trigger where tgrelid in (select oid from ours)),
	(select count(*) from pg_proc where pronamespace = current_schema()::regnamespace),
	(select count(*) from pg_statistic where starelid in (select oid from ours)))`

func (p *Place) describe(ctx context.Context) (description string, err error) {
	err = p.Session.QueryRow(ctx, describeSQL).Scan(&description)
	return description, err
}

// emptySQL waits for sessions that were closed but have not ended yet, because their locks under
// the schema's number would look like another server. It fails if these, or a lock on a table, are
// held for longer: then the last test has left something running, and the place is not lent again.
//
// Truncating the tables takes 200 ms, because each file is made again; deleting a few rows takes
// two. If nothing but rows was there, the planner treats the tables as new ones.
const emptySQL = `
set lock_timeout = '1s';
do $$
declare
	tables text;
	one text;
	many boolean;
begin
	for i in 1..200 loop
		exit when not exists (select from pg_locks where locktype = 'advisory' and objid = current_schema()::regnamespace::oid);
		if i = 200 then raise exception 'a session is left'; end if;
		perform pg_sleep(0.005);
	end loop;
	select string_agg(quote_ident(relname), ', '), bool_or(relpages > 0 or reltuples >= 0 or pg_table_size(oid) > 64 * 1024) into tables, many
		from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'r' and relname <> 'schema_migrations';
	if many then
		execute 'truncate ' || tables || ' restart identity';
		return;
	end if;
	execute 'lock table ' || tables || ' in access exclusive mode';
	perform set_config('session_replication_role', 'replica', true); -- all rows go, so references need no look
	foreach one in array string_to_array(tables, ', ') loop
		execute 'delete from ' || one;
	end loop;
	perform setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false) from pg_sequences where schemaname = current_schema();
end $$`

// empty restores the place to its first state.
func (p *Place) empty() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if now, err := p.describe(ctx); err != nil || now != p.made {
		return errors.Join(err, errors.New("the test has left more than rows"))
	}
	_, err := p.Session.Exec(ctx, emptySQL)
	return err
}
