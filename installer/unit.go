package installer

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed kagzi.service.tmpl
var unitText string

var unitTemplate = template.Must(template.New("unit").Parse(unitText))

// unit returns the systemd unit of a Spec.
func unit(s Spec) (string, error) {
	record, err := s.record()
	if err != nil {
		return "", err
	}
	command := []string{unitWord(s.Binary)} // systemd expands no variables in it
	for _, arg := range s.arguments() {
		command = append(command, unitArgument(arg))
	}
	view := map[string]any{
		"Flags": s.flags(), "Edited": "", "Record": record, "User": s.User, "Dynamic": s.dynamic(),
		"Account": s.Account, "Group": s.Group,
		"Description":      "Kagzi durable workflows" + instance(s.Name),
		"ExecStart":        strings.Join(command, " "),
		"EnvironmentFile":  unitGlob(joinOn(s.System, dir(s.System, s.Config), "kagzi.env")),
		"WorkingDirectory": unitLine(s.DataDir),
		"StateDirectory":   "", "ReadWritePaths": unitWord(s.DataDir),
	}
	if s.DataDir == joinOn(s.System, "/var/lib", s.Name) {
		view["StateDirectory"] = s.Name
	}
	if s.Name != defaultName {
		view["Edited"] = " " + s.Name
	}
	if s.User {
		view["Edited"] = " --user " + s.Name
		view["WorkingDirectory"] = "-" + unitLine(s.DataDir) // created by the first start
	}
	var credentials []string
	for _, c := range s.credentials() {
		credentials = append(credentials, c.name+":"+unitLine(c.path))
	}
	view["Credentials"] = credentials
	var b strings.Builder
	if err := unitTemplate.Execute(&b, view); err != nil {
		return "", fmt.Errorf("render the unit: %w", err)
	}
	return b.String(), nil
}

// instance returns the name of a service for display, if it is not the default.
func instance(name string) string {
	if name == defaultName {
		return ""
	}
	return " (" + name + ")"
}

// unitLine escapes text as the whole value of a setting, where % starts a specifier. Spec.check
// rejects what cannot be written this way.
func unitLine(text string) string { return strings.ReplaceAll(text, "%", "%%") }

// unitGlob escapes a path where systemd expects a pattern.
func unitGlob(path string) string {
	return strings.NewReplacer("%", "%%", `\`, `\\`, "*", "[*]", "?", "[?]", "[", "[[]").Replace(path)
}

// unitWord quotes text as one word of a setting that takes several. "{{" would start a template
// action of the library that writes the unit.
func unitWord(text string) string {
	if text != "" && strings.Trim(text, wordLetters) == "" {
		return text
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "{{", `{\x7b`).Replace(text) + `"`
}

const wordLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=,@+"

// unitArgument quotes an argument of a command line, in which $ starts a variable.
func unitArgument(arg string) string { return unitWord(strings.ReplaceAll(arg, "$", "$$")) }
