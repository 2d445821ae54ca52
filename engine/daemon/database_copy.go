package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
)

func newDatabaseCopy(b Backends) *cobra.Command {
	var p engine.CopyParams
	var release string
	var force bool
	cmd := &cobra.Command{
		Use:   "copy --from URL --to URL",
		Short: "Move everything to another database, including runs in progress",
		Long: `Move everything to another database, including runs in progress: from SQLite to Postgres, back, or
to another database of the same kind.

The source is fenced first: from then on it accepts no writes, so stop the server of an SQLite file
before. Servers of a Postgres source answer that the database was moved, and workers and clients
keep retrying. Rows are copied in batches. If the copy is interrupted or killed, run the same
command again to continue. At the end both databases are read back and compared. Then start the
server on the target, at the same address: workers reconnect and their runs continue.

--release URL abandons a copy, so that the source can be served again.
--snapshot does not fence the source and copies its state at one moment, as a backup does.

Exit code: 0 the copy is complete, 5 no source, 6 a database is in use, the source is being moved
elsewhere or the target has rows, 7 a database does not answer, 130 interrupted, 1 other errors.

URLs are sqlite:PATH and postgres://USER@HOST/DATABASE. Keep a password in ~/.pgpass rather than in
a command.`,
		Example: `  kagzi db copy --from sqlite:/var/lib/kagzi/kagzi.db --to postgres://kagzi@db.internal/kagzi
  kagzi db copy --release sqlite:/var/lib/kagzi/kagzi.db`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&p.From, "from", "", "source database; default is the one of the server settings")
	flags.StringVar(&p.To, "to", "",
		"target database, empty or partly filled by this copy; default as in --from")
	flags.BoolVar(&p.Snapshot, "snapshot", false, "copy without fencing the source or stopping its servers")
	flags.StringVar(&release, "release", "",
		"abandon the copy of this source, so that it can be served again; default as in --from")
	flags.BoolVar(&force, "force", false,
		"with --release: even if the copy is complete (use only if no server has run on it)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case release != "" && (p.From != "" || p.To != "" || p.Snapshot):
			return usagef("--release can only be combined with --force")
		}
		for _, url := range []*string{&p.From, &p.To, &release} {
			if *url != "default" {
				*url = safeURL(*url)
				continue
			}
			var err error
			if *url, err = ownDatabase(cmd.Context(), b, false); err != nil {
				return err
			}
		}
		switch {
		case release != "":
			return releaseDatabase(cmd.Context(), b, release, force, cmd.OutOrStdout())
		case p.From == "" || p.To == "":
			return usagef(
				"--from and --to are required, such as --from sqlite:kagzi.db --to postgres://kagzi@localhost/kagzi")
		case force:
			return usagef("--force needs --release")
		}
		if err := makeOwnFolder(p.To); err != nil {
			return err
		}
		p.Now = time.Now()
		return copyDatabase(cmd.Context(), b, p, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

func releaseDatabase(ctx context.Context, b Backends, url string, force bool, w io.Writer) error {
	if err := b.Release(ctx, url, force); err != nil {
		return ifNoDatabase(ctx, b, url, err)
	}
	_, err := fmt.Fprintf(w, "released: %s can be served again\nnext      kagzi server --db %s\n",
		output.Plain(withoutPassword(url)), word(withoutPassword(url)))
	return err
}

func copyDatabase(ctx context.Context, b Backends, p engine.CopyParams, out, messages io.Writer) error {
	begun := time.Now()
	progress := &copyLines{w: messages, begun: begun, last: begun}
	p.Progress = progress.tell
	report, err := b.Copy(ctx, p)
	if err != nil {
		if ctx.Err() != nil && !p.Snapshot {
			fmt.Fprintln(messages,
				"interrupted: run the same command again to continue; kagzi db copy --release URL abandons the copy")
		}
		return errors.Join(ctx.Err(), ifNoDatabase(ctx, b, p.From, err))
	}
	return printCopy(out, p, report, time.Since(begun))
}

// copyInterval is the time between two progress lines.
const copyInterval = 2 * time.Second

// copyLines prints the progress of a copy.
type copyLines struct {
	w           io.Writer
	begun, last time.Time
	verifying   bool
}

func (l *copyLines) tell(p engine.CopyProgress) {
	now := time.Now()
	if p.Verifying && !l.verifying {
		l.verifying, l.last = true, now
		fmt.Fprintln(l.w, "all rows copied; reading both databases back")
		return
	}
	if now.Sub(l.last) < copyInterval || p.Rows == 0 {
		return
	}
	l.last = now
	if p.Verifying {
		fmt.Fprintf(l.w, "compared %d of %d rows (%s)\n", p.Rows, p.Total, output.Plain(p.Table))
		return
	}
	fmt.Fprintf(l.w, "copied %d of %d rows (%s), %s\n", p.Rows, p.Total, output.Plain(p.Table),
		rate(p.Bytes, now.Sub(l.begun)))
}

// rate formats megabytes per second.
func rate(bytes int64, d time.Duration) string {
	return fmt.Sprintf("%.1f MB/s", float64(bytes)/1e6/max(d.Seconds(), 1e-3))
}

func printCopy(w io.Writer, p engine.CopyParams, r engine.CopyReport, took time.Duration) error {
	var text strings.Builder
	for _, t := range r.Tables {
		if t.Rows > 0 {
			fmt.Fprintf(&text, "%10d  %s\n", t.Rows, output.Plain(t.Table))
		}
	}
	to := withoutPassword(p.To)
	switch {
	case r.Before:
		fmt.Fprintf(&text, "this copy was already complete: %s\n", output.Plain(to))
	default:
		fmt.Fprintf(&text, "%10d  rows in total, equal in both databases, in %s\n", r.Rows(),
			took.Round(time.Millisecond))
	}
	if !p.Snapshot {
		fmt.Fprintf(&text, `next      start the server on the new database, at the address that workers use:
            kagzi server --db %s
          the old database is unchanged and takes no writes; keep it until the new one has proven itself
`, word(to))
	}
	_, err := io.WriteString(w, text.String())
	return err
}
