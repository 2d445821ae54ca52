package profile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/pelletier/go-toml/v2"
)

// document is the clients' part of a file; nil if there is none.
type document struct {
	path     string
	preset   string // the profile that [client] names
	client   layer
	profiles map[string]layer
}

// Names returns the sorted names of the profiles in the file, and the file's path. Both are empty
// if there is no file.
func Names() (names []string, file string, err error) {
	d, err := open()
	if d == nil || err != nil {
		return nil, "", err
	}
	return slices.Sorted(maps.Keys(d.profiles)), d.path, nil
}

// load returns the settings that the file has for a profile, and the profile's name.
func load(name string) (layer, string, error) {
	if name = cmp.Or(name, os.Getenv("KAGZI_PROFILE")); name == Off {
		return nil, "", nil
	}
	d, err := open()
	if err != nil {
		return nil, "", err
	}
	if d == nil {
		if name != "" {
			return nil, "", fmt.Errorf("no profile %q: no settings file%s", name, expected())
		}
		return nil, "", nil
	}
	if name = cmp.Or(name, d.preset); name == "" {
		return d.client, "", nil
	}
	said, found := d.profiles[name]
	if !found {
		return nil, "", fmt.Errorf("no profile %q in %s, which has %s", name, plain(d.path),
			listed(slices.Sorted(maps.Keys(d.profiles))))
	}
	return said.over(d.client), name, nil
}

// listed formats names for an error text.
func listed(names []string) string {
	if len(names) == 0 {
		return "no table [profile.NAME]"
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return strings.Join(quoted, ", ")
}

// expected returns where a file would have been found.
func expected() string {
	if path := defaultFile(); os.Getenv("KAGZI_CONFIG") == "" && path != "" {
		return " at " + plain(path)
	}
	return ""
}

// defaultFile returns the file that is read if none is named; "" if the system has no directory for
// it.
func defaultFile() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "kagzi", "kagzi.toml")
}

// open reads the file; nil if there is none. A file that is named must exist.
func open() (*document, error) {
	path := os.Getenv("KAGZI_CONFIG")
	if path == Off {
		return nil, nil
	}
	named := path != ""
	if path = cmp.Or(path, defaultFile()); path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	return parse(path, fileText(data))
}

// known are the tables of a file. Those of clients declare no keys, so that decoding reports each
// key with its line.
type known struct {
	Server  any                 `toml:"server"` // checked by the server
	Client  struct{}            `toml:"client"`
	Profile map[string]struct{} `toml:"profile"`
}

var tableNames = []string{"server", "client", "profile"}

func parse(path string, data []byte) (*document, error) {
	var content map[string]any
	if err := toml.Unmarshal(data, &content); err != nil {
		return nil, atLine(path, err)
	}
	d := &document{path: path, client: layer{}, profiles: map[string]layer{}}
	if err := d.findProfiles(content); err != nil {
		return nil, fmt.Errorf("%s: %w", plain(path), err)
	}
	err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(new(known))
	keys, found := errors.AsType[*toml.StrictMissingError](err)
	if err != nil && !found {
		return nil, atLine(path, err)
	}
	if !found {
		return d, nil
	}
	for i := range keys.Errors {
		line, _ := keys.Errors[i].Position()
		place := plain(path) + ":" + strconv.Itoa(line)
		if err := d.take(keys.Errors[i].Key(), content, place); err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
	}
	return d, nil
}

// findProfiles collects the names of the profiles.
func (d *document) findProfiles(content map[string]any) error {
	table, there := content["profile"]
	profiles, ok := table.(map[string]any)
	if there && !ok {
		return errors.New(
			"profile is not a table: a profile is [profile.NAME], and profile in [client] selects the default")
	}
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		if _, ok := profiles[name].(map[string]any); !ok {
			return fmt.Errorf("%q in [profile] is not a table: a profile is [profile.NAME]", name)
		}
		if name == Off || name == "" {
			return fmt.Errorf("a profile cannot have the name %q: choose another", name)
		}
		d.profiles[name] = layer{}
	}
	return nil
}

// atLine adds the position to a TOML error.
func atLine(path string, err error) error {
	bad, ok := errors.AsType[*toml.DecodeError](err)
	if !ok {
		return fmt.Errorf("%s: %s", plain(path), plain(err.Error()))
	}
	line, _ := bad.Position()
	return fmt.Errorf("%s:%d: %s", plain(path), line, plain(strings.TrimPrefix(bad.Error(), "toml: ")))
}

// take stores one key with its value.
func (d *document) take(key toml.Key, content map[string]any, place string) error {
	table, _ := content[key[0]].(map[string]any)
	into, rest := d.client, key[1:]
	switch {
	case table == nil:
		return fmt.Errorf("%q is outside the tables: settings of clients belong in [client] or [profile.NAME]",
			key[0])
	case key[0] == "profile":
		into, rest = d.profiles[key[1]], key[2:]
		table, _ = table[key[1]].(map[string]any)
	case key[0] != "client":
		return fmt.Errorf("unknown table %q%s", key[0], instead(key[0], tableNames))
	}
	name := strings.Join(rest, ".")
	if name == "profile" && key[0] == "client" {
		text, ok := table[name].(string)
		if !ok {
			return errors.New("profile: want the name of a profile in quotes")
		}
		d.preset = text
		return nil
	}
	at := slices.IndexFunc(settings, func(s setting) bool { return s.key == name })
	if at < 0 {
		return fmt.Errorf("unknown setting %q%s", name, instead(name, Keys()))
	}
	text, err := settings[at].read(table[name], filepath.Dir(d.path))
	if err != nil {
		return err
	}
	into[name] = value{text, "file " + place}
	return nil
}

// read converts a value of the file, which is in dir, to text.
func (s *setting) read(v any, dir string) (string, error) {
	if s.field == nil {
		on, ok := v.(bool)
		if !ok {
			return "", fmt.Errorf("%s: want true or false", s.key)
		}
		return strconv.FormatBool(on), nil
	}
	text, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%s: want a text in quotes", s.key)
	}
	switch {
	case !s.file || text == "" || filepath.IsAbs(text):
	case os.IsPathSeparator(text[0]): // on Windows, the root of the file's drive
		text = filepath.VolumeName(dir) + filepath.Clean(text)
	default:
		text = filepath.Join(dir, text)
	}
	return text, nil
}

// plain escapes characters that are not printable.
func plain(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// instead suggests the known name nearest to an unknown one, if it is near enough.
func instead(name string, known []string) string {
	nearest, least := "", max(len(name)/2, 2)+1
	for _, candidate := range known {
		if d := distance(name, candidate); d < least {
			nearest, least = candidate, d
		}
	}
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", nearest)
}

// distance returns how many letters must be changed, added or removed to turn a into b. Everything else
// asks package near; this package imports none of ours.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
