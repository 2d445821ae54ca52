package installer

import (
	_ "embed"
	"encoding/xml"
	"strings"
)

//go:embed kagzi.plist.tmpl
var plistText string

// label returns the name of a service in launchd.
func label(name string) string { return "com.github.kagzi." + name }

// plist returns the property list of a Spec for launchd.
func plist(s Spec) (string, error) {
	record, err := s.record()
	if err != nil {
		return "", err
	}
	command := []string{plistValue(s.Binary)}
	for _, arg := range s.arguments() {
		command = append(command, plistValue(arg))
	}
	return fill(plistText, map[string][]string{
		"Record": {record}, "Label": {plistValue(label(s.Name))}, "Arguments": command,
		"Account": some(plistValue(s.Account)), "Group": some(plistValue(s.Group)),
		"WorkingDirectory": {plistValue(s.DataDir)},
		"StartLog":         {plistValue(joinOn(s.System, s.LogDir, startLogName))},
	}), nil
}

// plistValue escapes text for an element. "{{" would start a template action of the library that
// writes the file.
func plistValue(text string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(text)); err != nil { // a strings.Builder never fails
		panic(err)
	}
	return strings.ReplaceAll(b.String(), "{{", "{&#123;")
}
