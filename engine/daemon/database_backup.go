package daemon

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
)

// Remote is how `kagzi db backup` reaches a running server; main sets it.
type Remote struct {
	// Flags adds the client flags to a command, including --address and -o.
	Flags func(*cobra.Command)
	// Fetch writes a backup of the database of the server at address, or of the server that the
	// flags name if address is empty.
	Fetch func(cmd *cobra.Command, address string, to io.Writer) error
}

func newBackup(b Backends) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up a database, also while a server is running",
		Long: `Back up a whole database to one new file. The file is consistent, readable by its owner only, and
verified before it gets its name. With --address, and if a server is running on an SQLite file, the
server makes the backup, which needs an admin's key if the server requires keys. Otherwise it is
made directly from the database; on Postgres also next to its servers.

--verify checks a backup for damage and contradictions: exit 0 sound, 1 not sound, 5 no such file.

Exit code: 0 the backup is made, 5 there is no database, 6 FILE exists or the database was moved to
another one, 7 the database or server does not answer, 1 other errors.`,
		Example: `  kagzi db backup /var/backups/kagzi-monday.db
  kagzi db backup --address kagzi.example.com:50051 --tls kagzi.db
  kagzi db backup --verify /var/backups/kagzi-monday.db`,
		Args: cobra.ExactArgs(1),
	}
	register(cmd.Flags(), databaseSettings)
	if b.Remote.Flags != nil {
		b.Remote.Flags(cmd)
	}
	verify := cmd.Flags().Bool("verify", false, "check the backup FILE instead of making one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := readDatabase(cmd)
		if err != nil {
			return err
		}
		if *verify {
			return verifyBackup(cmd, b, args[0])
		}
		made, of, err := makeBackup(cmd, b, &c, args[0])
		if err != nil {
			return err
		}
		return printBackup(cmd, &made, of)
	}
	return cmd
}

// readDatabase returns the settings that select the database.
func readDatabase(cmd *cobra.Command) (Config, error) {
	c, warnings, err := resolve(cmd.Flags(), databaseSettings, system())
	if err == nil {
		warnings = append(warnings, c.placeWarnings()...)
	}
	for _, w := range warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
	}
	return c, err
}

// makeBackup lets the server make the backup if one is running. of names the source.
func makeBackup(cmd *cobra.Command, b Backends, c *Config, file string) (made engine.Backup, of string, err error) {
	ctx := cmd.Context()
	if cmd.Flags().Changed("address") {
		made, err = b.Receive(ctx, file, func(w io.Writer) error { return b.Remote.Fetch(cmd, "", w) })
		return made, "the server at " + cmd.Flags().Lookup("address").Value.String(), err
	}
	url, _, err := c.database()
	if err != nil {
		return made, "", err
	}
	holder, err := b.Holder(url)
	if err != nil {
		return made, "", err
	}
	if address := servingOn(holder); address != "" && b.Remote.Fetch != nil {
		made, err := b.Receive(ctx, file, func(w io.Writer) error { return b.Remote.Fetch(cmd, address, w) })
		if err == nil || engine.KindOf(err) == engine.KindExists || ctx.Err() != nil {
			return made, withoutPassword(url), err
		}
		fmt.Fprintf(cmd.ErrOrStderr(),
			"warning: the server at %s made no backup (%s); making it directly from the database\n",
			output.Plain(address), output.Plain(err.Error()))
	}
	if err := refuseLeft(cmd, b, url); err != nil {
		return made, "", err
	}
	made, err = b.Backup(ctx, url, file)
	return made, withoutPassword(url), ifNoDatabase(ctx, b, url, err)
}

// refuseLeft refuses to back up a database that was moved away or is not completely copied yet: it
// would silently hold old rows. If the database was named explicitly it only warns.
func refuseLeft(cmd *cobra.Command, b Backends, url string) error {
	s, err := b.Status(cmd.Context(), url)
	if err != nil || s.Standing == "" {
		return nil // making the backup reports what is wrong
	}
	if cmd.Flags().Changed("db") {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", output.Plain(s.Refusal))
		return nil
	}
	return unserved(url, &s)
}

// servingOn returns the server's address from the text written by tellHolder; empty if it has none.
func servingOn(holder string) string {
	_, address, found := strings.Cut(holder, "serving on ")
	if !found {
		return ""
	}
	address, _, _ = strings.Cut(address, ",")
	if _, _, err := net.SplitHostPort(strings.TrimSpace(address)); err != nil {
		return ""
	}
	return dialable(strings.TrimSpace(address))
}

func verifyBackup(cmd *cobra.Command, b Backends, file string) error {
	made, findings, err := b.Verify(cmd.Context(), file)
	if err != nil {
		return ifMissing(file, err)
	}
	unsound := error(nil)
	if len(findings) > 0 {
		unsound = fmt.Errorf("the backup is not sound (findings: %d)", len(findings))
	}
	if asJSON(cmd) {
		d := verifiedDocument{backupDocument: documentOf(&made), Sound: unsound == nil,
			Findings: findingLines(findings)}
		return errors.Join(json.NewEncoder(cmd.OutOrStdout()).Encode(d), unsound)
	}
	for _, f := range findings {
		if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", output.Plain(f.Subject),
			output.Plain(f.Text)); err != nil {
			return err
		}
	}
	if unsound != nil {
		return unsound
	}
	return printBackup(cmd, &made, "")
}

// verifiedDocument is the result of --verify as JSON.
type verifiedDocument struct {
	backupDocument
	Sound    bool     `json:"sound"`
	Findings []string `json:"findings"`
}

// ifMissing replaces an error about a missing file with one that says just that.
func ifMissing(file string, err error) error {
	if _, absent := os.Stat(file); errors.Is(err, fs.ErrNotExist) && errors.Is(absent, fs.ErrNotExist) {
		return &exitError{code: exitNotFound, err: fmt.Errorf("no such file: %s", output.Plain(file))}
	}
	return err
}

// backupDocument is a backup as JSON.
type backupDocument struct {
	File     string     `json:"file"`
	Of       string     `json:"of,omitempty"` // the database, or the server that made it
	TakenAt  *time.Time `json:"taken_at"`     // null: a copy that was not made by a backup
	Bytes    int64      `json:"bytes"`
	SHA256   string     `json:"sha256"`
	Schema   int        `json:"schema"`
	Runs     int64      `json:"runs"`
	OpenRuns int64      `json:"open_runs"`
	Steps    int64      `json:"steps"`
}

func documentOf(b *engine.Backup) backupDocument {
	d := backupDocument{File: b.File, Bytes: b.Bytes, SHA256: hex.EncodeToString(b.SHA256[:]), Schema: b.Schema,
		Runs: b.Rows.Runs, OpenRuns: b.Rows.OpenRuns, Steps: b.Rows.Steps}
	if !b.TakenAt.IsZero() {
		d.TakenAt = &b.TakenAt
	}
	return d
}

// printBackup prints the contents of a backup, and its source of, unless empty.
func printBackup(cmd *cobra.Command, b *engine.Backup, of string) error {
	if asJSON(cmd) {
		d := documentOf(b)
		d.Of = of
		return json.NewEncoder(cmd.OutOrStdout()).Encode(d)
	}
	text := backupText(b)
	if of != "" {
		text = "of       " + output.Plain(of) + "\n" + text
	}
	_, err := io.WriteString(cmd.OutOrStdout(), text)
	return err
}

func backupText(b *engine.Backup) string {
	taken := "unknown"
	if !b.TakenAt.IsZero() {
		taken = moment(b.TakenAt)
	}
	return fmt.Sprintf(
		"backup   %s\ntaken    %s\nholds    %d runs (%d open), %d step attempts, schema %d\nsize     %d bytes\nSHA-256  %x\n",
		output.Plain(b.File), taken, b.Rows.Runs, b.Rows.OpenRuns, b.Rows.Steps, b.Schema, b.Bytes, b.SHA256)
}

// asJSON reports whether -o asks for a document. YAML parsers can read JSON.
func asJSON(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("output")
	return f != nil && f.Value.String() != "table"
}
