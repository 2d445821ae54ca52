package view

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
)

// ask lets the person type a line at the bottom of the screen. What done refuses can be typed again.
func (a *App) ask(label, text string, complete func(string) []string, done func(string) error) {
	a.prompt(label, text, nil, complete, nil, done, nil)
}

// prompt is ask with a history, a look at what is being typed, and a word when it was given up.
func (a *App) prompt(label, text string, history []string, complete func(string) []string, changed func(string), done func(string) error, given func()) {
	p := widget.NewPrompt(a.theme, label)
	p.SetText(text)
	p.SetHistory(history)
	p.Complete, p.Changed = complete, changed
	o := &over{primitive: p, place: bottomLine}
	p.Done = func(text string, ok bool) {
		if !ok {
			a.lift(o)
			if given != nil {
				given()
			}
			return
		}
		a.lift(o) // before it is done: that may open a view, or another layer
		if err := done(text); err != nil {
			p.Error(sentence(err))
			a.lay(o)
		}
	}
	a.lay(o)
}

// typeCommand takes a command.
func (a *App) typeCommand() {
	a.prompt(":", "", a.state.Commands, a.completions, nil, func(line string) error {
		if err := a.command(line); err != nil {
			return err
		}
		a.state.Commands, a.typed.Commands = remember(a.state.Commands, line), remember(a.typed.Commands, line)
		return nil
	}, nil)
}

// filter takes a filter, or saves the one that is set, or uses a saved one.
func (a *App) filter(p filtered, text string) error {
	args := split(text)
	switch {
	case len(args) == 0:
		a.typeFilter(p)
		return nil
	case len(args) == 2 && args[0] == "save":
		if p.Filter() == "" {
			return errors.New("there is no filter to save; type one with /")
		}
		if err := a.memorize(func(s *State) {
			if s.Filters == nil {
				s.Filters = map[string]string{}
			}
			s.Filters[args[1]] = p.Filter()
		}); err != nil {
			return err
		}
		a.say("saved the filter %s as %s; :filter %s uses it", p.Filter(), args[1], args[1])
		return nil
	case len(args) == 2 && args[0] == "forget":
		if _, ok := a.state.Filters[args[1]]; !ok {
			return fmt.Errorf("there is no saved filter %q", args[1])
		}
		return a.memorize(func(s *State) { delete(s.Filters, args[1]) })
	case len(args) == 1 && a.savedFilters()[args[0]] != "":
		return p.SetFilter(a.savedFilters()[args[0]])
	}
	return p.SetFilter(text)
}

// savedFilters are those of the settings and those saved here, which go before.
func (a *App) savedFilters() map[string]string {
	saved := maps.Clone(a.options.Config.Filters)
	if saved == nil {
		saved = map[string]string{}
	}
	maps.Copy(saved, a.state.Filters)
	return saved
}

func (a *App) completeFilter(p filtered, text string) []string {
	return slices.Concat(beginning(slices.Sorted(maps.Keys(a.savedFilters())), text), beginning([]string{"save ", "forget "}, text), p.CompleteFilter(text))
}

// typeFilter takes a filter and shows what it does while it is typed.
func (a *App) typeFilter(p filtered) {
	before := p.Filter()
	a.prompt("/", before, a.state.Searches, p.CompleteFilter, p.TryFilter, func(text string) error {
		if err := p.SetFilter(text); err != nil {
			return err
		}
		a.state.Searches, a.typed.Searches = remember(a.state.Searches, text), remember(a.typed.Searches, text)
		return nil
	}, func() { a.done(p.SetFilter(before)) })
}

// pick lets the person choose one of a list; moved is called with what the cursor is on.
func (a *App) pick(title string, names []string, selected string, moved func(string), done func(name string, ok bool)) {
	choices := make([]widget.Choice, len(names))
	for i, name := range names {
		choices[i] = widget.Choice{ID: name, Line: widget.TextLine(name, render.Plain)}
	}
	p := widget.NewPicker(a.theme, title, choices, selected)
	p.OnMove = moved
	o := &over{primitive: p, place: everywhere, hints: []hint{{"enter", "choose"}, {"esc", "cancel"}}}
	p.Done = func(name string, ok bool) {
		a.lift(o)
		done(name, ok)
	}
	a.lay(o)
}
