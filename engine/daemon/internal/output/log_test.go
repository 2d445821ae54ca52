package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode"
)

// nasty has what users may put into names and errors to take over a terminal or a log.
var nasty = []string{
	"\x1b[2J\x1b[31m", "\x1b]0;title\x07", "a\nlevel=ERROR msg=forged", "\r\n", "\x00", "\x7f", "\u009b2J",
	"\u202eevil", "\u2066x\u2069",
	"\u2028", "\u200b", "\xff\xfe", "\U000e0001", `"}{"msg":"forged"`, strings.Repeat("long ", 1000),
	"plain ünïcode 日本",
}

func TestALogLineHoldsNoControlCharacter(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		for _, text := range nasty {
			var out bytes.Buffer
			log := NewLog(&out, slog.LevelInfo, format)
			log.Info(text, "run", text, "error", errors.New(text))
			line, ended := strings.CutSuffix(out.String(), "\n")
			if !ended || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%s log of %q holds control characters: %q", format, text, line)
			}
			if format != "json" {
				continue
			}
			var record map[string]string
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Errorf("log of %q is no JSON: %v", text, err)
			}
			if want := strings.ToValidUTF8(text, "\ufffd"); len(text) != 2 && record["run"] != want {
				t.Errorf("log of %q reads %q", text, record["run"])
			}
		}
	}
}

func TestTheLevelDecidesWhatIsLogged(t *testing.T) {
	var out bytes.Buffer
	log := NewLog(&out, slog.LevelWarn, "text")
	log.Info("quiet")
	log.Warn("loud")
	if text := out.String(); strings.Contains(text, "quiet") || !strings.Contains(text, "loud") {
		t.Errorf("log = %q, want the warning only", text)
	}
}

func TestPlainTextIsFitForALineOfATerminal(t *testing.T) {
	for _, text := range nasty {
		if got := Plain(text); strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("plain(%q) = %q", text, got)
		}
	}
	if got, want := Plain("a\x1b[b it's"), `a\x1b[b it's`; got != want {
		t.Errorf("plain = %q, want %q", got, want)
	}
}
