package view

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/tui/internal/clock"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/view/internal/settings"
	"github.com/kagzi/kagzi/tui/view/internal/terminal"
	"github.com/kagzi/kagzi/tui/widget"
)

// shared returns the actions that a page has because it can be filtered, marked, sorted, copied or
// saved.
func (a *App) shared(p page) []*Action {
	var list []*Action
	if f, ok := p.(filtered); ok {
		list = append(list, &Action{
			Name: "filter", Keys: []string{"/"}, Args: "[TEXT | save NAME | NAME]",
			Help: "filter the rows; save or use a filter by name", Group: GroupView, Hint: 20,
			Whole: true, Run: func(args []string) error {
				return a.filter(f, strings.Join(args, ""))
			}, Complete: func(text string) []string { return a.completeFilter(f, text) },
		})
	}
	if l, ok := p.(sortable); ok {
		list = append(list, a.tableActions(l)...)
	}
	if c, ok := p.(copied); ok {
		list = append(list,
			&Action{Name: "copy", Keys: []string{"Y"}, Help: "copy the id under the cursor",
				Group: GroupView, Run: func([]string) error { return a.copy("id", c.CopyID()) }},
			&Action{Name: "copy-json", Keys: []string{"ctrl-y"}, Help: "copy the row under the cursor as JSON",
				Group: GroupView, Run: func([]string) error { return a.copy("JSON", c.CopyAll()) }},
			&Action{Name: "json", Keys: []string{"y"}, Help: "show the row under the cursor as JSON", Group: GroupView,
				Run: func([]string) error { return a.showJSON(c) }},
		)
	}
	if _, ok := p.(saved); ok {
		list = append(list, &Action{
			Name: "save", Keys: []string{"ctrl-s"}, Args: "FILE.csv | FILE.json",
			Help: "save the loaded rows to a file", Group: GroupView,
			Run: func(args []string) error {
				if len(args) == 1 {
					return a.save(args[0])
				}
				a.ask("save to (.csv or .json): ", p.Name()+".csv", nil, func(path string) error {
					return a.save(path)
				})
				return nil
			},
		})
	}
	if r, ok := p.(refreshable); ok {
		list = append(list, &Action{Name: "refresh", Keys: []string{"ctrl-r"}, Help: "reload everything",
			Group: GroupView, Run: func([]string) error {
				a.link.Retry()
				r.Refresh()
				return nil
			}})
	}
	return list
}

// tableActions returns the actions of pages with a table.
func (a *App) tableActions(p sortable) []*Action {
	t := p.table()
	do := func(f func()) func([]string) error {
		return func([]string) error { f(); return nil }
	}
	list := []*Action{
		{Name: "mark", Keys: []string{"space"}, Help: "mark or unmark the row for the next action", Group: GroupMove,
			Hint: 25, Run: do(t.ToggleMark)},
		{Name: "mark-range", Keys: []string{"ctrl-space"}, Help: "mark all rows from the last mark to here",
			Group: GroupMove, Run: func([]string) error { return t.MarkRange() }},
		{Name: "unmark", Keys: []string{`ctrl-\`}, Help: "remove all marks", Group: GroupMove,
			Run: do(t.ClearMarks)},
		{Name: "wide", Keys: []string{"ctrl-w"}, Help: "show all columns; scroll with h and l",
			Group: GroupView, Run: do(func() { t.SetWide(!t.Wide()) })},
	}
	if s, ok := p.(interface {
		SortBy(column string, descending bool) error
		nextSort(step int) string
	}); ok {
		step := func(n int) func([]string) error {
			return func([]string) error { _, desc := t.Sort(); return s.SortBy(s.nextSort(n), desc) }
		}
		list = append(list,
			&Action{Name: "sort-right", Keys: []string{">"}, Help: "sort by the next column", Group: GroupView,
				Run: step(1)},
			&Action{Name: "sort-left", Keys: []string{"<"}, Help: "sort by the previous column", Group: GroupView,
				Run: step(-1)},
			&Action{Name: "reverse", Keys: []string{"r"}, Help: "reverse the sort order", Group: GroupView,
				Run: func([]string) error {
					column, desc := t.Sort()
					return s.SortBy(column, !desc)
				}},
			&Action{Name: "sort", Args: "COLUMN", Help: "sort by a column", Group: GroupView,
				Run: func(args []string) error {
					if len(args) != 1 {
						return errors.New("sort by which column? " + strings.Join(columnIDs(t), ", "))
					}
					_, desc := t.Sort()
					return s.SortBy(args[0], desc)
				}, Complete: func(text string) []string { return beginning(columnIDs(t), text) }},
		)
	}
	return list
}

func columnIDs(t *widget.Table) []string {
	var ids []string
	for _, c := range t.Columns() {
		ids = append(ids, c.ID)
	}
	return ids
}

// beginning returns the items of a list with a prefix.
func beginning(list []string, text string) []string {
	var found []string
	for _, s := range list {
		if strings.HasPrefix(s, text) {
			found = append(found, s)
		}
	}
	return found
}

// global returns the actions that work everywhere.
func (a *App) global() registry {
	list := registry{
		{Name: "command", Keys: []string{":"}, Short: "cmd", Help: "type a command; tab completes it",
			Group: GroupGlobal, Hint: 30, Run: func([]string) error { a.typeCommand(); return nil }},
		{Name: "help", Keys: []string{"?"}, Help: "show this help", Group: GroupGlobal, Hint: 31,
			Run: func([]string) error { a.help(); return nil }},
		{Name: "back", Keys: []string{"esc"}, Help: "go back to the previous page", Group: GroupGlobal,
			Run: func([]string) error { a.back(false); return nil }},
		{Name: "close", Keys: []string{"q"}, Help: "go back, or quit on the first page", Group: GroupGlobal,
			Run: func([]string) error { a.back(true); return nil }},
		{Name: "quit", Aliases: []string{"exit"}, Keys: []string{"ctrl-c"}, Help: "quit", Group: GroupGlobal,
			Run: func([]string) error { a.quit(); return nil }},
		{Name: "last", Keys: []string{"-"}, Help: "switch to the view before this one", Group: GroupGo,
			Run: func([]string) error { a.trails.toLast(); return nil }},
		{Name: "earlier", Keys: []string{"["}, Help: "go to the view opened before this one", Group: GroupGo,
			Run: func([]string) error { a.trails.back(); return nil }},
		{Name: "later", Keys: []string{"]"}, Help: "go to the view opened after it",
			Group: GroupGo, Run: func([]string) error {
				a.trails.forward()
				return nil
			}},
		{Name: "freeze", Keys: []string{"p"}, Help: "freeze or unfreeze the screen", Group: GroupGlobal,
			Run: func([]string) error { a.freeze(); return nil }},
		{Name: "header", Keys: []string{"ctrl-e"}, Help: "show or hide the counters", Group: GroupGlobal,
			Run: func([]string) error { a.header = !a.header; return nil }},
		{Name: "time", Keys: []string{"u"}, Args: "[relative|local|utc|epoch]", Help: "change how times are shown",
			Group: GroupGlobal, Run: a.setTime,
			Complete: func(text string) []string { return beginning(clock.Styles, text) }},
		{Name: "theme", Keys: []string{"T"}, Args: "[NAME]", Help: "change the theme", Group: GroupGlobal,
			Run:      a.chooseTheme,
			Complete: func(text string) []string { return beginning(a.themeNames(), text) }},
		{Name: "redraw", Keys: []string{"ctrl-l"}, Help: "redraw the screen", Group: GroupGlobal,
			Run: func([]string) error { a.screen.Sync(); return nil }},
		{Name: "messages", Help: "show past messages", Group: GroupGo, Run: func([]string) error {
			a.showMessages()
			return nil
		}},
		{Name: "mouse", Args: "on|off", Help: "use the mouse, or leave it to the terminal", Group: GroupGlobal,
			Run:      a.setMouse,
			Complete: func(text string) []string { return beginning([]string{"on", "off"}, text) }},
		{Name: "again", Help: "retry the targets that failed in the last action",
			Group: GroupAct, Changes: true, Least: clients, Run: func([]string) error { return a.again() }},
	}
	if terminal.CanSuspend {
		list = append(list, &Action{Name: "suspend", Keys: []string{"ctrl-z"}, Group: GroupGlobal,
			Help: "suspend to the shell; fg resumes", Run: func([]string) error { return a.suspend() }})
	}
	for _, v := range views {
		list = append(list, &Action{
			Name: v.name, Aliases: v.aliases, Keys: v.keys, Args: v.args, Help: v.help, Group: GroupGo,
			Whole: v.args == filterArgs,
			Run:   func(args []string) error { return a.open(v, args) }, Complete: a.completeView(v),
		})
	}
	return list
}

// suspend stops the program until fg.
func (a *App) suspend() error { return terminal.Suspend(a.tv, a.stop) }

// resume takes the terminal again, as somebody else left it, and draws everything.
func (a *App) resume() {
	_ = a.tv.Suspend(func() {}) // false: there is no screen to draw on
}

// back goes to the page that this one was opened from. A page may first use it to undo something,
// such as its filter. On the first page it does nothing, or quits.
func (a *App) back(orQuit bool) {
	if p, ok := a.trails.top().(escaped); ok && p.Escape() {
		return
	}
	if p, ok := a.trails.top().(sortable); ok && !orQuit && len(p.table().Marked()) > 0 {
		p.table().ClearMarks()
		return
	}
	if !a.trails.pop() && orQuit {
		a.quit()
	}
}

func (a *App) freeze() {
	a.frozen = !a.frozen
	a.link.Freeze(a.frozen)
}

func (a *App) setTime(args []string) error {
	if len(args) == 0 {
		a.clock.Next()
		return nil
	}
	for _, name := range clock.Styles {
		if name == args[0] {
			a.clock.Style = name
			return nil
		}
	}
	return fmt.Errorf("there is no time style %q; want one of %s", args[0], strings.Join(clock.Styles, ", "))
}

func (a *App) setMouse(args []string) error {
	if len(args) != 1 || args[0] != "on" && args[0] != "off" {
		return errors.New("want mouse on or mouse off")
	}
	a.tv.EnableMouse(args[0] == "on")
	return nil
}

// showJSON shows the thing under the cursor as a document over the page.
func (a *App) showJSON(c copied) error {
	text := c.CopyAll()
	if text == "" {
		return errors.New("there is nothing under the cursor")
	}
	d := widget.NewDocument(a.theme)
	d.SetPayload(c.CopyID(), []byte(text), "application/json")
	a.readDocument(c.CopyID(), d)
	return nil
}

// readDocument shows a document over the page, with search and copying.
func (a *App) readDocument(title string, d *widget.Document) {
	a.reader(title, d, func(key string) bool {
		switch key {
		case "/":
			a.ask("search: ", "", nil, func(text string) error {
				if d.Search(text) == 0 {
					return fmt.Errorf("%q not found", text)
				}
				return nil
			})
		case "y":
			a.done(a.copy("value", d.CopyValue()))
		case "Y":
			a.done(a.copy("path", d.CopyPath()))
		default:
			return false
		}
		return true
	}, hint{"/", "search"}, hint{"n", "next"}, hint{"y", "copy"}, hint{"w", "wrap"})
}

// done shows err as a message, if there is one.
func (a *App) done(err error) {
	if err != nil {
		a.complain(err)
	}
}

// firstTheme returns the initial theme: from the options, chosen last time, or from the settings.
func (a *App) firstTheme() string {
	for _, name := range []string{a.options.Theme, a.state.Theme, a.options.Config.Theme} {
		if name != "" {
			return name
		}
	}
	return theme.Default().Name
}

// showMessages lists past messages, oldest first.
func (a *App) showMessages() {
	l := widget.NewLines(a.theme)
	var lines []widget.Line
	for _, m := range a.messages {
		lines = append(lines, messageLine(m, a.options.Zone))
	}
	if len(lines) == 0 {
		lines = append(lines, widget.TextLine("No messages yet.", render.Dim))
	}
	l.SetLines(lines)
	a.reader("Messages", l, nil)
}

func messageLine(m message, zone *time.Location) widget.Line {
	style := render.Plain
	if m.bad {
		style = render.Bad
	}
	return widget.Line{Cells: []render.Cell{{Text: m.at.In(zone).Format(time.TimeOnly) + "  ", Style: render.Dim},
		{Text: m.text, Style: style}}}
}

// ask prompts for a line at the bottom of the screen. If done returns an error, the line can be
// corrected.
func (a *App) ask(label, text string, complete func(string) []string, done func(string) error) {
	a.prompt(label, text, nil, complete, nil, done, nil)
}

// prompt is ask with a history, a preview while typing, and a call when the prompt is cancelled.
func (a *App) prompt(label, text string, history []string, complete func(string) []string, changed func(string),
	done func(string) error, given func()) {
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
		a.lift(o) // before done, which may open a view or another layer
		if err := done(text); err != nil {
			p.Error(sentence(err))
			a.lay(o)
		}
	}
	a.lay(o)
}

// typeCommand prompts for a command.
func (a *App) typeCommand() {
	a.prompt(":", "", a.state.Commands, a.completions, nil, func(line string) error {
		if err := a.command(line); err != nil {
			return err
		}
		a.state.Commands, a.typed.Commands = settings.Remember(a.state.Commands, line),
			settings.Remember(a.typed.Commands, line)
		return nil
	}, nil)
}

// filter sets a filter, saves the current one, or uses a saved one.
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
		if err := a.memorize(func(s *settings.State) {
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
		return a.memorize(func(s *settings.State) { delete(s.Filters, args[1]) })
	case len(args) == 1 && a.savedFilters()[args[0]] != "":
		return p.SetFilter(a.savedFilters()[args[0]])
	}
	return p.SetFilter(text)
}

// savedFilters returns the filters of the settings and those saved here, which take precedence.
func (a *App) savedFilters() map[string]string {
	saved := maps.Clone(a.options.Config.Filters)
	if saved == nil {
		saved = map[string]string{}
	}
	maps.Copy(saved, a.state.Filters)
	return saved
}

func (a *App) completeFilter(p filtered, text string) []string {
	return slices.Concat(beginning(slices.Sorted(maps.Keys(a.savedFilters())), text),
		beginning([]string{"save ", "forget "}, text), p.CompleteFilter(text))
}

// typeFilter prompts for a filter and previews it while typing.
func (a *App) typeFilter(p filtered) {
	before := p.Filter()
	a.prompt("/", before, a.state.Searches, p.CompleteFilter, p.TryFilter, func(text string) error {
		if err := p.SetFilter(text); err != nil {
			return err
		}
		a.state.Searches, a.typed.Searches = settings.Remember(a.state.Searches, text),
			settings.Remember(a.typed.Searches, text)
		return nil
	}, func() { a.done(p.SetFilter(before)) })
}

// pick shows a list to choose from; moved is called with the item under the cursor.
func (a *App) pick(title string, names []string, selected string, moved func(string), done func(name string, ok bool)) {
	p := widget.NewPicker(a.theme, title, names, selected)
	p.OnMove = moved
	o := &over{primitive: p, place: everywhere, hints: []hint{{"enter", "choose"}, {"esc", "cancel"}}}
	p.Done = func(name string, ok bool) {
		a.lift(o)
		done(name, ok)
	}
	a.lay(o)
}
