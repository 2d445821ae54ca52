package postgres

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kagzi/kagzi/engine"
)

var _ engine.BackupTurns = (*Store)(nil)

// backupTurn is the standing that says when a server last took the turn.
const backupTurn = "backup turn"

//go:embed sql/take_backup_turn.sql
var takeBackupTurnSQL string

//go:embed sql/get_backup_turn.sql
var getBackupTurnSQL string

//go:embed sql/return_backup_turn.sql
var returnBackupTurnSQL string

// BackupTurn is one row that whoever comes first changes.
func (s *Store) BackupTurn(ctx context.Context, every time.Duration) (wait time.Duration, giveBack func(context.Context) error, err error) {
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
