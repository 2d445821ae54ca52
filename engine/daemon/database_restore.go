package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/cron"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
)

func newRestore(b Backends) *cobra.Command {
	p := engine.RestoreParams{}
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Fill a database that no server uses with a backup",
		Long: `Fill a database with a backup. No server may be running on it. The backup is checked before and the
result after.

On SQLite, a database with rows is replaced only with --force; its file is kept under another name.
On Postgres, a restore fills an absent or empty schema and replaces nothing, also with --force. Name
a new schema with ?schema=NAME in the URL, or create a new database. Nothing is ever dropped.

To keep things from happening twice, all leases end, so that results of workers from before are
rejected and their runs are handed out again; workers are offline until they register again; and
schedule ticks since the backup are skipped, because they have probably fired, unless --refire is
given. This includes schedules that were paused at the backup, because they may have been resumed
since. Steps recorded after the backup run again: on SQLite the command lists the runs that had
progressed in the database that it replaces.

Exit code: 0 restored, 5 no such file, 6 the database is in use, or has rows (on SQLite: and --force
is not given), 7 the database does not answer, 1 other errors.`,
		Example: `  kagzi db restore --dry-run /var/backups/kagzi-monday.db
  kagzi db restore --force /var/backups/kagzi-monday.db
  kagzi db restore --db 'postgres://kagzi@localhost/kagzi?schema=restored' kagzi-monday.db`,
		Args: cobra.ExactArgs(1),
	}
	register(cmd.Flags(), databaseSettings)
	cmd.Flags().BoolVar(&p.Force, "force", false,
		"replace an SQLite database that has rows, and accept a backup with contradictions")
	cmd.Flags().BoolVar(&p.Refire, "refire", false, "fire schedule ticks since the backup as missed ticks")
	cmd.Flags().BoolVar(&p.DryRun, "dry-run", false, "print what would be done and lost, without changes")
	document := documentFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		asked, err := document()
		if err != nil {
			return err
		}
		c, err := readDatabase(cmd, b)
		if err != nil {
			return err
		}
		p.File, p.Next, p.Now = args[0], nextTick, engine.Micros(time.Now())
		if _, err := os.Stat(p.File); err != nil { // before a directory is created for nothing
			return ifMissing(p.File, err)
		}
		database := c.privateDatabase
		if p.DryRun {
			database = func() (string, error) {
				url, _, err := c.database()
				return url, err
			}
		}
		if p.URL, err = database(); err != nil {
			return err
		}
		return restore(cmd.Context(), b, p, printer{cmd.OutOrStdout(), asked})
	}
	return cmd
}

// nextTick returns the first tick of a schedule after now, and how many came due before.
func nextTick(s *engine.Schedule, now time.Time) (next time.Time, skipped int64, err error) {
	ticks, err := cron.Parse(s.CronExpr, s.TimeZone)
	if err != nil {
		return time.Time{}, 0, err
	}
	_, skipped = ticks.Missed(s.NextFireAt.Add(-time.Second), now, 0)
	next, _ = ticks.Next(now)
	return next, skipped, nil
}

func restore(ctx context.Context, b Backends, p engine.RestoreParams, to printer) error {
	done, err := b.Restore(ctx, p)
	if err != nil && len(done.Findings) == 0 {
		return ifMissing(p.File, err)
	}
	if done.Database == "" {
		done.Database = withoutPassword(p.URL)
	}
	return errors.Join(to.print(restorationText(&done, &p, err == nil), restorationDocument(&done, &p, err == nil)),
		err)
}

type runDocument struct {
	RunID       string `json:"run_id"`
	Namespace   string `json:"namespace"`
	Type        string `json:"workflow_type"`
	Status      string `json:"status"` // in the replaced database; DELETED: no longer there
	Steps       int64  `json:"steps"`  // in the replaced database
	BackupSteps *int64 `json:"backup_steps,omitempty"`
}

func runDocuments(runs []engine.RunBeyond, both bool) []runDocument {
	list := make([]runDocument, len(runs))
	for i, r := range runs {
		list[i] = runDocument{RunID: r.ID.String(), Namespace: r.Namespace, Type: r.Type, Status: statusOf(&r),
			Steps: r.Steps}
		if both {
			list[i].BackupSteps = &runs[i].Had
		}
	}
	return list
}

func statusOf(r *engine.RunBeyond) string {
	if r.Gone {
		return "DELETED"
	}
	return r.Status.String()
}

// restorationDocument is the result of a restore as JSON.
func restorationDocument(done *engine.Restoration, p *engine.RestoreParams, ok bool) any {
	return struct {
		Restored  bool           `json:"restored"`
		Database  string         `json:"database"`
		Kept      string         `json:"kept,omitempty"`
		Empty     bool           `json:"was_empty"` // nothing was replaced
		Backup    backupDocument `json:"backup"`
		Leases    int            `json:"leases_ended"`
		Workers   int            `json:"workers_taken_offline"`
		Ticks     int64          `json:"ticks_skipped"`
		Beyond    []runDocument  `json:"runs_beyond"`
		Only      []runDocument  `json:"runs_lost"`
		KeysBack  []string       `json:"keys_valid_again"`
		Unknown   string         `json:"not_compared,omitempty"`
		Findings  []string       `json:"findings"`
		Schedules int            `json:"schedules_moved_on"`
	}{
		ok && !p.DryRun, done.Database, done.Kept, done.Empty, documentOf(&done.Backup), done.Changed.Leases,
		done.Changed.Workers,
		done.Changed.Ticks,
		runDocuments(done.Progress.Beyond, true), runDocuments(done.Progress.Only, false),
		append([]string{}, done.Progress.KeysBack...), done.Progress.Unknown, findingLines(done.Findings),
		done.Changed.Schedules,
	}
}

// linesShown is how many runs of a kind the text names; JSON has all.
const linesShown = 100

func restorationText(done *engine.Restoration, p *engine.RestoreParams, ok bool) string {
	var t strings.Builder
	t.WriteString(backupText(&done.Backup))
	for _, f := range done.Findings {
		fmt.Fprintf(&t, "%s: %s\n", output.Plain(f.Subject), output.Plain(f.Text))
	}
	if !ok {
		return t.String()
	}
	what := "restored"
	if p.DryRun {
		what = "would restore"
	}
	fmt.Fprintf(&t, "\n%s %s\n", what, output.Plain(done.Database))
	if done.Kept != "" {
		fmt.Fprintf(&t, "the old database is kept as %s\n", output.Plain(done.Kept))
	}
	fmt.Fprintf(&t, "leases ended: %d; workers set offline: %d; schedule ticks skipped: %d\n",
		done.Changed.Leases, done.Changed.Workers, done.Changed.Ticks)
	if done.Empty {
		t.WriteString("the database was empty: nothing is replaced\n")
		return t.String()
	}
	progress := &done.Progress
	if progress.Unknown != "" {
		fmt.Fprintf(&t, "the old database could not be compared: %s\n", output.Plain(progress.Unknown))
	}
	fmt.Fprintf(&t, "open runs that had progressed since the backup: %d\n", len(progress.Beyond))
	for _, r := range progress.Beyond[:min(len(progress.Beyond), linesShown)] {
		fmt.Fprintf(&t, "  %s  %s/%s  was %s with %d steps, has %d\n", r.ID, output.Plain(r.Namespace),
			output.Plain(r.Type), statusOf(&r), r.Steps, r.Had)
	}
	more(&t, len(progress.Beyond))
	fmt.Fprintf(&t, "runs not in the backup: %d\n", len(progress.Only))
	for _, r := range progress.Only[:min(len(progress.Only), linesShown)] {
		fmt.Fprintf(&t, "  %s  %s/%s  was %s with %d steps\n", r.ID, output.Plain(r.Namespace), output.Plain(r.Type),
			statusOf(&r), r.Steps)
	}
	more(&t, len(progress.Only))
	for _, name := range progress.KeysBack {
		fmt.Fprintf(&t, "key %s was revoked after the backup and is valid again: revoke it again\n",
			output.Plain(name))
	}
	return t.String()
}

func more(t *strings.Builder, n int) {
	if n > linesShown {
		fmt.Fprintf(t, "  and %d more; list them with -o json\n", n-linesShown)
	}
}
