package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/profile"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/cli/internal/flagvalue"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/scenario"
	"github.com/kagzi/kagzi/tui/view"
)

// Local is what can be done without a server that was started before; main fills it, because it
// needs packages that this one may not import. What is nil cannot be done.
type Local struct {
	// Look opens a database file for looking only, within this process.
	Look func(ctx context.Context, file string) (*Nearby, error)
	// Serve starts a server within this process, on the embedded database and at the default address.
	Serve func(ctx context.Context) (*Nearby, error)
	// Open opens the database at a URL as its server would, within this process, for a caller with
	// all rights. An empty URL means that of the server's settings. One that is not there is made
	// with create only.
	Open func(ctx context.Context, url string, create bool) (*Nearby, error)
	// Demo starts a server in memory, within this process, whose clock stands at a moment until it
	// is moved. All follows from the seed.
	Demo func(seed uint64, at time.Time) scenario.Server
	// Examine looks at what a server of this machine's settings needs where none runs: its files, its disk, its ports.
	Examine func(ctx context.Context) []Check
	// Guides holds the Markdown files of `kagzi help TOPIC`, by their paths in the repository.
	Guides fs.FS
}

// Check is one thing that doctor looked at.
type Check struct {
	Name   string // "disk"
	State  string // "ok", "warn" or "bad"
	Text   string // raw text in one line: what was found
	Advice string // what to do about it; empty when it is ok
}

// Nearby is a server within this process.
type Nearby struct {
	Database string
	Address  string                                  // where others can reach it; empty: nowhere
	Dial     func(context.Context) (net.Conn, error) // nil: by its address
	Close    func() error
}

// uiOptions are the flags of `kagzi tui`.
type uiOptions struct {
	db       string
	demo     bool
	readOnly bool
	theme    string
	ascii    bool
	mouse    bool
	view     string
	run      string
	filter   string
	refresh  time.Duration

	home model.Home
}

// addUI adds `kagzi tui`, and opens it for `kagzi` alone in a terminal.
func addUI(root *cobra.Command, e *env) {
	root.AddCommand(newUI(e, &uiOptions{}))
	root.Args = cobra.ArbitraryArgs
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		if s := e.streams(cmd); !s.inTTY || !s.outTTY {
			return cmd.Help()
		}
		return runAlone(cmd, e)
	}
}

func newUI(e *env, o *uiOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tui",
		Short: "The terminal UI: see and steer everything live",
		Long: `The terminal UI on a running server: runs, workers, schedules and queues, live, with what is wrong and why, and the keys to put it
right. ? lists what can be done, : takes commands, / filters.

With --db it opens a database file without a server, for looking only, also while a server has it open. With --demo it shows a
world that is made up, without any server.

Settings are read from kagzi/tui.toml in the folder of your settings. NO_COLOR is honoured.`,
		Example: `  kagzi tui
  kagzi tui --view runs --filter 'status:failed since:24h'
  kagzi tui --db backup.db
  kagzi tui --demo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runUI(cmd, e, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.db, "db", "",
		"open this file of an SQLite database, FILE or sqlite:FILE, for looking only, without a server")
	f.BoolVar(&o.demo, "demo", false, "show a world that is made up, without a server")
	f.BoolVar(&o.readOnly, "read-only", false, "take away everything that changes anything")
	f.StringVar(&o.theme, "theme", "", "terminal, dark, light, contrast, mono, or one of your own")
	f.BoolVar(&o.ascii, "ascii", false, "use no glyphs beyond ASCII")
	f.BoolVar(&o.mouse, "mouse", false, "take the mouse; it is left to the terminal otherwise")
	f.StringVar(&o.view, "view", "",
		"the view to begin with, as a command: overview, runs, workers, schedules, queues, server, events")
	f.StringVar(&o.run, "run", "", "begin with this run")
	f.StringVar(&o.filter, "filter", "", "begin with the runs that this filter chooses")
	f.Var(flagvalue.Duration(&o.refresh), "refresh", "draw at most once in this time, such as 1s over a slow line")
	e.register(cmd)
	return cmd
}

// first is the command that opens the first view.
func (o *uiOptions) first() string {
	switch {
	case o.run != "":
		return "run " + quoted(o.run)
	case o.filter != "" && (o.view == "" || o.view == "runs"):
		return "runs " + o.filter // which is taken as it was typed
	}
	return o.view
}

// quoted is a word of a command of the UI; a quote in it stands in quotes of the other kind.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" }

// oneOf are flags of which each says by itself what is shown.
var oneOf = [][]string{{"db", "demo", "address"}, {"run", "view"}}

// checkOneOf refuses two flags that say different things.
func checkOneOf(flags *pflag.FlagSet) error {
	for _, group := range oneOf {
		given := ""
		for _, name := range group {
			if !flags.Changed(name) {
				continue
			}
			if given != "" {
				return usagef("--%s and --%s cannot be given together", given, name)
			}
			given = name
		}
	}
	return nil
}

func runUI(cmd *cobra.Command, e *env, o *uiOptions) error {
	if err := checkOneOf(cmd.Flags()); err != nil {
		return err
	}
	o.home = e.home(cmd.Flags())
	if err := e.resolve(cmd); err != nil {
		return err
	}
	switch {
	case o.filter != "" && o.view != "" && o.view != "runs":
		return usagef("--filter is for --view runs, not for %s", o.view)
	case o.demo:
		return runDemoUI(cmd, e, o)
	case o.db != "":
		return runFileUI(cmd, e, o)
	}
	return runServerUI(cmd, e, o)
}

// runServerUI shows a server that is reached by its address.
func runServerUI(cmd *cobra.Command, e *env, o *uiOptions) error {
	return showServer(cmd, e, o, "", e.reach)
}

// showServer shows a server. note is what the person must know of it; empty for one that was reached as usual.
func showServer(cmd *cobra.Command, e *env, o *uiOptions, note string,
	reach func() (tui.API, func() error, error)) error {
	options, err := e.uiOptions(o)
	if err != nil {
		return err
	}
	api, closeConn, err := reach()
	if err != nil {
		return err
	}
	options.API, options.Note, options.Home = api, note, o.home
	return errors.Join(show(cmd.Context(), options), closeConn())
}

// show shows the UI. What the flags asked for and cannot be had is wrong usage.
func show(ctx context.Context, o view.Options) error {
	err := view.Run(ctx, o)
	if wrong := (*view.OptionError)(nil); errors.As(err, &wrong) {
		return usagef("%w", wrong)
	}
	return err
}

// runFileUI shows a database file.
func runFileUI(cmd *cobra.Command, e *env, o *uiOptions) error {
	options, err := e.uiOptions(o)
	if err != nil {
		return err
	}
	if strings.HasPrefix(o.db, "postgres://") || strings.HasPrefix(o.db, "postgresql://") {
		return usagef(
			"--db opens a file of an SQLite database; to look at Postgres run a server on it, and then: kagzi tui --read-only")
	}
	o.db = strings.TrimPrefix(o.db, "sqlite:") // as every other --db has it
	near, err := e.local.Look(cmd.Context(), o.db)
	if err != nil {
		return err
	}
	options.Note, options.ReadOnly = filepath.Base(o.db), true
	api, closeConn, err := e.dial(tui.DialOptions{Address: o.db, Dialer: near.Dial})
	if err != nil {
		return errors.Join(err, near.Close())
	}
	options.API, options.Address, options.Source, options.File = api, o.db, "--db", true
	options.Home.Address = o.db // which is no address for a command line
	return errors.Join(show(cmd.Context(), options), closeConn(), near.Close())
}

// demoSeed makes every demo the same.
const demoSeed = 12

// runDemoUI shows a real server on which a day is played: what has passed of it before the first
// screen, and the rest live.
func runDemoUI(cmd *cobra.Command, e *env, o *uiOptions) error {
	options, err := e.uiOptions(o)
	if err != nil {
		return err
	}
	begin := e.now()
	server := e.local.Demo(demoSeed, begin.Add(-scenario.Running))
	day, err := scenario.Play(server, demoSeed, begin)
	if err != nil {
		return err
	}
	day.Advance(e.now().Sub(begin)) // which playing took
	ctx, stop := context.WithCancel(cmd.Context())
	lived := make(chan struct{})
	go func() {
		defer close(lived)
		day.Run(ctx, 1)
	}()
	options.API, options.Note, options.Address, options.Source = tui.Over(server.Direct()), "demo", "demo", "--demo"
	err = show(ctx, options)
	stop()
	<-lived
	return err
}

// answerWithin is how long `kagzi` alone waits for a server before it starts one.
const answerWithin = 2 * time.Second

// runAlone shows the server at the address; if none answers there and nobody named another, it
// starts one in this process.
func runAlone(cmd *cobra.Command, e *env) error {
	// of its own it has none: the environment and the profile alone
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	e.flags.Register(flags)
	if err := e.flags.Resolve(flags, e.lookup, e.find); err != nil {
		return err
	}
	o := &uiOptions{home: e.home(flags)}
	own := e.goHome()
	running, err := e.answers(cmd.Context())
	if err != nil || running || !own {
		return errors.Join(err, runServerUI(cmd, e, o))
	}
	near, err := e.local.Serve(cmd.Context())
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "no server answers at %s: serving %s in this process, until the UI is closed\n",
		render.Safe(e.flags.Address), render.Safe(near.Database))
	return errors.Join(runNearUI(cmd, e, o, near), near.Close())
}

// runNearUI shows a server within this process: by the way in that it gives, or else by its address.
func runNearUI(cmd *cobra.Command, e *env, o *uiOptions, near *Nearby) error {
	e.flags.Address = near.Address
	reach := e.reach
	if near.Dial != nil {
		reach = func() (tui.API, func() error, error) {
			return e.dial(tui.DialOptions{Address: near.Address, Dialer: near.Dial})
		}
	}
	return showServer(cmd, e, o, "server in this process", reach)
}

// goHome goes to where a server of this machine's settings listens, if nobody named another, and
// says whether that is so.
func (e *env) goHome() bool {
	listen, _ := e.lookup("KAGZI_LISTEN")
	own := local(cmp.Or(listen, tui.DefaultAddress))
	if listen != "" && e.flags.Sources["address"] == "" {
		e.flags.Address = own
		e.flags.Sources["address"] = "environment KAGZI_LISTEN"
	}
	return e.flags.Address == own
}

// answers says whether a server is there, whatever it answers.
func (e *env) answers(ctx context.Context) (bool, error) {
	api, closeConn, err := e.reach()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	_, err = api.HealthCheck(ctx, &kagziv1.HealthCheckRequest{})
	return status.Code(err) != codes.Unavailable, closeConn()
}

// reachFlags are the flags that a command line must repeat to come to the same server as this one.
// The secret of a key is shown to nobody.
var reachFlags = []string{"profile", "api-key-file", "tls", "tls-ca", "tls-client-cert", "tls-client-key",
	"tls-server-name"}

// home is where a command line goes with those of them that were given, and no other. Ask before
// the flags are made whole.
func (e *env) home(flags *pflag.FlagSet) model.Home {
	var h model.Home
	said := profile.Profile{}
	for _, name := range reachFlags {
		f := flags.Lookup(name)
		switch {
		case f == nil || !f.Changed:
		case f.Value.Type() == "bool":
			h.Flags = append(h.Flags, "--"+name+"="+f.Value.String())
		default:
			h.Flags = append(h.Flags, "--"+name, f.Value.String())
		}
	}
	if flags.Changed("profile") {
		said.Name = e.flags.Name
	}
	if found, err := e.find(said); err == nil { // what is wrong with them is told when they are made whole
		h.Namespace, h.Address = found.Namespace, found.Address
	}
	return h
}

// uiOptions are the settings of the UI from the flags, the environment and the person's files.
func (e *env) uiOptions(o *uiOptions) (view.Options, error) {
	options := view.Options{
		Namespace: e.flags.Namespace, Address: e.flags.Address, Source: e.flags.source("address"), Version: e.version,
		ReadOnly: o.readOnly, Open: o.first(),
		Theme: o.theme, NoColour: e.flags.NoColor, ASCII: o.ascii, Mouse: o.mouse, Refresh: o.refresh, Now: e.now,
		Lookup: e.lookup,
	}
	if dir, err := os.UserConfigDir(); err == nil {
		dir = filepath.Join(dir, "kagzi")
		if options.Config, err = view.LoadConfig(filepath.Join(dir, "tui.toml")); err != nil {
			return options, usagef("%w", err)
		}
		options.Themes, options.State = filepath.Join(dir, "themes"), filepath.Join(dir, "tui-state.toml")
	}
	if dir, err := os.UserCacheDir(); err == nil {
		options.Log = filepath.Join(dir, "kagzi", "tui-crash.txt")
	}
	return options, nil
}
