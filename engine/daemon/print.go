package daemon

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kagzi/kagzi/engine/daemon/internal/output"
)

// printConfig writes the settings as a file of settings, with where each comes from behind it. What
// it cannot hold is a comment, and so is the database where it only follows from the data
// directory: a file that named it would hold it there. A password is left out.
func printConfig(w io.Writer, c *Config) error {
	database, _, err := c.database()
	if err != nil {
		return err
	}
	facts := settingsOf(c, opened{database: database, listen: c.Listen, http: c.HTTP})
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

// literal is a value as TOML has it.
func (s *setting) literal(text string) string {
	if s.onOff || s.form == formNumber {
		return text
	}
	return quoted(text)
}

// quoted is a text in quotes, as TOML has it, in which nothing harms a terminal.
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
