package installer

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"strings"
	"text/template"
)

//go:embed kagzi.plist.tmpl
var plistText string

var plistTemplate = template.Must(template.New("plist").Parse(plistText))

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
	var b strings.Builder
	err = plistTemplate.Execute(&b, map[string]any{
		"Record": record, "Label": plistValue(label(s.Name)), "Arguments": command,
		"Account": plistValue(s.Account), "Group": plistValue(s.Group),
		"WorkingDirectory": plistValue(s.DataDir),
		"StartLog":         plistValue(joinOn(s.System, s.LogDir, startLogName)),
	})
	if err != nil {
		return "", fmt.Errorf("render the property list: %w", err)
	}
	return b.String(), nil
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
