package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

// key takes every key: what is on top gets it, else the actions that are there, else the page moves with it.
func (a *App) key(event *tcell.EventKey) *tcell.EventKey {
	if event.Key() == wakeKey {
		a.posts.run()
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
		action.Keys = slices.DeleteFunc(slices.Clone(action.Keys), func(key string) bool { return taken[key] }) // a page's own go first
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
