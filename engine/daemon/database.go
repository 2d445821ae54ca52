package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
)

func newDatabase(b Backends) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "db",
		Short: "Migrate, check, back up, restore and move a database",
		Long: `Look after a database, without a server; status, check and backup may be used beside one.

Exit code: 0 when it worked, 1 when not, 5 when the database or the backup is not there, 6 when another process has the database or what is
there already stands against it, 7 when no database answers, 64 when the command is wrong, 130 when interrupted.`,
	}
	for _, c := range []*cobra.Command{newMigrate(b), newStatus(b), newCheck(b), newBackup(b), newRestore(b),
		newDatabaseCopy(b)} {
		cmd.AddCommand(codedCommand(c))
	}
	return cmd
}

// databaseCommand makes a command about the database that its settings name, with -o.
func databaseCommand(use, short string, run func(context.Context, Config, printer) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
	register(cmd.Flags(), databaseSettings)
	document := documentFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asked, err := document()
		if err != nil {
			return err
		}
		c, err := readDatabase(cmd)
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, printer{cmd.OutOrStdout(), asked})
	}
	return cmd
}

// documentFlag adds -o to a command; what it returns says whether a document is asked for.
func documentFlag(cmd *cobra.Command) func() (bool, error) {
	output := cmd.Flags().StringP("output", "o", "table", "table or json")
	return func() (bool, error) {
		if *output != "table" && *output != "json" {
			return false, usagef("--output %q: want table or json", *output)
		}
		return *output == "json", nil
	}
}

// printer writes what came of a command: for people, or as one JSON document.
type printer struct {
	w        io.Writer
	document bool
}

func (p printer) print(text string, document any) error {
	if p.document {
		return json.NewEncoder(p.w).Encode(document)
	}
	_, err := io.WriteString(p.w, text)
	return err
}

func newMigrate(b Backends) *cobra.Command {
	cmd := databaseCommand("migrate", "Bring the schema up to date, as a server does when it starts",
		func(ctx context.Context, c Config, p printer) error {
			url, err := c.privateDatabase()
			if err != nil {
				return err
			}
			return migrate(ctx, b, url, p)
		})
	cmd.Long =
		`Bring the schema of a database up to date, as a server does when it starts. A database file that is not there is made, and so is
a schema that the URL of a Postgres database names with ?schema=. While others use a table that is to be changed, it tries for up to 5 minutes.

Exit code: 0 when the schema is this program's, 6 when another process has the database, it was moved to another one or a newer program has
used it, 7 when no database answers, else 1.`
	return cmd
}

func newStatus(b Backends) *cobra.Command {
	cmd := databaseCommand("status", "Compare the schema with what this program has; change nothing",
		func(ctx context.Context, c Config, p printer) error {
			url, _, err := c.database()
			if err != nil {
				return err
			}
			return status(ctx, b, url, p)
		})
	cmd.Long =
		`Compare the schema of a database with what this program has. It changes nothing, and a server may be at work.

Exit code: 0 when a server of this program can be started on the database, which brings the schema up to date by itself where some is
pending; 5 when there is no database file yet; 6 when the database is not to be served by this program, because it was moved to another one,
a copy into it has not ended, or a newer program has used it; 7 when no database answers.`
	return cmd
}

func migrate(ctx context.Context, b Backends, url string, p printer) error {
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
	var text strings.Builder
	document := migrationDocument{Applied: []string{}, statusDocument: documentOfStatus(url, &after)}
	for _, name := range before.Pending[:len(before.Pending)-len(after.Pending)] {
		fmt.Fprintln(&text, "applied", output.Plain(name))
		document.Applied = append(document.Applied, name)
	}
	return p.print(text.String()+statusText(&after), document)
}

func status(ctx context.Context, b Backends, url string, p printer) error {
	s, err := b.Status(ctx, url)
	if err != nil {
		return err
	}
	text := statusText(&s)
	if s.Missing {
		text = "" // all of it is pending, which says less than that there is none
	}
	return errors.Join(p.print(text, documentOfStatus(url, &s)), unserved(url, &s))
}

// ifNoDatabase says of what failed because there is no database no more than that.
func ifNoDatabase(ctx context.Context, b Backends, url string, err error) error {
	if err == nil || engine.KindOf(err) == engine.KindUnavailable { // who does not answer is not asked twice
		return err
	}
	if s, failure := b.Status(ctx, url); failure == nil && s.Missing {
		return unserved(url, &s)
	}
	return err
}

// unserved says why no server can be started on a database as it stands; nil where one can.
func unserved(url string, s *engine.SchemaStatus) error {
	switch {
	case s.Missing:
		return &exitError{code: exitNotFound, err: fmt.Errorf(
			"there is no database %s: a server makes it, or kagzi db migrate", output.Plain(withoutPassword(url)))}
	case s.Refusal != "":
		return &exitError{code: exitConflict, err: errors.New(s.Refusal)}
	case s.Applied > s.Newest:
		return &exitError{code: exitConflict, err: fmt.Errorf(
			"schema %d was made by a newer program, this one knows up to %d: use that program", s.Applied, s.Newest)}
	}
	return nil
}

func statusText(s *engine.SchemaStatus) string {
	text := fmt.Sprintf("schema %d of %d\n", s.Applied, s.Newest)
	if s.Place != "" {
		text += "in the Postgres schema " + output.Plain(s.Place) + "\n"
	}
	for _, name := range s.Pending {
		text += "pending " + output.Plain(name) + "\n"
	}
	for _, warning := range s.Warnings {
		text += "warning: " + output.Plain(warning) + "\n"
	}
	return text
}

// statusDocument is a SchemaStatus as JSON.
type statusDocument struct {
	Database string   `json:"database"`
	Exists   bool     `json:"exists"`
	Schema   int      `json:"schema"`
	Newest   int      `json:"newest_schema"`
	Pending  []string `json:"pending"`
	Place    string   `json:"postgres_schema,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Standing string   `json:"standing,omitempty"` // "moved", "filling"
	Refusal  string   `json:"refusal,omitempty"`
}

type migrationDocument struct {
	Applied []string `json:"applied"`
	statusDocument
}

func documentOfStatus(url string, s *engine.SchemaStatus) statusDocument {
	return statusDocument{Database: withoutPassword(url), Exists: !s.Missing, Schema: s.Applied, Newest: s.Newest,
		Pending: append([]string{}, s.Pending...), Place: s.Place, Warnings: s.Warnings, Standing: s.Standing, Refusal: s.Refusal}
}

func newCheck(b Backends) *cobra.Command {
	var accept bool
	cmd := databaseCommand("check",
		"Look for what is wrong in the data: exit 0 when sound, 1 with one line per finding",
		func(ctx context.Context, c Config, p printer) error {
			if accept {
				url, err := c.privateDatabase()
				if err != nil {
					return err
				}
				return acceptDatabase(ctx, b, url, p)
			}
			url, _, err := c.database()
			if err != nil {
				return err
			}
			return check(ctx, b, url, p)
		})
	cmd.Long =
		`Look for what is wrong in the data. A server may be at work. Of a database that was moved to another one, or that a copy has not filled
yet, it says so too.

Exit code: 0 when it is sound, 1 with one line per finding, 5 when there is no database file, 6 with --accept when another process has it, 7
when no database answers.

Each page of an SQLite file ends with a checksum, which shows damage that SQLite itself does not see. Other programs may read the file, such as
sqlite3; pages that they write have no checksum and count as damaged. After a repair with such a program --accept takes all pages as they are,
damaged ones included, if nothing else is wrong: it writes the file anew and keeps the one that was there. No server may run on it then.
A backup is better, if there is one: kagzi db restore.`
	cmd.Flags().BoolVar(&accept, "accept", false,
		"take what another program wrote to an SQLite file for right, if nothing else is wrong")
	return cmd
}

func acceptDatabase(ctx context.Context, b Backends, url string, p printer) error {
	kept, findings, err := b.Accept(ctx, url)
	if err != nil {
		return err
	}
	d := checkDocument{Database: withoutPassword(url), Kept: kept}
	return d.print(p, findings, fmt.Sprintf("accepted\nthe file that was there is kept as %s\n", output.Plain(kept)))
}

func check(ctx context.Context, b Backends, url string, p printer) error {
	s, err := b.Status(ctx, url)
	if err == nil && s.Missing {
		return unserved(url, &s)
	}
	findings, err := b.Check(ctx, url) // where the status could not be had, it says why
	if err != nil {
		return err
	}
	d := checkDocument{Database: withoutPassword(url), Place: s.Place, Standing: s.Standing, Refusal: s.Refusal}
	return d.print(p, findings, "sound\n")
}

// checkDocument is what a check found, as JSON.
type checkDocument struct {
	Database string   `json:"database"`
	Sound    bool     `json:"sound"`
	Findings []string `json:"findings"`
	Place    string   `json:"postgres_schema,omitempty"`
	Kept     string   `json:"kept,omitempty"` // by --accept: the file that was there
	Standing string   `json:"standing,omitempty"`
	Refusal  string   `json:"refusal,omitempty"`
}

// print writes the findings, or that the database is sound; then why it is not to be served, if it
// is not. That there are findings is an error.
func (d *checkDocument) print(p printer, findings []engine.Finding, sound string) error {
	d.Sound, d.Findings = len(findings) == 0, findingLines(findings)
	text := sound
	if !d.Sound {
		text = ""
		for _, line := range d.Findings {
			text += output.Plain(line) + "\n"
		}
	}
	if d.Place != "" {
		text += "in the Postgres schema " + output.Plain(d.Place) + "\n"
	}
	if d.Refusal != "" {
		text += "not to be served: " + output.Plain(d.Refusal) + "\n"
	}
	if err := p.print(text, d); err != nil || d.Sound {
		return err
	}
	return fmt.Errorf("the database is not sound (findings: %d)", len(findings))
}

// findingLines are findings as documents have them.
func findingLines(findings []engine.Finding) []string {
	lines := []string{}
	for _, f := range findings {
		lines = append(lines, f.Subject+": "+f.Text)
	}
	return lines
}
