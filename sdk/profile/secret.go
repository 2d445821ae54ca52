package profile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
)

// Secret is a string that prints, logs and encodes as "***". Converting it to string reveals it.
type Secret string

const masked = "***"

// String returns "***", or "" for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// GoString returns String.
func (s Secret) GoString() string { return s.String() }

// Format prints String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText returns String, for JSON and other encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// maxKey is longer than any key, in bytes.
const maxKey = 1024

// Key returns the API key: APIKey, or the content of APIKeyFile without surrounding space; "" if
// neither is set. Errors name the source of the key, never its content.
func (p Profile) Key() (Secret, error) {
	where, text := p.Sources["api-key"], string(p.APIKey)
	switch {
	case p.APIKey != "" && p.APIKeyFile != "":
		return "", errors.New("api-key and api-key-file are both set: set one of them")
	case p.APIKeyFile != "":
		data, err := readLimited(p.APIKeyFile)
		if err != nil {
			return "", fmt.Errorf("api-key-file: %w", err)
		}
		where, text = "file "+plain(p.APIKeyFile), string(fileText(data))
	case p.APIKey == "":
		return "", nil
	}
	text = strings.TrimSpace(text)
	if text == "" || len(text) > maxKey || strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r > '~'
	}) {
		return "", fmt.Errorf("API key (%s): want one word that begins with kz_, as `kagzi key create` prints it",
			cmp.Or(where, "given"))
	}
	return Secret(text), nil
}

// readLimited reads little more than a key can have, as the file may be the wrong one.
func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 4*maxKey))
}

// warnings names files with secrets that every user can read. Windows has other permissions.
func (p Profile) warnings() []string {
	if runtime.GOOS == "windows" {
		return nil
	}
	var found []string
	place, inFile := strings.CutPrefix(p.Sources["api-key"], "file ")
	if at := strings.LastIndexByte(place, ':'); inFile && p.APIKey != "" && everybodyReads(place[:at]) {
		found = append(found,
			fmt.Sprintf("%s holds an API key, and every user of this machine can read it: run chmod 600", place[:at]))
	}
	for _, path := range []string{p.APIKeyFile, p.TLSKey} {
		if path != "" && everybodyReads(path) {
			found = append(found,
				fmt.Sprintf("%s is a secret, and every user of this machine can read it: run chmod 600",
					plain(path)))
		}
	}
	return found
}

func everybodyReads(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0
}
