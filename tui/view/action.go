package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gdamore/tcell/v2"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/view/internal/format"
	"github.com/kagzi/kagzi/tui/view/internal/terminal"
	"github.com/kagzi/kagzi/tui/widget"
)

// Action is something that a person can do. The one list of them drives the keys, the hints, the
// help and the commands, so that none of these can say what another does not.
type Action struct {
	Name    string   // as a command: "cancel"
	Aliases []string // other names of the command
	Keys    []string // as widget.KeyName has them
	Args    string   // of the command, for the help: "[ID]"
	Whole   bool     // what follows its name is one argument, as it was typed
	Short   string   // for the hints: "cancel"; empty is Name
	Help    string   // one sentence without a full stop
	Group   Group
	Changes bool // something on the server: not there when looking only
	// Least is the role of a key that may do what changes something; unset: an operator's. Those above it may too.
	Least    kagziv1.KeyRole
	Hint     int // place in the hints, from 1; 0: in the help alone
	Run      func(args []string) error
	Complete func(text string) []string // what the argument may be, given its beginning
	// Off says why it cannot be done now; empty when it can. nil: it always can.
	Off func() string
}

// Group is where the help lists an action.
type Group uint8

const (
	GroupView   Group = iota // of the page that is open
	GroupAct                 // changes something
	GroupMove                // around in it
	GroupGo                  // to another page
	GroupGlobal              // everywhere
)

var groupTitles = [...]string{GroupView: "This view", GroupAct: "Act", GroupMove: "Move", GroupGo: "Go to",
	GroupGlobal: "Everywhere"}

// short is what the hints say.
func (a *Action) short() string {
	if a.Short != "" {
		return a.Short
	}
	return a.Name
}

// registry is the actions that are there now: those of the page before those of the program.
type registry []*Action

// without leaves out what changes something.
func (r registry) without(changes bool) registry {
	if !changes {
		return r
	}
	return slices.DeleteFunc(slices.Clone(r), func(a *Action) bool { return a.Changes })
}

// byKey is the action of a key.
func (r registry) byKey(key string) *Action {
	for _, a := range r {
		if slices.Contains(a.Keys, key) {
			return a
		}
	}
	return nil
}

// byName is the action of a command.
func (r registry) byName(name string) *Action {
	for _, a := range r {
		if a.Name == name || slices.Contains(a.Aliases, name) {
			return a
		}
	}
	return nil
}

// names are the commands that begin so, in the order of the alphabet; aliases only where the text is one.
func (r registry) names(prefix string) []string {
	var names []string
	for _, a := range r {
		if a.Run != nil && strings.HasPrefix(a.Name, prefix) {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// hints are the actions to name at the bottom, the page's own first.
func (r registry) hints() registry {
	list := slices.DeleteFunc(slices.Clone(r), func(a *Action) bool {
		return a.Hint == 0 || len(a.Keys) == 0 || a.Off != nil && a.Off() != ""
	})
	slices.SortStableFunc(list, func(a, b *Action) int { return cmp.Compare(a.Hint, b.Hint) })
	return list
}

// key takes every key: what is on top gets it, else the actions that are there, else the page moves with it.
func (a *App) key(event *tcell.EventKey) *tcell.EventKey {
	if event.Key() == terminal.WakeKey {
		a.posts.Run()
		return nil
	}
	name := widget.KeyName(event)
	if name == "ctrl-c" || a.cramped() && name == "q" {
		a.quit()
		return nil
	}
	if a.cramped() { // nobody sees what a key would do
		return nil
	}
	if l := a.layer(); l != nil {
		l.Key(event)
		return nil
	}
	if action := a.actions().byKey(name); action != nil {
		a.perform(action, nil)
		return nil
	}
	if p := a.trails.top(); p != nil {
		p.Key(event)
	}
	return nil
}

// actions are what can be done now: on this page, and everywhere.
func (a *App) actions() registry {
	var list registry
	if p := a.trails.top(); p != nil {
		list = append(list, p.Actions()...)
		list = append(list, a.shared(p)...)
	}
	list = append(list, a.global()...).without(a.options.ReadOnly)
	taken := map[string]bool{}
	for _, action := range list {
		a.forbid(action)
		if keys, ok := a.options.Config.Keys[action.Name]; ok {
			action.Keys = keys
		}
		// a page's own go first
		action.Keys = slices.DeleteFunc(slices.Clone(action.Keys), func(key string) bool { return taken[key] })
		for _, key := range action.Keys {
			taken[key] = true
		}
	}
	return list
}

// perform does an action, or says why not.
func (a *App) perform(action *Action, args []string) {
	if action.Off != nil {
		if why := action.Off(); why != "" {
			a.complain(errors.New(why))
			return
		}
	}
	if err := action.Run(args); err != nil {
		a.complain(err)
	}
}

// command does what was typed after ":".
func (a *App) command(line string) error {
	words := split(line)
	if len(words) == 0 {
		return nil
	}
	action := a.actions().byName(words[0])
	if action == nil {
		if near := nearest(words[0], a.actions().names("")); near != "" {
			return fmt.Errorf("there is no command %q; did you mean %s?", words[0], near)
		}
		return fmt.Errorf("there is no command %q; ? lists them", words[0])
	}
	if action.Args == "" && len(words) > 1 {
		return fmt.Errorf("%s takes no argument, got %q", action.Name, strings.Join(words[1:], " "))
	}
	if action.Off != nil {
		if why := action.Off(); why != "" {
			return errors.New(why)
		}
	}
	if action.Whole {
		return action.Run(behind(line))
	}
	return action.Run(words[1:])
}

// behind is what follows the first word of a line, as it was typed; none where that is all.
func behind(line string) []string {
	line = strings.TrimSpace(line)
	if at := strings.IndexAny(line, " \t"); at >= 0 {
		return []string{strings.TrimSpace(line[at:])}
	}
	return nil
}

// completions are the lines that a command that is being typed may become.
func (a *App) completions(line string) []string {
	name, rest, found := strings.Cut(line, " ")
	list := a.actions()
	if !found {
		return list.names(name)
	}
	action := list.byName(name)
	if action == nil || action.Complete == nil {
		return nil
	}
	var lines []string
	for _, candidate := range action.Complete(rest) {
		lines = append(lines, name+" "+candidate)
	}
	return lines
}

// split cuts a line into words; quotes hold a word together.
func split(line string) []string {
	var words []string
	var word strings.Builder
	quote, begun := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, begun = r, true
		case r == ' ' || r == '\t':
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

// nearest is the name that a mistyped one was probably meant to be; empty when none is near.
func nearest(typed string, names []string) string {
	best, distance := "", 3
	for _, name := range names {
		if d := render.Distance(typed, name); d < distance {
			best, distance = name, d
		}
	}
	return best
}

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
		help = format.Pad(help, helpText)
	}
	return widget.Line{Hang: 2 + helpKeys, Cells: []render.Cell{
		{Text: "  " + format.Pad(keys, helpKeys), Style: render.Busy}, {Text: help}, {Text: command, Style: render.Dim},
	}}
}
