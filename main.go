// Kagzi runs durable workflows: one binary is the server, the terminal UI and the command line.
// This file only wires the packages together.
package main

import (
	"context"
	"embed"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/kagzi/kagzi/backends"
	"github.com/kagzi/kagzi/backends/memory"
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/conformance"
	"github.com/kagzi/kagzi/engine/daemon"
	"github.com/kagzi/kagzi/engine/sandbox"
	"github.com/kagzi/kagzi/installer"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/bench"
	"github.com/kagzi/kagzi/tui/child"
	"github.com/kagzi/kagzi/tui/cli"
	"github.com/kagzi/kagzi/tui/demo"
	"github.com/kagzi/kagzi/tui/guide"
	"github.com/kagzi/kagzi/tui/mcp"
	"github.com/kagzi/kagzi/tui/scenario"
	"github.com/kagzi/kagzi/tui/web"
)

// version is set by releases: -ldflags "-X main.version=v1.2.3".
var version string

// guides holds the chapters that `kagzi help TOPIC` shows. The patterns match folders, so a folder
// without such a file is no error.
//
//go:embed */README.md */guide/*.md
var guides embed.FS

func main() { os.Exit(run(os.Args[1:])) }

// run runs the program and returns its exit code.
func run(args []string) int {
	ctx, stop := cli.UntilInterrupted(context.Background())
	defer stop()

	if err := backends.ConfigureProcess(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return cli.Execute(ctx, commands(versionOf(version, debug.ReadBuildInfo)), args, os.Stdin, os.Stdout, os.Stderr)
}

// commands is the command kagzi, with those of all packages in it.
func commands(v string) *cobra.Command {
	fetcher := cli.NewBackupClient(v)
	b := daemon.Backends{
		Open:    backends.Open,
		Migrate: backends.Migrate,
		Status:  backends.Status,
		Check:   backends.Check,
		Accept:  backends.Accept,
		Copy:    backends.Copy,
		Release: backends.Release,
		Holder:  backends.Holder,
		Backup:  backends.Backup,
		Receive: backends.Receive,
		Verify:  backends.Verify,
		Restore: backends.Restore,
		Service: func(ctx context.Context) (daemon.Service, bool) {
			s, found := installer.Find(ctx)
			return daemon.Service(s), found
		},
		Remote: daemon.Remote{Flags: fetcher.Flags, Fetch: fetcher.Fetch},
		Agents: func(conn grpc.ClientConnInterface, writes bool) http.Handler {
			topics, _ := guide.Load(guides) // a test loads them
			return mcp.Handler(mcp.Options{API: tui.Over(conn), Version: v, Writes: writes, Topics: topics})
		},
		Page: func(p daemon.Page) http.Handler {
			return web.Handler(web.Options{API: tui.Over(p.Conn), Base: p.Base, Version: v, ReadOnly: p.ReadOnly,
				Sessions: p.Sessions, Secure: p.Secure})
		},
	}
	root := cli.Root(v, cli.Local{
		Look:  func(ctx context.Context, file string) (*cli.Nearby, error) { return look(ctx, file, v, b) },
		Serve: func(ctx context.Context) (*cli.Nearby, error) { return serve(ctx, v, b) },
		Open: func(ctx context.Context, url string, create bool) (*cli.Nearby, error) {
			return open(ctx, url, create, v, b)
		},
		Empty: func(ctx context.Context) (*cli.Nearby, error) {
			return near(daemon.Over(ctx, memory.New(memory.Options{}).Open(nil), v))
		},
		Demo: func(seed uint64, at time.Time) scenario.Server {
			return sandbox.New(sandbox.Options{Seed: seed, Begin: at, Version: v,
				Open: func(h sandbox.Hooks) engine.Store {
					return memory.New(memory.Options{Now: h.Now, Due: h.Due, Notify: h.Notify, Outcomes: h.Outcomes,
						Wrote: h.Wrote}).Open(nil)
				}})
		},
		Examine: func(ctx context.Context) (checks []cli.Check) {
			for _, f := range daemon.Examine(ctx, b) {
				checks = append(checks, cli.Check(f))
			}
			return checks
		},
		Guides: guides,
	})
	root.AddCommand(daemon.Commands(v, b)...)
	root.AddCommand(installer.Command(installer.Options{
		Run: func(ctx context.Context, args []string) error {
			return daemon.Serve(ctx, v, b, args, func(r daemon.Ready) error {
				return installer.Ready(ctx, "serving on "+r.Address)
			})
		},
		Health: cli.Health,
		Listen: daemon.ListenIn,
	}))
	root.AddCommand(demo.Command(), bench.Command(), child.Command(), conformance.Command(inMemory))
	return root
}

// inMemory makes a database for the conformance suite; changed is called after each write. The result
// opens it, as often as servers start.
func inMemory(changed func()) func() engine.Store {
	d := memory.New(memory.Options{Endings: true, Wrote: changed})
	return func() engine.Store { return d.Open(nil) }
}

// look opens a database file for the terminal UI.
func look(ctx context.Context, file, version string, b daemon.Backends) (*cli.Nearby, error) {
	return near(daemon.Look(ctx, "sqlite:"+file, version, b))
}

// open opens a database for commands that work without a server.
func open(ctx context.Context, url string, create bool, version string, b daemon.Backends) (*cli.Nearby, error) {
	return near(daemon.Open(ctx, url, create, version, b))
}

// near returns a window as the client commands know it.
func near(w *daemon.Window, err error) (*cli.Nearby, error) {
	if err != nil {
		return nil, err
	}
	return &cli.Nearby{Database: w.Database.Database, Dial: w.Dial, Close: w.Close}, nil
}

// serve starts a server for the terminal UI, in this process.
func serve(ctx context.Context, version string, b daemon.Backends) (*cli.Nearby, error) {
	s, err := daemon.Start(ctx, version, b)
	if err != nil {
		return nil, err
	}
	return &cli.Nearby{Database: s.Ready.Database.Database, Address: s.Ready.Client, Close: s.Close}, nil
}

// versionOf returns the release's version, or what the Go toolchain recorded: the module's version
// for `go install`, the commit for a build in the repository.
func versionOf(release string, read func() (*debug.BuildInfo, bool)) string {
	if release != "" {
		return release
	}
	info, ok := read()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	commit, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = "+" + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ".dirty"
		}
	}
	return "devel" + commit + dirty
}
