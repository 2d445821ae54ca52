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
	"github.com/kagzi/kagzi/tui/cli/internal/diagnosis"
	"github.com/kagzi/kagzi/tui/cli/internal/flagvalue"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/scenario"
	"github.com/kagzi/kagzi/tui/view"
)

// Local holds what works without a running server. main sets it, because it needs packages that
// this one may not import. A nil function is unavailable.
type Local struct {
	// Look opens a database file read-only in this process.
	Look func(ctx context.Context, file string) (*Nearby, error)
	// Serve starts a server in this process, on the embedded database at the default address.
	Serve func(ctx context.Context) (*Nearby, error)
	// Open opens the database at a URL in this process, as its server would, for a caller with all
	// rights. An empty URL means the database of the server settings. A missing database is created
	// only with create.
	Open func(ctx context.Context, url string, create bool) (*Nearby, error)
	// Empty opens an empty database in memory in this process, on which nothing happens by itself.
	Empty func(ctx context.Context) (*Nearby, error)
	// Demo starts a server in memory in this process. Its clock starts at a time and stands still
	// until moved. The seed determines everything.
	Demo func(seed uint64, at time.Time) scenario.Server
	// Examine checks what a server needs on this machine if none runs: files, disk and ports.
	Examine func(ctx context.Context) []Check
	// Guides holds the Markdown files of `kagzi help TOPIC`, by their paths in the repository.
	Guides fs.FS
}

// Check is the result of one check of doctor.
type Check = diagnosis.Check

// Nearby is a server in this process.
type Nearby struct {
	Database string
	Address  string                                  // where others reach it; empty if nowhere
	Dial     func(context.Context) (net.Conn, error) // nil: use Address
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

// addUI adds `kagzi tui`, and makes `kagzi` alone in a terminal open it.
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
		Short: "Open the terminal UI: watch and control everything live",
		Long: `Open the terminal UI on a running server: runs, workers, schedules and queues, live, with problems,
their causes and the keys to fix them. Press ? for help, : for commands, / to filter.

--db opens a database file read-only, without a server or next to a running one. --demo shows demo
data and needs no server.

Settings are read from kagzi/tui.toml in your configuration directory. NO_COLOR is honoured.`,
		Example: `  kagzi tui
  kagzi tui --view runs --filter 'status:failed since:24h'
  kagzi tui --db backup.db
  kagzi tui --demo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runUI(cmd, e, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.db, "db", "",
		"open an SQLite database file read-only, without a server: FILE or sqlite:FILE")
	f.BoolVar(&o.demo, "demo", false, "show demo data, without a server")
	f.BoolVar(&o.readOnly, "read-only", false, "disable all actions that change something")
	f.StringVar(&o.theme, "theme", "", "theme: terminal, dark, light, contrast, mono, or your own")
	f.BoolVar(&o.ascii, "ascii", false, "use ASCII characters only")
	f.BoolVar(&o.mouse, "mouse", false, "use the mouse; by default it is left to the terminal")
	f.StringVar(&o.view, "view", "",
		"first view: overview, runs, workers, schedules, queues, server, events, keys, audit")
	f.StringVar(&o.run, "run", "", "open this run first")
	f.StringVar(&o.filter, "filter", "", "first show the runs that match this filter")
	f.Var(flagvalue.Duration(&o.refresh), "refresh", "draw at most once per this time, such as 1s on a slow connection")
	e.register(cmd)
	return cmd
}

// first returns the command that opens the first view.
func (o *uiOptions) first() string {
	switch {
	case o.run != "":
		return "run " + quoted(o.run)
	case o.filter != "" && (o.view == "" || o.view == "runs"):
		return "runs " + o.filter // taken as typed
	}
	return o.view
}

// quoted returns a word for a command of the UI; a quote in it is put in quotes of the other kind.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" }

// oneOf lists flags that exclude each other.
var oneOf = [][]string{{"db", "demo", "address"}, {"run", "view"}}

// checkOneOf rejects two flags that exclude each other.
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

// runServerUI opens the UI on the server at the address.
func runServerUI(cmd *cobra.Command, e *env, o *uiOptions) error {
	return showServer(cmd, e, o, "", e.reach)
}

// showServer opens the UI on a server. note is shown in the UI; empty if the server was reached as
// usual.
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

// show runs the UI. An option that it cannot satisfy is a usage error.
func show(ctx context.Context, o view.Options) error {
	err := view.Run(ctx, o)
	if wrong := (*view.OptionError)(nil); errors.As(err, &wrong) {
		return usagef("%w", wrong)
	}
	return err
}

// runFileUI opens the UI on a database file.
func runFileUI(cmd *cobra.Command, e *env, o *uiOptions) error {
	options, err := e.uiOptions(o)
	if err != nil {
		return err
	}
	if strings.HasPrefix(o.db, "postgres://") || strings.HasPrefix(o.db, "postgresql://") {
		return usagef(
			"--db opens an SQLite file; for Postgres, run a server on it and use: kagzi tui --read-only")
	}
	o.db = strings.TrimPrefix(o.db, "sqlite:") // as other --db flags accept it
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
	options.Home.Address = o.db // not an address for a command line
	return errors.Join(show(cmd.Context(), options), closeConn(), near.Close())
}

// demoSeed makes every demo the same.
const demoSeed = 12

// runDemoUI opens the UI on a server in memory that plays a demo day: part of it before the first
// screen, the rest live.
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
	day.Advance(e.now().Sub(begin)) // the time that playing took
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

// runAlone opens the UI on the server at the address. If none answers and no other address was
// given, it starts a server in this process.
func runAlone(cmd *cobra.Command, e *env) error {
	// `kagzi` alone has no flags: use the environment and the profile
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
	fmt.Fprintf(cmd.ErrOrStderr(), "no server answers at %s: serving %s in this process until the UI is closed\n",
		render.Safe(e.flags.Address), render.Safe(near.Database))
	return errors.Join(runNearUI(cmd, e, o, near), near.Close())
}

// runNearUI opens the UI on a server in this process, by its Dial function or its address.
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

// goHome targets the listen address of this machine's server settings if no other address was
// given, and reports whether it did.
func (e *env) goHome() bool {
	listen, _ := e.lookup("KAGZI_LISTEN")
	own := local(cmp.Or(listen, tui.DefaultAddress))
	if listen != "" && e.flags.Sources["address"] == "" {
		e.flags.Address = own
		e.flags.Sources["address"] = "environment KAGZI_LISTEN"
	}
	return e.flags.Address == own
}

// answers reports whether a server is there, whatever it answers.
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

// reachFlags are the flags that a printed command must repeat to reach the same server. The secret
// of a key is never printed.
var reachFlags = []string{"profile", "api-key-file", "tls", "tls-ca", "tls-client-cert", "tls-client-key",
	"tls-server-name"}

// home returns the target of printed commands, with those flags that were given. Call it before the
// flags are resolved.
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
	if found, err := e.find(said); err == nil { // errors are reported when the flags are resolved
		h.Namespace, h.Address = found.Namespace, found.Address
	}
	return h
}

// uiOptions returns the UI's settings from the flags, the environment and the user's files.
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
