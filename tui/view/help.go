package view

import (
	"strings"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

const (
	helpKeys = 16 // cells of the keys
	helpText = 50 // of what they do; where the command behind it does not fit into the line, it comes to stand below
)

// help lists what can be done here, from the same actions that the keys are for.
func (a *App) help() {
	l := widget.NewLines(a.theme)
	name := ""
	if p := a.trails.top(); p != nil {
		name = p.Name()
	}
	l.SetLines(helpLines(a.actions()))
	a.reader("Help: "+name, l, nil)
}

// moving are the keys that widgets take by themselves.
var moving = []struct{ keys, help string }{
	{"j k ↑ ↓", "down and up"},
	{"g G home end", "to the first and the last"},
	{"ctrl-d ctrl-u", "half a page down and up"},
	{"pgdn pgup", "a page down and up"},
	{"h l ← →", "sideways"},
	{"enter", "open what is under the cursor"},
}

// helpLines are all actions by their groups: keys, what they do, the command that does it too.
func helpLines(actions registry) []widget.Line {
	var lines []widget.Line
	seen := map[string]bool{}
	for group, title := range groupTitles {
		var part []widget.Line
		for _, action := range actions {
			if action.Group != Group(group) || seen[action.Name] {
				continue
			}
			seen[action.Name] = true
			part = append(part, helpLine(strings.Join(action.Keys, " "), commandOf(action), action.Help))
		}
		if Group(group) == GroupMove {
			for _, m := range moving {
				part = append(part, helpLine(m.keys, "", m.help))
			}
		}
		if len(part) == 0 {
			continue
		}
		if len(lines) > 0 {
			lines = append(lines, widget.Line{})
		}
		lines = append(append(lines, widget.TextLine(title, render.Strong)), part...)
	}
	return lines
}

// commandOf is how an action is typed.
func commandOf(a *Action) string {
	command := ":" + a.Name
	if a.Args != "" {
		command += " " + a.Args
	}
	return command
}

func helpLine(keys, command, help string) widget.Line {
	if command != "" {
		help = pad(help, helpText)
	}
	return widget.Line{Hang: 2 + helpKeys, Cells: []render.Cell{
		{Text: "  " + pad(keys, helpKeys), Style: render.Busy}, {Text: help}, {Text: command, Style: render.Dim},
	}}
}

// pad fills text up with blanks to a width, and always ends in one.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-render.Width(text), 1))
}
