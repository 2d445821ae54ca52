package postgres

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/set_standing.sql
var setStandingSQL string

//go:embed sql/get_standing.sql
var getStandingSQL string

// NoteRestored says of a database that it was filled out of a backup, and of which.
func NoteRestored(ctx context.Context, url, from string, at time.Time) error {
	return withConnection(ctx, url, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, setStandingSQL, args{"name": engine.StandingRestored, "value": from, "at": micros(at)})
		return translate("note that the database was restored", err)
	})
}

// restored is when the database was filled out of a backup, and of which; empty: it was not.
func (s *Store) restored(ctx context.Context) (string, error) {
	var from string
	var at time.Time
	err := s.views.QueryRow(ctx, getStandingSQL, args{"name": engine.StandingRestored}).Scan(&from, timeOf(&at))
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return moment(at) + " from a backup (" + from + ")", err
}
