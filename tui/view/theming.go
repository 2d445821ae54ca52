package view

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gdamore/tcell/v2"

	"github.com/kagzi/kagzi/tui/theme"
)

// themeNames are the themes that come with the program and those in the folder of the person's own.
func (a *App) themeNames() []string {
	names := theme.Names()
	if a.options.Themes == "" {
		return names
	}
	entries, err := os.ReadDir(a.options.Themes)
	if err != nil {
		return names
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".toml"); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// setTheme changes the look, as far as the screen can show it.
func (a *App) setTheme(name string) error {
	look, ok := theme.New(name)
	if !ok {
		if a.options.Themes == "" || !slices.Contains(a.themeNames(), name) {
			return fmt.Errorf("there is no theme %q; there are %s", name, strings.Join(a.themeNames(), ", "))
		}
		var err error
		if look, err = theme.Load(filepath.Join(a.options.Themes, name+".toml")); err != nil {
			return err
		}
	}
	a.look = look.For(a.screen, a.noColour(), a.options.ASCII || a.options.Config.ASCII)
	return nil
}

// plainer is what stands for the signs in our own words on a terminal that does not have them.
var plainer = map[rune]string{'…': "~", '–': "-", '·': "|", '›': ">", '↑': "^", '↓': "v", '←': "<", '→': ">", 'Δ': "d", '×': "x"}

// registerPlainer tells the screen what to show instead.
func registerPlainer(screen tcell.Screen) {
	for sign, plain := range plainer {
		screen.RegisterRuneFallback(sign, plain)
	}
}

// noColour is what --no-color and NO_COLOR (no-color.org) ask for.
func (a *App) noColour() bool {
	value, _ := a.options.Lookup("NO_COLOR")
	return a.options.NoColour || value != ""
}

// chooseTheme takes a name, or lists them and shows each while the cursor is on it.
func (a *App) chooseTheme(args []string) error {
	if len(args) == 1 {
		if err := a.setTheme(args[0]); err != nil {
			return err
		}
		return a.memorize(func(s *State) { s.Theme = args[0] })
	}
	before := a.look
	a.pick("Theme", a.themeNames(), before.Name, func(name string) { a.done(a.setTheme(name)) }, func(name string, ok bool) {
		if !ok {
			a.look = before
			return
		}
		a.done(a.setTheme(name))
		a.done(a.memorize(func(s *State) { s.Theme = name }))
	})
	return nil
}
