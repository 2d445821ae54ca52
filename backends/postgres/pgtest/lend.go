package pgtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Place is where a store can be opened: a schema, or a database behind a pooler. It has its tables and no rows.
type Place struct {
	URL     string
	Direct  string    // URL, but where a pooler is in between
	Session *pgx.Conn // for looking at the place; who is lent it next goes on with it
	// Kept is what who is lent it next goes on with besides. It is nil at first; who puts something
	// here must not use it once its test is over.
	Kept interface{ Close() }
	made string // what describeSQL says of it as it was made
}

// Migrate brings the database of an address up to date. It is the same in all calls of a process.
type Migrate func(ctx context.Context, url string) error

// Lend gives t a migrated schema that an earlier test may have used. To make one with its tables,
// and a session to look at it, takes longer than most tests do. One whose tables were changed, to
// which triggers were added or of which statistics are known is not lent again. On a server that
// KAGZI_TEST_POSTGRES names each is fresh.
func Lend(t T, migrate Migrate) *Place {
	t.Helper()
	return schemas.lend(t, migrate, !fast.given, func() (string, string) {
		url := URL(t)
		return url, url
	})
}

// LendPooled gives t a migrated database behind PgBouncer, likewise.
func LendPooled(t T, migrate Migrate) *Place {
	t.Helper()
	return databases.lend(t, migrate, true, func() (string, string) { return PooledURL(t) })
}

var schemas, databases shelf

// shelf has places that nobody uses.
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

// describeSQL tells apart all that a test may leave behind but rows: tables, indexes and columns,
// constraints, triggers, functions and statistics.
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

// emptySQL waits for sessions that have been closed and are not gone yet: what they hold under the
// schema's number would look like another server. It fails when that, or a lock of a table, is held
// for longer: a place whose last test has left something running is not lent again.
//
// To truncate the tables takes two hundred milliseconds, for each of their files is made anew, and
// to delete a few rows takes two. Where nothing but these was there, the planner thinks of the
// tables as of new ones.
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

// empty makes the place as it was when it was made.
func (p *Place) empty() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if now, err := p.describe(ctx); err != nil || now != p.made {
		return errors.Join(err, errors.New("the test has left more than rows"))
	}
	_, err := p.Session.Exec(ctx, emptySQL)
	return err
}
