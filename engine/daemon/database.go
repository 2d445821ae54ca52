package daemon

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/engine"
)

func newDatabase(b Backends) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "db",
		Short: "Migrate, check, back up, restore and move a database",
		Long:  "Look after a database, without a server; status, check and backup may be used beside one.",
	}
	cmd.AddCommand(
		databaseCommand("migrate", "Bring the schema up to date, as a server does when it starts", func(ctx context.Context, c Config, w io.Writer) error {
			url, err := c.privateDatabase()
			if err != nil {
				return err
			}
			return migrate(ctx, b, url, w)
		}),
		databaseCommand("status", "Compare the schema with what this program has; change nothing", func(ctx context.Context, c Config, w io.Writer) error {
			url, _, err := c.database()
			if err != nil {
				return err
			}
			return status(ctx, b, url, w)
		}),
		newCheck(b),
		newBackup(b), newRestore(b),
		newDatabaseCopy(b),
	)
	return cmd
}

func databaseCommand(use, short string, run func(context.Context, Config, io.Writer) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
	register(cmd.Flags(), databaseSettings)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, warnings, err := resolve(cmd.Flags(), databaseSettings, system())
		if err != nil {
			return err
		}
		for _, w := range warnings {
			fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
		}
		return run(cmd.Context(), c, cmd.OutOrStdout())
	}
	return cmd
}

func migrate(ctx context.Context, b Backends, url string, w io.Writer) error {
	before, err := b.Status(ctx, url)
	if err != nil {
		return err
	}
	if err := b.Migrate(ctx, url); err != nil {
		return err
	}
	after, err := b.Status(ctx, url)
	if err != nil {
		return err
	}
	for _, name := range before.Pending[:len(before.Pending)-len(after.Pending)] {
		if _, err := fmt.Fprintln(w, "applied", plain(name)); err != nil {
			return err
		}
	}
	return printStatus(w, after)
}

func status(ctx context.Context, b Backends, url string, w io.Writer) error {
	s, err := b.Status(ctx, url)
	if err != nil {
		return err
	}
	return printStatus(w, s)
}

func printStatus(w io.Writer, s engine.SchemaStatus) error {
	text := fmt.Sprintf("schema %d of %d\n", s.Applied, s.Newest)
	for _, name := range s.Pending {
		text += "pending " + plain(name) + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

func newCheck(b Backends) *cobra.Command {
	var accept bool
	cmd := databaseCommand("check", "Look for what is wrong in the data: exit 0 when sound, 1 with one line per finding", func(ctx context.Context, c Config, w io.Writer) error {
		if accept {
			url, err := c.privateDatabase()
			if err != nil {
				return err
			}
			return acceptDatabase(ctx, b, url, w)
		}
		url, _, err := c.database()
		if err != nil {
			return err
		}
		return check(ctx, b, url, w)
	})
	cmd.Long = `Look for what is wrong in the data: exit 0 when sound, 1 with one line per finding. A server may be at work.

Each page of an SQLite file ends with a checksum, which shows damage that SQLite itself does not see. Other programs may read the file, such as
sqlite3; pages that they write have no checksum and count as damaged. After a repair with such a program --accept takes all pages as they are,
damaged ones included, if nothing else is wrong: it writes the file anew and keeps the one that was there. No server may run on it then.
A backup is better, if there is one: kagzi db restore.`
	cmd.Flags().BoolVar(&accept, "accept", false, "take what another program wrote to an SQLite file for right, if nothing else is wrong")
	return cmd
}

func acceptDatabase(ctx context.Context, b Backends, url string, w io.Writer) error {
	kept, findings, err := b.Accept(ctx, url)
	if err != nil {
		return err
	}
	if len(findings) > 0 {
		return printFindings(w, findings)
	}
	_, err = fmt.Fprintf(w, "accepted\nthe file that was there is kept as %s\n", plain(kept))
	return err
}

func check(ctx context.Context, b Backends, url string, w io.Writer) error {
	findings, err := b.Check(ctx, url)
	if err != nil {
		return err
	}
	if len(findings) > 0 {
		return printFindings(w, findings)
	}
	_, err = fmt.Fprintln(w, "sound")
	return err
}

// printFindings is the error that there are some.
func printFindings(w io.Writer, findings []engine.Finding) error {
	for _, f := range findings {
		if _, err := fmt.Fprintf(w, "%s: %s\n", plain(f.Subject), plain(f.Text)); err != nil {
			return err
		}
	}
	return fmt.Errorf("the database is not sound (findings: %d)", len(findings))
}
