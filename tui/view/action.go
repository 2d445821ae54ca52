package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gdamore/tcell/v2"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/near"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/view/internal/terminal"
	"github.com/kagzi/kagzi/tui/widget"
)

// Action is something that a person can do. One list of actions drives the keys, the hints, the
// help and the commands, so that they always agree.
type Action struct {
	Name    string   // the command: "cancel"
	Aliases []string // other names of the command
	Keys    []string // as widget.KeyName writes them
	Args    string   // arguments of the command, for the help: "[ID]"
	Whole   bool     // the rest of the line is one argument, as typed
	Short   string   // for the hints: "cancel"; empty: Name
	Help    string   // one sentence without a full stop
	Group   Group
	Changes bool // changes something on the server: hidden in read-only mode
	// Least is the lowest role that may do an action with Changes; unset: operators.
	Least    kagziv1.KeyRole
	Hint     int // place in the hints, from 1; 0: only in the help
	Run      func(args []string) error
	Complete func(text string) []string // possible arguments that begin with text
	// Off returns why the action cannot be done now; empty if it can. nil: it always can.
	Off func() string
}

// Group is the section of the help that lists an action.
type Group uint8

const (
	GroupView   Group = iota // the open page
	GroupAct                 // changes something
	GroupMove                // moves the cursor
	GroupGo                  // opens another page
	GroupGlobal              // works everywhere
)

var groupTitles = [...]string{GroupView: "This view", GroupAct: "Act", GroupMove: "Move", GroupGo: "Go to",
	GroupGlobal: "Everywhere"}

// short returns the word for the hints.
func (a *Action) short() string {
	if a.Short != "" {
		return a.Short
	}
	return a.Name
}

// registry lists the available actions, the page's own before the global ones.
type registry []*Action

// without leaves out the actions that change something.
func (r registry) without(changes bool) registry {
	if !changes {
		return r
	}
	return slices.DeleteFunc(slices.Clone(r), func(a *Action) bool { return a.Changes })
}

// byKey returns the action of a key.
func (r registry) byKey(key string) *Action {
	for _, a := range r {
		if slices.Contains(a.Keys, key) {
			return a
		}
	}
	return nil
}

// byName returns the action of a command.
func (r registry) byName(name string) *Action {
	for _, a := range r {
		if a.Name == name || slices.Contains(a.Aliases, name) {
			return a
		}
	}
	return nil
}

// names returns the commands with a prefix, sorted. An alias is listed only if the prefix is the
// whole alias.
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

// hints returns the actions to show at the bottom, the page's own first.
func (r registry) hints() registry {
	list := slices.DeleteFunc(slices.Clone(r), func(a *Action) bool {
		return a.Hint == 0 || len(a.Keys) == 0 || a.Off != nil && a.Off() != ""
	})
	slices.SortStableFunc(list, func(a, b *Action) int { return cmp.Compare(a.Hint, b.Hint) })
	return list
}

// key handles every key: the top layer gets it first, then the actions, then the page.
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
	if s := a.actions().byName("suspend"); s != nil && slices.Contains(s.Keys, name) {
		a.perform(s, nil) // even over a layer
		return nil
	}
	if a.cramped() { // the page is hidden: nobody would see the effect
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

// actions returns the actions that are available now, on this page and everywhere.
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
		// the page's own keys have precedence
		action.Keys = slices.DeleteFunc(slices.Clone(action.Keys), func(key string) bool { return taken[key] })
		for _, key := range action.Keys {
			taken[key] = true
		}
	}
	return list
}

// perform does an action, or says why it cannot.
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

// command runs a line that was typed after ":".
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

// behind returns the text after the first word of a line, as typed; nil if there is none.
func behind(line string) []string {
	line = strings.TrimSpace(line)
	if at := strings.IndexAny(line, " \t"); at >= 0 {
		return []string{strings.TrimSpace(line[at:])}
	}
	return nil
}

// completions returns the lines that a partly typed command can become.
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

// split cuts a line into words; quotes keep a word together.
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

// nearest returns the name closest to a mistyped one; empty if none is close.
func nearest(typed string, names []string) string {
	best, distance := "", 3
	for _, name := range names {
		if d := near.Distance(typed, name); d < distance {
			best, distance = name, d
		}
	}
	return best
}

const (
	helpKeys = 16 // cells of the keys
	helpText = 50 // cells of the text; a command that does not fit goes to the next line
)

// help shows the available actions, from the list that drives the keys.
func (a *App) help() {
	l := widget.NewLines(a.theme)
	name := ""
	if p := a.trails.top(); p != nil {
		name = p.Name()
	}
	l.SetLines(helpLines(a.actions()))
	a.reader("Help: "+name, l, nil)
}

// moving lists the keys that widgets handle themselves.
var moving = []struct{ keys, help string }{
	{"j k ↑ ↓", "move down or up"},
	{"g G home end", "go to the first or last row"},
	{"ctrl-d ctrl-u", "move half a page down or up"},
	{"pgdn pgup", "move a page down or up"},
	{"h l ← →", "scroll sideways"},
	{"enter", "open the row under the cursor"},
}

// helpLines lists all actions by group: keys, text and equivalent command.
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

// commandOf returns the command of an action as it is typed.
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
