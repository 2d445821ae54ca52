package daemon

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kagzi/kagzi/engine/daemon/internal/output"
)

// printConfig writes the settings as a settings file, with the origin of each. Settings that a file
// cannot hold are comments; so is the database if it follows from the data directory, so that the
// file does not pin it. Passwords are left out.
func printConfig(w io.Writer, c *Config) error {
	database, _, err := c.database()
	if err != nil {
		return err
	}
	facts := settingsOf(c, opened{database: database, listen: c.Listen, http: c.HTTP, agq: c.AGQ})
	lines, width := make([]string, len(facts)), 0
	for i, f := range facts {
		s := &serverSettings[i]
		lines[i] = s.name + " = " + s.literal(f.Value)
		if s.name == "config" || f.Value == "" || s.name == "db" && c.DB == "" {
			lines[i] = "# " + lines[i]
		}
		width = max(width, utf8.RuneCountInString(lines[i]))
	}
	text := "[server]\n"
	for i, f := range facts {
		source := output.Plain(f.Source)
		if f.Name == "db" && f.Value != database {
			source += ", shown without its password"
		}
		text += fmt.Sprintf("%-*s  # %s\n", width, lines[i], source)
	}
	_, err = io.WriteString(w, text)
	return err
}

// literal returns a value as TOML.
func (s *setting) literal(text string) string {
	if s.onOff || s.form == formNumber {
		return text
	}
	return quoted(text)
}

// quoted returns a quoted TOML string that is safe for a terminal.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
