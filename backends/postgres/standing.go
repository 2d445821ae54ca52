package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

// A copy sets states in the table standing of this database (engine.StandingMoved and others).
// While rows are copied in or out, and after they were moved, triggers refuse every write to the
// copied tables, except the copy's own: the fence.

//go:embed sql/get_standing_value.sql
var getStandingValueSQL string

// Standing returns a state of the database.
func (e *End) Standing(ctx context.Context, name string) (value string, err error) {
	err = e.control.QueryRow(ctx, getStandingValueSQL, args{"name": name}).Scan(&value)
	return value, translate("read the state of the database", err)
}

const (
	fenceTimeout = 30 * time.Second // to get the locks from the tables' users
	fenceLock    = "2s"             // per attempt, because others wait behind us meanwhile
)

// withLocked calls do in a transaction with these tables locked, as soon as their users let go.
func (e *End) withLocked(ctx context.Context, doing, mode string, tables []engine.CopyTable,
	do func(tx pgx.Tx, names []string) error) error {
	if err := e.rest(ctx); err != nil {
		return translate(doing, err)
	}
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = quoted(t.Name)
	}
	for deadline := time.Now().Add(fenceTimeout); ; {
		err := pgx.BeginFunc(ctx, e.control, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "set local lock_timeout = '"+fenceLock+"'"); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "lock table "+strings.Join(names, ", ")+" in "+mode+" mode"); err != nil {
				return err
			}
			return do(tx, names)
		})
		switch {
		case errors.Is(err, engine.ErrCopyNotEmpty), errors.Is(err, engine.ErrCopyRival):
			return err
		case sqlState(err) == codeUnique: // the state of another copy
			return engine.ErrCopyRival
		case err == nil || !retryable(err) || time.Now().After(deadline) || !pause(ctx, 1):
			return translate(doing, err)
		}
	}
}

// rest ends the session that reads, which would keep the tables from being changed.
func (e *End) rest(ctx context.Context) error {
	if e.reader == nil {
		return nil
	}
	err := e.reader.Close(ctx)
	e.reader = nil
	return err
}

// Fence refuses every write by other sessions to a copied table, by any program. It waits for
// writes that have begun.
func (e *End) Fence(ctx context.Context, f engine.CopyFence) error {
	tables, err := e.Tables(ctx)
	if err != nil {
		return err
	}
	return e.withLocked(ctx, "fence the database", "share row exclusive", tables,
		func(tx pgx.Tx, names []string) error {
			return fence(ctx, tx, names, f)
		})
}

//go:embed sql/insert_standing.sql
var insertStandingSQL string

func fence(ctx context.Context, tx pgx.Tx, names []string, f engine.CopyFence) error {
	if f.Standing == engine.StandingFilling {
		for _, name := range names {
			var some bool
			if err := tx.QueryRow(ctx, "select exists (select from "+name+")").Scan(&some); err != nil {
				return err
			}
			if some {
				return engine.ErrCopyNotEmpty
			}
		}
	}
	_, err := tx.Exec(ctx, insertStandingSQL, args{"name": f.Standing, "value": f.Value, "at": f.At.UnixMicro()})
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, composeFence(names, f))
	return err
}

// composeFence returns the statement triggers of the fence. A copy that sets its id passes them.
func composeFence(names []string, f engine.CopyFence) string {
	var script strings.Builder
	fmt.Fprintf(&script, `
create or replace function fence_refuses() returns trigger language plpgsql as $$
begin
	if current_setting('kagzi.copy', true) is distinct from tg_argv[0] then
		raise exception using errcode = '%s', message = tg_argv[1];
	end if;
	return null;
end $$;
`, codeFenced)
	for _, name := range names {
		fmt.Fprintf(&script,
			"create trigger fence before insert or update or delete or truncate on %s for each statement execute function fence_refuses(%s, %s);\n",
			name, quotedText(f.Copy), quotedText(f.Why))
	}
	return script.String()
}

//go:embed sql/amend_standing.sql
var amendStandingSQL string

//go:embed sql/end_standing.sql
var endStandingSQL string

//go:embed sql/drop_standing.sql
var dropStandingSQL string

//go:embed sql/turn_standing.sql
var turnStandingSQL string

// changeStanding requires that a statement has found the state as it was.
func changeStanding(ctx context.Context, tx pgx.Tx, statement string, a args) error {
	tag, err := tx.Exec(ctx, statement, a)
	if err == nil && tag.RowsAffected() != 1 {
		return engine.ErrCopyRival
	}
	return err
}

// Unfence removes the fence, so that others can write again.
func (e *End) Unfence(ctx context.Context, standing, old, copied string) error {
	tables, err := e.Tables(ctx)
	if err != nil {
		return err
	}
	return e.withLocked(ctx, "remove the fence", "access exclusive", tables, func(tx pgx.Tx, names []string) error {
		if err := endStanding(ctx, tx, standing, old, copied); err != nil {
			return err
		}
		var script strings.Builder
		for _, name := range names {
			fmt.Fprintf(&script, "drop trigger if exists fence on %s;\n", name)
		}
		script.WriteString("drop function if exists fence_refuses();\n")
		_, err := tx.Exec(ctx, script.String())
		return err
	})
}

// endStanding deletes a state, or replaces it by the state of a complete copy.
func endStanding(ctx context.Context, tx pgx.Tx, standing, old, copied string) error {
	if copied == "" {
		return changeStanding(ctx, tx, endStandingSQL, args{"name": standing, "old": old})
	}
	if _, err := tx.Exec(ctx, dropStandingSQL, args{"name": engine.StandingCopied}); err != nil {
		return err
	}
	return changeStanding(ctx, tx, turnStandingSQL,
		args{"name": standing, "old": old, "new_name": engine.StandingCopied, "new": copied})
}

// Amend changes a state of the database.
func (e *End) Amend(ctx context.Context, standing, old, new string) error {
	return e.transact(ctx, "set the state of the database", func(tx pgx.Tx) error {
		return changeStanding(ctx, tx, amendStandingSQL, args{"name": standing, "old": old, "new": new})
	})
}

//go:embed sql/has_standing.sql
var hasStandingSQL string

//go:embed sql/refusing_standing.sql
var refusingStandingSQL string

// refuseMoved refuses a database whose rows were moved to another one, or are still being copied
// into it.
func refuseMoved(ctx context.Context, conn querier) error {
	var refusal error
	err := refusing(ctx, conn, func(name, value string) { refusal = engine.ServingRefused(name, value) })
	return errors.Join(err, refusal)
}

// refusing calls tell with the reason why the database must not be served, if there is one.
func refusing(ctx context.Context, conn querier, tell func(name, value string)) error {
	var known bool
	if err := conn.QueryRow(ctx, hasStandingSQL).Scan(&known); err != nil || !known {
		return translate("read the state of the database", err)
	}
	var name, value string
	err := conn.QueryRow(ctx, refusingStandingSQL).Scan(&name, &value)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil {
		tell(name, value)
	}
	return translate("read the state of the database", err)
}

//go:embed sql/set_standing.sql
var setStandingSQL string

//go:embed sql/get_standing.sql
var getStandingSQL string

// NoteRestored records that the database was filled from a backup, and from which.
func NoteRestored(ctx context.Context, url, from string, at time.Time) error {
	return withConnection(ctx, url, pgx.TxOptions{}, func(_ *address, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, setStandingSQL, args{"name": engine.StandingRestored, "value": from, "at": micros(at)})
		return translate("record that the database was restored", err)
	})
}

// restored returns when the database was filled from a backup, and from which; empty: it was not.
func (s *Store) restored(ctx context.Context) (string, error) {
	var from string
	var at time.Time
	err := s.views.QueryRow(ctx, getStandingSQL, args{"name": engine.StandingRestored}).Scan(&from, timeOf(&at))
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return moment(at) + " from a backup (" + from + ")", err
}

var _ engine.BackupTurns = (*Store)(nil)

// backupTurn is the state that records when a server last took the turn.
const backupTurn = "backup turn"

//go:embed sql/take_backup_turn.sql
var takeBackupTurnSQL string

//go:embed sql/get_backup_turn.sql
var getBackupTurnSQL string

//go:embed sql/return_backup_turn.sql
var returnBackupTurnSQL string

// BackupTurn changes one row, which only the first server can.
func (s *Store) BackupTurn(ctx context.Context, every time.Duration) (wait time.Duration,
	giveBack func(context.Context) error, err error) {
	now := s.Now()
	mine := args{"name": backupTurn, "value": engine.NewID(now).String(), "now": micros(now)}
	taking := args{"name": backupTurn, "value": mine["value"], "now": mine["now"], "every": every.Microseconds()}
	var at time.Time
	err = s.pool.QueryRow(ctx, takeBackupTurnSQL, taking).Scan(timeOf(&at))
	switch {
	case err == nil:
		return 0, func(ctx context.Context) error {
			_, err := s.pool.Exec(ctx, returnBackupTurnSQL, mine)
			return translate("give back the turn to make a backup", err)
		}, nil
	case !errors.Is(err, pgx.ErrNoRows):
		return 0, nil, translate("take the turn to make a backup", err)
	}
	err = s.pool.QueryRow(ctx, getBackupTurnSQL, args{"name": backupTurn}).Scan(timeOf(&at))
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Second, nil, nil // it was given back a moment ago
	}
	return max(at.Add(every).Sub(now), time.Second), nil, translate("take the turn to make a backup", err)
}
