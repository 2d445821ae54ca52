//go:build linux

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	_ "modernc.org/sqlite"             // the driver sqlite

	"github.com/kagzi/kagzi/engine/lab/torture/check"
	"github.com/kagzi/kagzi/engine/lab/torture/history"
)

// dump reads a database that no server has open, with SQL that both kinds understand.
func dump(ctx context.Context, program, dir, url string, periods map[string]int64) (check.Dump, error) {
	db, err := openSQL(url, "ro")
	if err != nil {
		return check.Dump{}, err
	}
	defer db.Close()
	d := &dumping{ctx: ctx, db: db}
	d.runs()
	d.steps()
	d.leases()
	d.schedules(periods)
	if d.err != nil {
		return check.Dump{}, fmt.Errorf("read the database: %w", d.err)
	}
	d.dump.Unsound, err = soundness(ctx, program, dir, url)
	return d.dump, err
}

// openSQL opens a database; mode is that of SQLite, ro or rw.
func openSQL(url, mode string) (*sql.DB, error) {
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		return sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&mode="+mode)
	}
	return sql.Open("pgx", url)
}

// acceptOurs makes Kagzi accept what we wrote directly into an SQLite file whose pages have
// checksums. No server runs.
func acceptOurs(ctx context.Context, program, dir, url string) error {
	if !strings.HasPrefix(url, "sqlite:") {
		return nil
	}
	findings, err := soundness(ctx, program, dir, url, "--accept")
	if err == nil && findings != nil {
		err = errors.New(findings[0])
	}
	return err
}

// soundness returns what `kagzi db check` reports if it fails.
func soundness(ctx context.Context, program, dir, url string, flags ...string) ([]string, error) {
	cmd := exec.CommandContext(ctx, program, append(
		[]string{"db", "check", "--config", "off", "--data-dir", filepath.Join(dir, "check")}, flags...)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), isSetting), "KAGZI_DB_URL="+url)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil, nil
	}
	if cmd.ProcessState == nil {
		return nil, err
	}
	return []string{fmt.Sprintf("kagzi db check (%s): %s", cmd.ProcessState, out)}, nil
}

// dumping is a dump in progress; the first error ends it.
type dumping struct {
	ctx  context.Context
	db   *sql.DB
	dump check.Dump
	err  error
}

// each runs a query and calls take for each row with a function that scans it.
func (d *dumping) each(query string, take func(scan func(...any) error) error) {
	if d.err != nil {
		return
	}
	rows, err := d.db.QueryContext(d.ctx, query)
	if err != nil {
		d.err = err
		return
	}
	defer rows.Close()
	for rows.Next() {
		d.dump.Rows++
		if err := take(rows.Scan); err != nil {
			d.err = err
			return
		}
	}
	d.err = rows.Err()
}

func (d *dumping) runs() {
	const query = `select r.run_id, r.request_id, r.workflow_type, r.task_queue, r.status, r.attempts, r.lease_losses, r.error, coalesce(r.finished_at, 0),
		r.on_failure_workflow, r.failed_run_id, r.schedule_id, p.input, p.output
		from runs r left join payloads p on p.run_id = r.run_id`
	d.each(query, func(scan func(...any) error) error {
		var r check.Run
		var run, failed, schedule id
		var status int
		var failure string
		var input, output []byte
		err := scan(&run, &r.Request, &r.Type, &r.Queue, &status, &r.Attempts, &r.LeaseLosses, &failure, &r.EndedAt,
			&r.OnFailure, &failed, &schedule, &input, &output)
		r.ID, r.FailedRun, r.Schedule, r.Status = string(run), string(failed), string(schedule), runStatuses[status]
		r.Input, r.Output = history.Digest(input), history.Digest(output)
		r.Message = messageOf(failure)
		r.Crashed = r.Status == "FAILED" && strings.Contains(failure, `"crashed"`)
		d.dump.Runs = append(d.dump.Runs, r)
		return err
	})
}

// messageOf returns the message of a stored error; empty if there is none.
func messageOf(failure string) string {
	var f struct{ Message string }
	_ = json.Unmarshal([]byte(failure), &f) // other content has no message, so the check fails
	return history.Digest([]byte(f.Message))
}

// runStatuses are the numbers in the database.
var runStatuses = map[int]string{1: "PENDING", 2: "RUNNING", 3: "SLEEPING", 4: "COMPLETED", 5: "FAILED", 6: "CANCELLED",
	100: "TIMED_OUT", 101: "TERMINATED"}

var stepStatuses = map[int]check.StepStatus{1: "PENDING", 2: "RUNNING", 3: check.Completed, 4: "FAILED"}

func (d *dumping) steps() {
	const query = `select run_id, name, status, case when latest = %s then 1 else 0 end, output from steps`
	yes := "true"
	if d.isSQLite() {
		yes = "1"
	}
	d.each(fmt.Sprintf(query, yes), func(scan func(...any) error) error {
		var s check.Step
		var run id
		var status int
		var output []byte
		err := scan(&run, &s.Name, &status, &s.Latest, &output)
		s.Run, s.Status, s.Output = string(run), stepStatuses[status], history.Digest(output)
		d.dump.Steps = append(d.dump.Steps, s)
		return err
	})
}

func (d *dumping) isSQLite() bool { return fmt.Sprintf("%T", d.db.Driver()) == "*sqlite.Driver" }

func (d *dumping) leases() {
	d.each(`select run_id, token from leases`, func(scan func(...any) error) error {
		var run, token id
		err := scan(&run, &token)
		d.dump.Leases = append(d.dump.Leases, check.Lease{Run: string(run), Token: string(token)})
		return err
	})
}

// schedules reads the schedules that are known by their expressions, and their ticks.
func (d *dumping) schedules(periods map[string]int64) {
	const query = `select schedule_id, cron_expr, created_at, fired, skipped, coalesce(next_fire_at, 0) from schedules`
	d.each(query, func(scan func(...any) error) error {
		var s check.Schedule
		var schedule id
		var cron string
		err := scan(&schedule, &cron, &s.CreatedAt, &s.Fired, &s.Skipped, &s.NextFire)
		s.ID, s.Every = string(schedule), periods[cron]
		d.dump.Schedules = append(d.dump.Schedules, s)
		return err
	})
	d.each(`select schedule_id, tick, run_id, fired_at from fires`, func(scan func(...any) error) error {
		var f check.Fire
		var schedule, run id
		err := scan(&schedule, &f.Tick, &run, &f.FiredAt)
		f.Schedule, f.Run = string(schedule), string(run)
		d.dump.Fires = append(d.dump.Fires, f)
		return err
	})
}

// id scans an id that the database stores as bytes, uuid or text.
type id string

// Scan implements sql.Scanner.
func (i *id) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*i = ""
	case string:
		*i = id(v)
	case []byte:
		u, err := uuid.FromBytes(v)
		if err != nil {
			*i = id(v)
			return nil
		}
		*i = id(u.String())
	default:
		return fmt.Errorf("an id is a %T", value)
	}
	return nil
}
