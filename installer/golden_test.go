package installer

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files again")

// specs are the Specs of the golden files, by name.
func specs() map[string]Spec {
	usual := func(system string, user bool) Spec {
		p := foreign(system)
		s := p.layout(Spec{System: system, User: user, Name: defaultName, Binary: p.binary(user), Copied: true})
		s.Group = s.Account
		return s
	}
	nasty := func(system string) Spec {
		s := Spec{
			System: system, Name: "box-2", Account: "kagzi", Group: "kagzi", Listen: "127.0.0.1:0",
			Binary: "/opt/my app 100% $HOME/<kägzi> & co/kagzi", Config: "/etc/ka gzi%n/[x]*?/$conf;#.toml",
			DataDir: "/srv/dätä & %h <$x> \"y\" 'z'\\w", DatabaseURLFile: "/etc/ka gzi/%i $db&.url",
			TLSCert: "/etc/ssl/%n $x/tls.crt", TLSKey: "/root/100% $y.key", ClientCA: "/etc/ssl/c a.pem",
			Private: system == "linux",
			Args:    []string{"--log-level", `a "b" %c $d ${e} \f 'g' {{h}} <i> & j--k ü 日本`, ""},
		}
		switch system {
		case "windows":
			s.Account, s.Group = "", ""
			s.Binary, s.Config = `C:\Program Files\ka "gzi" 100%\kagzi.exe`, `D:\Ünï & <co>\%TEMP%\kagzi.toml`
			s.DataDir, s.LogDir, s.DatabaseURLFile = `D:\Ünï & <co>\dät $a\`, `E:\logs\it's`, `D:\x y\db.url`
			s.TLSCert, s.TLSKey, s.ClientCA = `C:\t l s\%a%.crt`, `C:\t l s\$b.key`, `C:\c&a.pem`
			s.Args = append(s.Args, `\\host\share\`, `a\\"b`, `c d\`)
		case "darwin":
			s.Binary = `/opt/my "app" 100% $HOME/<kägzi> & 'co' \w/kagzi`
			s.LogDir = "/Library/Logs/Ka & gzi"
		}
		return s
	}
	all := map[string]Spec{"windows": usual("windows", false), "windows-nasty": nasty("windows")}
	for _, system := range []string{"linux", "darwin"} {
		all[system], all[system+"-user"], all[system+"-nasty"] = usual(system, false), usual(system, true),
			nasty(system)
	}
	user := nasty("linux")
	user.User, user.Account, user.Group, user.Private = true, "", "", false
	all["linux-user-nasty"] = user
	return all
}

func TestDefinitionsAreWhatTheGoldenFilesHold(t *testing.T) {
	for name, s := range specs() {
		t.Run(name, func(t *testing.T) {
			if err := s.check(); err != nil {
				t.Fatalf("the settings are refused: %v", err)
			}
			p, err := planOf(s)
			if err != nil {
				t.Fatal(err)
			}
			var plan strings.Builder
			if err := p.describe(&plan, "the definition", "", true); err != nil {
				t.Fatal(err)
			}
			before, _, _ := strings.Cut(plan.String(), "would register")
			wantGolden(t, name+extension(s.System), p.definition)
			wantGolden(t, name+".plan", before)
		})
	}
}

func TestAPackageHoldsWhatInstallWouldWrite(t *testing.T) {
	files, err := PackagedFiles("/usr/bin/kagzi")
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for _, f := range files {
		fmt.Fprintf(&list, "%s %04o settings=%v\n", f.Path, f.Mode, f.Settings)
	}
	wantGolden(t, "package.list", list.String())
	wantGolden(t, "package.service", files[0].Content)
	s := foreign("linux").layout(Spec{System: "linux", Name: defaultName, Binary: "/usr/bin/kagzi"})
	p, err := planOf(s)
	if err != nil {
		t.Fatal(err)
	}
	if p.definition != files[0].Content {
		t.Error(
			"the unit differs from that of kagzi service install, which then would not take the package's for its own")
	}
}

func extension(system string) string {
	return map[string]string{"linux": ".service", "darwin": ".plist", "windows": ".json"}[system]
}

func wantGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), see -update:\n%s", name, diff)
	}
}

func TestAPatternFindsThePathThatItIsOf(t *testing.T) {
	for _, name := range []string{"/etc/kagzi/kagzi.env", "/etc/ka gzi%n/[x]*?/a]b.env",
		`/etc/ka\gzi/\[x\]/kagzi.env`} {
		pattern := strings.ReplaceAll(unitGlob(name), "%%", "%") // as systemd sees it
		if found, err := path.Match(pattern, name); err != nil || !found {
			t.Errorf("%s finds %s: %v, %v", pattern, name, found, err)
		}
	}
}

func TestADefinitionCarriesItsSpec(t *testing.T) {
	for name, s := range specs() {
		p, err := planOf(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := specOf(p.definition)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(s, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, text := range []string{"", "{}", "[Unit]\nDescription=mine\n", "# " + recordMark + "nonsense"} {
		if s, err := specOf(text); !errors.Is(err, errNoRecord) {
			t.Errorf("specOf(%q) = %+v, %v, want errNoRecord", text, s, err)
		}
	}
}

func TestTheLibraryFindsNothingToReplaceInADefinition(t *testing.T) {
	for name, s := range specs() {
		p, err := planOf(s)
		if err != nil {
			t.Fatal(err)
		}
		if s.System != "windows" && strings.Contains(p.definition, "{{") {
			t.Errorf("%s holds {{", name)
		}
	}
}

// plistDict parses a property list's dictionary: the element names and texts of each key.
func plistDict(t *testing.T, text string) map[string][]string {
	t.Helper()
	found, key, depth, name := map[string][]string{}, "", 0, ""
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("no XML: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			depth++
			name = e.Name.Local
			if depth == 3 && name != "key" {
				found[key] = append(found[key], name)
			}
		case xml.EndElement:
			depth--
			name = ""
		case xml.CharData:
			switch {
			case depth == 3 && name == "key":
				key = string(e)
			case name != "" && depth >= 3:
				found[key] = append(found[key], string(e))
			}
		}
	}
}

func TestAPropertyListSaysWhatLaunchdMustKnow(t *testing.T) {
	for name, s := range specs() {
		if s.System != "darwin" {
			continue
		}
		text, err := plist(s)
		if err != nil {
			t.Fatal(err)
		}
		dict := plistDict(t, text)
		var words []string
		for _, w := range append([]string{s.Binary}, s.arguments()...) {
			if w != "" { // an empty element has no text
				words = append(words, w)
			}
		}
		got := slices.DeleteFunc(slices.Clone(dict["ProgramArguments"]), func(w string) bool {
			return strings.TrimSpace(w) == ""
		})
		if diff := cmp.Diff(append([]string{"array"}, words...), got); diff != "" {
			t.Errorf("%s: arguments (-want +got):\n%s", name, diff)
		}
		for key, want := range map[string]string{
			"RunAtLoad": "true", "KeepAlive": "dict", "ThrottleInterval": "integer", "Label": "string"} {
			if v := dict[key]; len(v) == 0 || v[0] != want {
				t.Errorf("%s: %s = %q, want %s", name, key, v, want)
			}
		}
	}
}

func TestAServiceSIDIsTheOneThatWindowsDerives(t *testing.T) {
	const want = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464" // the same on every Windows
	if got := serviceSID("TrustedInstaller"); got != want {
		t.Errorf("SID of TrustedInstaller = %s, want %s", got, want)
	}
}

// argv splits a command line like CommandLineToArgvW, after the first word.
func argv(line string) (words []string) {
	var word strings.Builder
	quoted, inWord, slashes := false, false, 0
	flush := func() { word.WriteString(strings.Repeat(`\`, slashes)); slashes = 0 }
	for _, c := range []byte(line) {
		switch {
		case c == '\\':
			slashes++
			inWord = true
		case c == '"':
			word.WriteString(strings.Repeat(`\`, slashes/2))
			if slashes%2 == 1 {
				word.WriteByte('"')
			} else {
				quoted = !quoted
			}
			slashes, inWord = 0, true
		case (c == ' ' || c == '\t') && !quoted:
			flush()
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			flush()
			word.WriteByte(c)
			inWord = true
		}
	}
	flush()
	if inWord {
		words = append(words, word.String())
	}
	return words
}

func TestWindowsTakesACommandLineApartIntoTheSameWords(t *testing.T) {
	words := []string{"plain", "", "a b", `c:\d\`, `c:\d e\`, `say "hi"`, `\"`, `\\" \\`, "\ttab", `"`}
	if got := argv(winCommandLine(words)); !slices.Equal(got, words) {
		t.Errorf("words = %q, want %q", got, words)
	}
	for _, s := range specs() {
		if s.System != "windows" {
			continue
		}
		w := winServiceOf(s)
		if got := argv(w.CommandLine); !slices.Equal(got[1:], w.Arguments) {
			t.Errorf("arguments = %q, want %q", got[1:], w.Arguments)
		}
		text, err := winDefinition(s)
		if err != nil || !json.Valid([]byte(text)) {
			t.Errorf("definition is no JSON: %v", err)
		}
	}
}
