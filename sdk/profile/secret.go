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

// Secret is a text that shows itself to nobody: printed, logged or encoded it is "***". A
// conversion to string gives it away.
type Secret string

const masked = "***"

// String is "***", or "" for no secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// GoString is String.
func (s Secret) GoString() string { return s.String() }

// Format prints String, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText is String, for JSON and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// maxKey is more than any key has, in bytes.
const maxKey = 1024

// Key is the API key: APIKey, or what stands in APIKeyFile; "" when there is neither. The blanks
// around it are taken off. The error says where it should have been, and never what was there.
func (p Profile) Key() (Secret, error) {
	where, text := p.Sources["api-key"], string(p.APIKey)
	switch {
	case p.APIKey != "" && p.APIKeyFile != "":
		return "", errors.New("api-key and api-key-file are both there: give one of them")
	case p.APIKeyFile != "":
		data, err := readLimited(p.APIKeyFile)
		if err != nil {
			return "", fmt.Errorf("api-key-file: %w", err)
		}
		where, text = "file "+plain(p.APIKeyFile), string(data)
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

// readLimited reads at most a little more than a key can have: the file may be the wrong one.
func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 2*maxKey))
}

// warnings name the files with secrets that everybody can read. Windows keeps its permissions elsewhere.
func (p Profile) warnings() []string {
	if runtime.GOOS == "windows" {
		return nil
	}
	var found []string
	place, inFile := strings.CutPrefix(p.Sources["api-key"], "file ")
	if at := strings.LastIndexByte(place, ':'); inFile && p.APIKey != "" && everybodyReads(place[:at]) {
		found = append(found,
			fmt.Sprintf("%s holds an API key, and everybody on this machine can read it: chmod 600 it", place[:at]))
	}
	for _, path := range []string{p.APIKeyFile, p.TLSKey} {
		if path != "" && everybodyReads(path) {
			found = append(found, fmt.Sprintf("%s is a secret, and everybody on this machine can read it: chmod 600 it",
				plain(path)))
		}
	}
	return found
}

func everybodyReads(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0
}
