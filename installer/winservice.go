package installer

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// winService is a service as registered with the Windows service manager. Its JSON is the
// definition.
type winService struct {
	Name        string   `json:"name"`
	DisplayName string   `json:"display_name"`
	Description string   `json:"description"`
	Binary      string   `json:"binary"`
	Arguments   []string `json:"arguments"`
	CommandLine string   `json:"command_line"` // both, as in the registry
	Account     string   `json:"account"`
	StartType   string   `json:"start_type"`
	SIDType     string   `json:"sid_type"` // so that the directories can belong to the service

	Recovery            []winRecovery `json:"recovery"`
	RecoveryResetSecs   uint32        `json:"recovery_reset_secs"`
	RecoverFromBadExits bool          `json:"recover_from_bad_exits"` // not only from crashes

	Directories []winDirectory `json:"directories"`
	Spec        Spec           `json:"spec"`
}

// winRecovery is one recovery action. Windows uses the n-th action after the n-th failure, and the
// last action after all later failures.
type winRecovery struct {
	Action  string `json:"action"`
	DelayMS uint32 `json:"delay_ms"`
}

type winDirectory struct {
	Path string `json:"path"`
	SDDL string `json:"sddl"` // its owner and access list
	Own  bool   `json:"own"`  // named after the service; others that exist are not changed
}

// winServiceOf returns the service of a Spec.
func winServiceOf(s Spec) winService {
	w := winService{
		Name: s.Name, DisplayName: "Kagzi" + instance(s.Name), Description: "Durable workflows: the Kagzi server.",
		Binary: s.Binary, Arguments: s.arguments(),
		Account: orElse(s.Account, `NT SERVICE\`+s.Name), StartType: "automatic", SIDType: "unrestricted",
		Recovery:          []winRecovery{{"restart", 1_000}, {"restart", 10_000}, {"restart", 60_000}},
		RecoveryResetSecs: 24 * 60 * 60, RecoverFromBadExits: true,
		Spec: s,
	}
	w.CommandLine = winCommandLine(append([]string{w.Binary}, w.Arguments...))
	sddl := winSDDL(s.Name)
	for _, d := range []string{dir(s.System, s.Config), s.DataDir, s.LogDir} {
		if !slices.ContainsFunc(w.Directories, func(had winDirectory) bool { return within(s.System, had.Path, d) }) {
			w.Directories = append(w.Directories, winDirectory{d, sddl, strings.HasSuffix(d, `\`+capital(s.Name))})
		}
	}
	return w
}

// winDefinition returns the definition of a Spec for Windows.
func winDefinition(s Spec) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(winServiceOf(s)); err != nil {
		return "", fmt.Errorf("render the service: %w", err)
	}
	return b.String(), nil
}

// winSDDL returns the owner and access list of a service's directories: full access for
// administrators, the system and the service, and nothing inherited.
func winSDDL(name string) string {
	return fmt.Sprintf("O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;%s)", serviceSID(name))
}

// serviceSID returns the security identifier that Windows derives from a service's name: S-1-5-80
// and the SHA-1 of the name in upper case and UTF-16, as five numbers.
func serviceSID(name string) string {
	var upper []byte
	for _, unit := range utf16.Encode([]rune(strings.ToUpper(name))) {
		upper = binary.LittleEndian.AppendUint16(upper, unit)
	}
	sum := sha1.Sum(upper)
	sid := "S-1-5-80"
	for i := 0; i < len(sum); i += 4 {
		sid += fmt.Sprintf("-%d", binary.LittleEndian.Uint32(sum[i:]))
	}
	return sid
}

// winCommandLine joins words so that CommandLineToArgv splits them again.
func winCommandLine(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = winWord(word)
	}
	return strings.Join(quoted, " ")
}

// winWord quotes a word if needed. Backslashes count only before a quote.
func winWord(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\"") {
		return word
	}
	var b strings.Builder
	b.WriteByte('"')
	slashes := 0
	for _, c := range []byte(word) {
		switch c {
		case '\\':
			slashes++
		case '"':
			b.WriteString(strings.Repeat(`\`, slashes+1)) // those before it doubled, and one for itself
			slashes = 0
		default:
			slashes = 0
		}
		b.WriteByte(c)
	}
	b.WriteString(strings.Repeat(`\`, slashes))
	b.WriteByte('"')
	return b.String()
}
