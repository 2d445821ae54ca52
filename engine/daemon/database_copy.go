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
		Short: "Move everything to another database, runs in flight included",
		Long: `Move everything to another database, runs in flight included: from SQLite to Postgres, back, or to another one of the same kind.

The source is fenced first: from then on nobody can write to it, so stop the server of an SQLite file before. Servers of a Postgres
source answer that the database was moved, and workers and clients keep trying. Rows go over in batches; a copy that is interrupted,
or killed at any point, goes on where it stopped when the same command is run again. At the end both databases are read back and
compared. Then start the server on the target, at the same address: workers reconnect and their runs go on.

--release URL gives a copy up and lets the source be served again.
--snapshot leaves the source alone and copies what it holds at one moment, as a backup does.

Exit code: 0 when the copy is whole, 5 when there is no source, 6 when another process has a database, it is being moved elsewhere or the
target holds rows, 7 when a database does not answer, 130 when interrupted, else 1.

URLs are sqlite:PATH and postgres://USER@HOST/DATABASE; a password is better kept in ~/.pgpass than in a command.`,
		Example: `  kagzi db copy --from sqlite:/var/lib/kagzi/kagzi.db --to postgres://kagzi@db.internal/kagzi
  kagzi db copy --release sqlite:/var/lib/kagzi/kagzi.db`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&p.From, "from", "", "database to take the rows of; default is that of the server's settings")
	flags.StringVar(&p.To, "to", "",
		"empty database to bring them to, or one that this copy has begun to fill; default as with --from")
	flags.BoolVar(&p.Snapshot, "snapshot", false, "leave the source alone, and its servers at work")
	flags.StringVar(&release, "release", "", "source to let be served again; default as with --from")
	flags.BoolVar(&force, "force", false, "with --release: although the copy is whole, which nobody has served")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case release != "" && (p.From != "" || p.To != "" || p.Snapshot):
			return usagef("--release goes with --force only")
		}
		for _, url := range []*string{&p.From, &p.To, &release} {
			if *url != "default" {
				continue
			}
			var err error
			if *url, err = ownDatabase(false); err != nil {
				return err
			}
		}
		switch {
		case release != "":
			return releaseDatabase(cmd.Context(), b, release, force, cmd.OutOrStdout())
		case p.From == "" || p.To == "":
			return usagef(
				"want --from URL and --to URL, such as --from sqlite:kagzi.db --to postgres://kagzi@localhost/kagzi")
		case force:
			return usagef("--force goes with --release only")
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
	_, err := fmt.Fprintf(w, "released: %s may be served again\nnext      kagzi server --db %s\n",
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
				"interrupted: the same command goes on where this one stopped; `kagzi db copy --release URL` gives the copy up")
		}
		return errors.Join(ctx.Err(), ifNoDatabase(ctx, b, p.From, err))
	}
	return printCopy(out, p, report, time.Since(begun))
}

// copyInterval is how often a copy says how far it is.
const copyInterval = 2 * time.Second

// copyLines says how far a copy is, a line now and then.
type copyLines struct {
	w           io.Writer
	begun, last time.Time
	verifying   bool
}

func (l *copyLines) tell(p engine.CopyProgress) {
	now := time.Now()
	if p.Verifying && !l.verifying {
		l.verifying, l.last = true, now
		fmt.Fprintln(l.w, "all rows arrived; reading both databases back")
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

// rate is megabytes in a second.
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
		fmt.Fprintf(&text, "this copy had ended before: %s is whole\n", output.Plain(to))
	default:
		fmt.Fprintf(&text, "%10d  rows in all, the same in both databases, in %s\n", r.Rows(),
			took.Round(time.Millisecond))
	}
	if !p.Snapshot {
		fmt.Fprintf(&text, `next      start the server on the new database, at the address that workers know:
            kagzi server --db %s
          the old one stays as it is and takes no writes; keep it until you have seen the new one at work
`, word(to))
	}
	_, err := io.WriteString(w, text.String())
	return err
}
