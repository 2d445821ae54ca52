// Package view draws the screens of the terminal UI. All its code runs on one goroutine, that of
// the event loop; other goroutines reach it through post.
//
// Start with page.go, which defines a page and lists the pages, and action.go, which defines what
// people can do and which keys do it. By subject:
//
//   - Table pages: list.go holds the common part, internal/tables the columns and rows. A list that
//     is loaded whole is a listPage (list.go); runs are loaded as far as the person scrolls
//     (runs.go).
//   - Pages about one thing use about.go, except the run, which has tabs (run*.go).
//   - The overview, the event log and the comparison of two runs are thin pages over
//     internal/overview, eventlist and diff; the server's page shows the lines of internal/serverfacts.
//   - Around a page: the frame (frame.go), layers over it (layer.go), global keys (global.go).
//   - Changes: act.go, act_runs.go and the file of each kind of thing.
//   - The program: options and event loop (app.go), clipboard, files and editor (copy.go). The
//     screen, times, figures and settings are in internal/terminal, clock, format and settings.
package view

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/internal/clock"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/theme"
	"github.com/kagzi/kagzi/tui/view/internal/settings"
	"github.com/kagzi/kagzi/tui/view/internal/tables"
	"github.com/kagzi/kagzi/tui/view/internal/terminal"
)

// Config holds the settings in tui.toml.
type Config = settings.Config

// LoadConfig reads a settings file; a missing file is empty. Errors name the file and the line.
func LoadConfig(path string) (Config, error) { return settings.LoadConfig(path) }

// Options configures Run. API is required; the other fields have defaults.
type Options struct {
	API       tui.API
	Namespace string     // default "default"
	Address   string     // of the server, for the equivalent command lines
	Source    string     // source of the address: "--address", "KAGZI_ADDRESS", "the default"
	Home      model.Home // the server that a command line without flags reaches
	Version   string     // of this program
	// Note is shown beside the server's address: "demo", or "orders.db, read-only". Empty for a
	// server that was reached as usual.
	Note     string
	File     bool   // Address names a database file: there is no server, and nothing about one is shown
	ReadOnly bool   // hide all actions that change something
	Open     string // the command that opens the first page; default the overview
	Theme    string // a theme's name; default the one of the settings
	NoColour bool
	ASCII    bool
	Mouse    bool
	Refresh  time.Duration // least time between two frames; default 1/15 s
	Config   Config
	State    string         // file of the remembered state; empty: remember nothing
	Themes   string         // folder of theme files; empty: none
	Log      string         // file that a panic's stack is written to; empty: none
	Zone     *time.Location // of local times; default the machine's

	Screen tcell.Screen                // default the terminal
	Now    func() time.Time            // default time.Now
	Lookup func(string) (string, bool) // reads the environment; default os.LookupEnv
}

func (o Options) withDefaults() Options {
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	if o.Address == "" {
		o.Address = tui.DefaultAddress
	}
	if o.Open == "" {
		o.Open = "overview"
	}
	if o.Refresh < terminal.FrameEvery {
		o.Refresh = terminal.FrameEvery
	}
	if o.Zone == nil {
		o.Zone = time.Local
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Lookup == nil {
		o.Lookup = os.LookupEnv
	}
	return o
}

// App is the running program.
type App struct {
	options Options
	ctx     context.Context // of all calls; ends with the program
	tv      *tview.Application
	screen  tcell.Screen
	posts   *terminal.Posts
	stop    func() error // stops this process until fg
	look    *theme.Theme
	clock   clock.Clock
	tables  tables.Rows
	state   settings.State
	typed   settings.State // lines typed in this window

	link     *model.Link
	overview *model.Overview // source of the counters and warnings
	trails   trails
	names    *model.Collection[*kagziv1.Namespace] // for the completion of a namespace; nil until first needed
	layers   []layer                               // dialogs, prompts and help over the page, the topmost last
	toast    toast
	messages []message // shown so far, newest last
	header   bool      // show the counters
	frozen   bool
	quitting bool
	pacer    *time.Timer
	job      *model.Job // the last action, or the last one with failures
	wrong    error      // why the program cannot start as the options ask
}

// Run shows the terminal UI until the person quits or ctx ends. It restores the terminal, after a
// panic too: a panic is returned as an error, with its stack in the log. Other errors are about the
// terminal, or an *OptionError.
func Run(ctx context.Context, o Options) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	own := o.Screen == nil // else signals are none of ours
	if own {
		var end context.CancelFunc
		ctx, end = untilHangup(ctx)
		defer end()
		if o.Screen, err = terminal.Open(o.withDefaults().Lookup); err != nil {
			return err
		}
	}
	defer o.Screen.Fini()
	defer func() {
		if v := recover(); v != nil {
			stack := debug.Stack()
			o.Screen.Fini() // before anything is written to the terminal
			err = crashed(v, stack, o.Log)
		}
	}()
	a := newApp(ctx, o)
	if own {
		defer terminal.Jobs(Lent, func() { a.post(func() { a.done(a.suspend()) }) }, func() { a.post(a.resume) })()
	}
	return a.run(cancel)
}

// untilHangup returns a context that ends when the terminal is lost, which would otherwise end the
// process at once: its state would not be saved and the editor's file not removed. Terminal and shell
// both report it, so further hangups mean nothing until end is called.
func untilHangup(ctx context.Context) (lives context.Context, end context.CancelFunc) {
	lives, cancel := context.WithCancel(ctx)
	lost := make(chan os.Signal, 1)
	signal.Notify(lost, syscall.SIGHUP)
	go func() {
		select {
		case <-lost:
			cancel()
		case <-lives.Done():
		}
	}()
	return lives, func() {
		signal.Stop(lost)
		cancel()
	}
}

// OptionError is a first page or theme that the options name and that does not exist. Nothing was
// shown.
type OptionError struct{ Err error }

func (e *OptionError) Error() string { return e.Err.Error() }

func (e *OptionError) Unwrap() error { return e.Err }

// newApp returns the program over an initialised screen.
func newApp(ctx context.Context, o Options) *App {
	o = o.withDefaults()
	a := &App{options: o, ctx: ctx, posts: terminal.NewPosts(), stop: terminal.Stop,
		screen: o.Screen, header: true}
	a.clock = clock.Clock{Now: a.now, Style: clock.Styles[0], Zone: o.Zone}
	a.tables = tables.Rows{Clock: &a.clock, Look: a.theme}
	if o.Config.Time != "" {
		a.clock.Style = o.Config.Time
	}
	if o.State != "" {
		a.state = settings.LoadState(o.State)
	}
	a.tv = tview.NewApplication().SetScreen(terminal.NewScreen(a.screen)).EnableMouse(o.Mouse ||
		o.Config.Mouse).EnablePaste(true)
	a.tv.SetRoot(newFrame(a), true).SetInputCapture(a.key)
	registerPlainer(a.screen)
	if err := a.setTheme(a.firstTheme()); err != nil {
		a.look = theme.Default().For(a.screen, a.noColour(), o.ASCII)
		if o.Theme != "" {
			a.wrong = &OptionError{err}
		}
		a.complain(err)
	}
	return a
}

// run runs the program from the first frame to the last.
func (a *App) run(cancel context.CancelFunc) error {
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() {
		a.posts.Pump(stop, a.options.Refresh, func() { a.tv.QueueEvent(tcell.NewEventKey(terminal.WakeKey, 0, 0)) })
	})
	group.Go(func() {
		select {
		case <-a.ctx.Done():
			a.post(a.quit)
		case <-stop:
		}
	})
	defer group.Wait()
	defer close(stop)

	a.begin()
	defer a.end()
	defer cancel() // before end, which waits for open calls
	if a.wrong != nil {
		return a.wrong
	}
	err := a.tv.Run()
	return errors.Join(err, a.saveTyped())
}

// begin connects to the server and opens the first page.
func (a *App) begin() {
	a.link = model.NewLink(a.ctx, a.options.API, a.options.Namespace, a.post, a.options.Now)
	a.overview = model.NewOverview(a.link)
	a.overview.Version = a.options.Version
	if err := a.command(a.options.Open); err != nil && a.wrong == nil {
		a.wrong = &OptionError{err}
	}
}

// end closes everything and waits for it.
func (a *App) end() {
	if a.pacer != nil {
		a.pacer.Stop()
	}
	a.trails.close()
	if a.names != nil {
		a.names.Close()
	}
	a.overview.Close()
	a.link.Close()
}

// post runs f on the UI goroutine; it may be called from any goroutine. A panic in f ends the
// program cleanly.
func (a *App) post(f func()) { a.posts.Add(f) }

// now returns the server's time as far as it is known, so a wrong clock on this machine does not
// show.
func (a *App) now() time.Time {
	if a.link == nil {
		return a.options.Now()
	}
	return a.link.Now()
}

// theme returns the current theme.
func (a *App) theme() *theme.Theme { return a.look }

// slowPace is how often ages are updated on a screen where nothing else changes. It is long to save
// traffic on a metered line.
const slowPace = 5 * time.Second

// pace returns the time until the screen is redrawn although nothing happened.
func (a *App) pace() time.Duration {
	if !a.frozen && !a.link.State().NextTry.IsZero() && a.link.State().Phase == model.Reconnecting {
		return time.Second // the retry countdown
	}
	if p, ok := a.trails.top().(paced); ok && !a.frozen {
		return p.Pace()
	}
	return slowPace
}

// drew runs after each frame.
func (a *App) drew() {
	pace := a.pace()
	if a.pacer == nil {
		a.pacer = time.AfterFunc(pace, func() { a.post(func() {}) })
		return
	}
	a.pacer.Reset(pace)
}

// quit ends the program.
func (a *App) quit() {
	if a.quitting {
		return
	}
	a.quitting = true
	a.tv.Stop()
}

// themeNames lists the built-in themes and those in the person's themes folder.
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

// setTheme switches to a theme, reduced to what the screen can show.
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

// plainer maps our own symbols to ASCII for terminals that lack them.
var plainer = map[rune]string{'…': "~", '–': "-", '·': "|", '›': ">", '↑': "^", '↓': "v", '←': "<", '→': ">",
	'Δ': "d", '×': "x"}

// registerPlainer registers the replacements with the screen.
func registerPlainer(screen tcell.Screen) {
	for sign, plain := range plainer {
		screen.RegisterRuneFallback(sign, plain)
	}
}

// noColour reports whether --no-color or NO_COLOR (no-color.org) is set.
func (a *App) noColour() bool {
	value, _ := a.options.Lookup("NO_COLOR")
	return a.options.NoColour || value != ""
}

// chooseTheme takes a name, or lists the themes and previews the one under the cursor.
func (a *App) chooseTheme(args []string) error {
	if len(args) == 1 {
		if err := a.setTheme(args[0]); err != nil {
			return err
		}
		return a.memorize(func(s *settings.State) { s.Theme = args[0] })
	}
	before := a.look
	a.pick("Theme", a.themeNames(), before.Name, func(name string) {
		a.done(a.setTheme(name))
	}, func(name string, ok bool) {
		if !ok {
			a.look = before
			return
		}
		a.done(a.setTheme(name))
		a.done(a.memorize(func(s *settings.State) { s.Theme = name }))
	})
	return nil
}

// memorize changes the remembered state and saves it at once, based on the file: another window may
// have changed it too, and this one may be closed at any time.
func (a *App) memorize(what func(*settings.State)) error {
	what(&a.state)
	if a.options.State == "" {
		return nil
	}
	s := settings.LoadState(a.options.State)
	what(&s)
	return s.Save(a.options.State)
}

// saveTyped adds the lines typed in this window to the histories in the file.
func (a *App) saveTyped() error {
	if a.options.State == "" {
		return nil
	}
	s := settings.LoadState(a.options.State)
	for _, line := range a.typed.Commands {
		s.Commands = settings.Remember(s.Commands, line)
	}
	for _, line := range a.typed.Searches {
		s.Searches = settings.Remember(s.Searches, line)
	}
	return s.Save(a.options.State)
}

// crashed turns a panic into an error and writes its stack to a file.
func crashed(v any, stack []byte, file string) error {
	report := fmt.Appendf(nil, "panic: %v\n\n%s", v, stack)
	if file == "" || settings.WriteWhole(file, report) != nil {
		os.Stderr.Write(report)
		return fmt.Errorf("the terminal UI failed: %v", v)
	}
	return fmt.Errorf("the terminal UI failed: %v; the stack is in %s", v, file)
}
