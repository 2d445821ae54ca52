package installer

import (
	_ "embed"
	"strings"
)

//go:embed kagzi.service.tmpl
var unitText string

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
	edited, workingDirectory, target := "", unitLine(s.DataDir), "multi-user.target"
	if s.Name != defaultName {
		edited = " " + s.Name
	}
	if s.User {
		edited = " --user " + s.Name
		workingDirectory = "-" + workingDirectory // created by the first start
		target = "default.target"
	}
	view := map[string][]string{
		"Flags": {s.flags()}, "Edited": {edited}, "Record": {record},
		"Description":      {"Kagzi durable workflows" + instance(s.Name)},
		"ExecStart":        {strings.Join(command, " ")},
		"WorkingDirectory": {workingDirectory}, "Target": {target},
	}
	if !s.User {
		view["System"] = []string{""}
		view["EnvironmentFile"] = []string{unitGlob(joinOn(s.System, dir(s.System, s.Config), "kagzi.env"))}
		for _, c := range s.credentials() {
			view["Credentials"] = append(view["Credentials"], c.name+":"+unitLine(c.path))
		}
		if s.dynamic() {
			view["Dynamic"] = []string{""}
		} else {
			view["Account"], view["Group"] = []string{s.Account}, []string{s.Group}
		}
		if s.DataDir == joinOn(s.System, "/var/lib", s.Name) {
			view["StateDirectory"] = []string{s.Name}
		} else {
			view["ReadWritePaths"] = []string{unitWord(s.DataDir)}
		}
	}
	return fill(unitText, view), nil
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
