package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kagzi/kagzi/engine"
)

//go:embed sql/describe.sql
var describeSQL string

// Describe tells what the store is and where.
func (s *Store) Describe(ctx context.Context) (engine.Description, error) {
	d := engine.Description{Backend: "postgres", Database: s.database, Schema: s.schema}
	writing, reading := poolText(s.pool.Stat()), poolText(s.views.Stat()) // before this call takes one itself
	restored, syncCommit, fsync, fullPages := "", "", "", ""
	err := s.view(ctx, "describe the database", func(ctx context.Context) (err error) {
		if restored, err = s.restored(ctx); err != nil {
			return err
		}
		return s.views.QueryRow(ctx, describeSQL).Scan(&d.Version, &d.Bytes, &syncCommit, &fsync, &fullPages)
	})
	listening, since := s.bell.state()
	d.Notifications = s.bell.mode()
	d.Facts = []engine.Fact{
		{Name: "durability", Value: fmt.Sprintf("synchronous_commit=%s, fsync=%s, full_page_writes=%s", syncCommit, fsync, fullPages)},
		{Name: "connections to write", Value: writing},
		{Name: "connections to read", Value: reading},
		{Name: "notifications", Value: s.listenText(listening, since)},
		{Name: "clock offset", Value: s.clock.text()},
	}
	if restored != "" {
		d.Facts = append([]engine.Fact{{Name: "restored", Value: restored}}, d.Facts...)
	}
	return d, err
}

func poolText(p *pgxpool.Stat) string {
	return fmt.Sprintf("%d busy, %d idle, at most %d", p.AcquiredConns(), p.IdleConns(), p.MaxConns())
}

func (s *Store) listenText(listening bool, since time.Time) string {
	switch {
	case s.pooled:
		return fmt.Sprintf("not heard behind a pooler, looking every %s", pollEvery)
	case listening:
		return "listening since " + moment(since)
	}
	return fmt.Sprintf("not listening since %s, looking every %s", moment(since), pollEvery)
}

// moment is by this machine's clock.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }
