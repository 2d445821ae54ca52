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
		Long: `Maintain a database, without a server. status, check and backup also work next to a running server.

Exit code: 0 success, 1 failure, 5 the database or backup does not exist, 6 the database is in use
or conflicts with the request, 7 the database does not answer, 64 wrong usage, 130 interrupted.`,
	}
	for _, c := range []*cobra.Command{newMigrate(b), newStatus(b), newCheck(b), newBackup(b), newRestore(b),
		newDatabaseCopy(b)} {
		cmd.AddCommand(codedCommand(c))
	}
	return cmd
}

// databaseCommand returns a command on the database of its settings, with -o.
func databaseCommand(b Backends, use, short string, run func(context.Context, Config, printer) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
	register(cmd.Flags(), databaseSettings)
	document := documentFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asked, err := document()
		if err != nil {
			return err
		}
		c, err := readDatabase(cmd, b)
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, printer{cmd.OutOrStdout(), asked})
	}
	return cmd
}

// documentFlag adds -o to a command; the returned function reports whether JSON is wanted.
func documentFlag(cmd *cobra.Command) func() (bool, error) {
	output := cmd.Flags().StringP("output", "o", "table", "table or json")
	return func() (bool, error) {
		if *output != "table" && *output != "json" {
			return false, usagef("--output %q: must be table or json", *output)
		}
		return *output == "json", nil
	}
}

// printer writes the result of a command, for people or as one JSON document.
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
	cmd := databaseCommand(b, "migrate", "Update the schema, as a server does at startup",
		func(ctx context.Context, c Config, p printer) error {
			url, err := c.privateDatabase()
			if err != nil {
				return err
			}
			return migrate(ctx, b, url, p)
		})
	cmd.Long =
		`Update the schema of a database, as a server does at startup. A missing SQLite file is created, and
so is a schema that the URL of a Postgres database names with ?schema=; the database itself must
exist. While other sessions use a table that must change, it retries for up to 5 minutes.

Exit code: 0 the schema is up to date, 6 the database is in use, was moved to another one or was
used by a newer version, 7 the database does not answer, 1 other errors.`
	return cmd
}

func newStatus(b Backends) *cobra.Command {
	cmd := databaseCommand(b, "status", "Compare the schema with this version's, without changes",
		func(ctx context.Context, c Config, p printer) error {
			url, _, err := c.database()
			if err != nil {
				return err
			}
			return status(ctx, b, url, p)
		})
	cmd.Long =
		`Compare the schema of a database with the one of this version. Nothing is changed, and a server may
be running.

Exit code: 0 a server of this version can start on the database (it applies pending changes itself),
5 there is no SQLite file yet, 6 this version cannot serve the database, because it was moved to
another one, a copy into it has not finished, or a newer version has used it, 7 the database does
not answer.`
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
		text = "" // all migrations are pending, which says less than that there is no database
	}
	return errors.Join(p.print(text, documentOfStatus(url, &s)), unserved(url, &s))
}

// ifNoDatabase replaces an error caused by a missing database with one that says just that.
func ifNoDatabase(ctx context.Context, b Backends, url string, err error) error {
	if err == nil || engine.KindOf(err) == engine.KindUnavailable { // do not ask twice if it does not answer
		return err
	}
	if s, failure := b.Status(ctx, url); failure == nil && s.Missing {
		return unserved(url, &s)
	}
	return err
}

// unserved returns why no server can start on a database; nil if one can.
func unserved(url string, s *engine.SchemaStatus) error {
	switch {
	case s.Missing:
		return &exitError{code: exitNotFound, err: fmt.Errorf(
			"no database %s: start a server or run kagzi db migrate to create it", output.Plain(withoutPassword(url)))}
	case s.Refusal != "":
		return &exitError{code: exitConflict, err: errors.New(s.Refusal)}
	case s.Applied > s.Newest:
		return &exitError{code: exitConflict, err: fmt.Errorf(
			"schema %d was made by a newer version, this one knows up to %d: use the newer version",
			s.Applied, s.Newest)}
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
		Pending: append([]string{}, s.Pending...), Place: s.Place, Warnings: s.Warnings, Standing: s.Standing,
		Refusal: s.Refusal}
}

func newCheck(b Backends) *cobra.Command {
	var accept bool
	cmd := databaseCommand(b, "check",
		"Check the data: exit 0 if sound, 1 with one line per finding",
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
		`Check the data for damage and contradictions. A server may be running. The command also reports that
a database was moved to another one, or that a copy into it has not finished.

Exit code: 0 sound, 1 with one line per finding, 5 no SQLite file, 6 with --accept if the database
is in use, 7 the database does not answer, 64 --accept on Postgres.

Each page of an SQLite file ends with a checksum, which finds damage that SQLite itself does not
see. Other programs, such as sqlite3, may read the file, but pages they write have no valid checksum.
The command tells such a file, for example a copy by sqlite3 or Litestream, from a damaged one where
it can. --accept accepts all pages as they are, including damaged ones, if nothing else is wrong: it
rewrites the file and keeps the old one. No server may be running. If there is a backup, restoring it
is better: kagzi db restore.`
	cmd.Flags().BoolVar(&accept, "accept", false,
		"accept what another program wrote to an SQLite file, if nothing else is wrong")
	return cmd
}

func acceptDatabase(ctx context.Context, b Backends, url string, p printer) error {
	kept, findings, err := b.Accept(ctx, url)
	if err != nil {
		return err
	}
	d := checkDocument{Database: withoutPassword(url), Kept: kept}
	return d.print(p, findings, fmt.Sprintf("accepted\nthe old file is kept as %s\n", output.Plain(kept)))
}

func check(ctx context.Context, b Backends, url string, p printer) error {
	s, err := b.Status(ctx, url)
	if err == nil && s.Missing {
		return unserved(url, &s)
	}
	findings, err := b.Check(ctx, url) // if there is no status, Check reports why
	if err != nil {
		return err
	}
	d := checkDocument{Database: withoutPassword(url), Place: s.Place, Standing: s.Standing, Refusal: s.Refusal}
	return d.print(p, findings, "sound\n")
}

// checkDocument is the result of a check as JSON.
type checkDocument struct {
	Database string   `json:"database"`
	Sound    bool     `json:"sound"`
	Findings []string `json:"findings"`
	Place    string   `json:"postgres_schema,omitempty"`
	Kept     string   `json:"kept,omitempty"` // with --accept: the old file
	Standing string   `json:"standing,omitempty"`
	Refusal  string   `json:"refusal,omitempty"`
}

// print writes the findings, or that the database is sound, and then why it cannot be served, if
// so. Findings are an error.
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
		text += "cannot be served: " + output.Plain(d.Refusal) + "\n"
	}
	if err := p.print(text, d); err != nil || d.Sound {
		return err
	}
	return fmt.Errorf("the database is not sound (findings: %d)", len(findings))
}

// findingLines returns findings for a document.
func findingLines(findings []engine.Finding) []string {
	lines := []string{}
	for _, f := range findings {
		lines = append(lines, f.Subject+": "+f.Text)
	}
	return lines
}
