package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/profile"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/cli/internal/browser"
	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/web"
	"github.com/kagzi/kagzi/tui/web/door"
)

// webOptions are the flags of `kagzi web`.
type webOptions struct {
	db      string
	capsule string
}

func newWeb(e *env, o *webOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "web [CAPSULE]",
		Short: "Open the web page of a server, of a database file or of an exported run",
		Long: `Open the web page of the server in a browser, and print its address.

With --db or a CAPSULE, show a database file or an exported run without a server, read-only, until
Ctrl-C. The page is on a free port of 127.0.0.1. Only the browser that opens the printed address sees
it, because the address holds a token.

A capsule is the file that kagzi workflow export writes. Its runs get new ids here, and open ones are
shown as paused. Nothing of it is kept.`,
		Example: `  kagzi web
  kagzi web --db backup.db
  kagzi web order-17.zip`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.capsule = args[0]
			}
			switch {
			case o.capsule != "" && o.db != "":
				return usagef("give either --db or a CAPSULE, not both")
			case o.db != "":
				return runWebFile(cmd, e, o)
			case o.capsule != "":
				return runWebCapsule(cmd, e, o)
			}
			return e.run(cmd, func(ctx context.Context, c *client) error {
				page, err := c.webPage(ctx)
				if err != nil {
					return err
				}
				return e.openPage(cmd, c.out, page+"/")
			})
		},
	}
	cmd.Flags().StringVar(&o.db, "db", "", "show this database file, read-only")
	e.register(cmd)
	return cmd
}

// runWebFile shows a database file.
func runWebFile(cmd *cobra.Command, e *env, o *webOptions) error {
	if strings.HasPrefix(o.db, "postgres://") || strings.HasPrefix(o.db, "postgresql://") {
		return usagef("--db opens an SQLite file; for Postgres, run a server on it with --web-read-only")
	}
	file := strings.TrimPrefix(o.db, "sqlite:") // as other --db flags accept it
	near, err := e.local.Look(cmd.Context(), file)
	if err != nil {
		return err
	}
	return e.show(cmd, near, file, "/", "read-only: "+filepath.Base(file))
}

// runWebCapsule shows an exported run. It is imported into a database in memory, with the limits of
// every import.
func runWebCapsule(cmd *cobra.Command, e *env, o *webOptions) error {
	file, err := os.Open(o.capsule)
	if err != nil {
		return &usageError{err: err}
	}
	defer func() { _ = file.Close() }() // only read from
	near, err := e.local.Empty(cmd.Context())
	if err != nil {
		return err
	}
	run, err := e.importInto(cmd, near, o.capsule, file)
	if err != nil {
		return errors.Join(err, near.Close())
	}
	return e.show(cmd, near, o.capsule, web.RunPath("", profile.DefaultNamespace, run),
		"exported run, read-only: "+filepath.Base(o.capsule))
}

// importInto imports a capsule into a database of this process, and returns the id of its run.
func (e *env) importInto(cmd *cobra.Command, near *Nearby, name string, file io.Reader) (string, error) {
	api, closeConn, err := e.dial(tui.DialOptions{Address: near.Database, Dialer: near.Dial})
	if err != nil {
		return "", err
	}
	c := e.client(cmd, api, near.Database)
	c.namespace = profile.DefaultNamespace
	answer, err := sendCapsule(cmd.Context(), c, &importOptions{file: name, requestID: e.newID()}, file)
	if err != nil {
		err = &callError{err: err, hint: "give a complete file written by kagzi workflow export: " + name}
	}
	return answer.GetRunId(), errors.Join(err, closeConn())
}

// show serves the page of a database in this process until the command is interrupted, then closes
// the database.
func (e *env) show(cmd *cobra.Command, near *Nearby, name, path, banner string) error {
	api, closeConn, err := e.dial(tui.DialOptions{Address: name, Dialer: near.Dial})
	if err != nil {
		return errors.Join(err, near.Close())
	}
	d, err := door.Open(cmd.Context())
	if err != nil {
		return errors.Join(err, closeConn(), near.Close())
	}
	page := web.Handler(web.Options{API: api, Version: e.version, ReadOnly: true, Banner: banner})
	out := newOutput(e.streams(cmd), e.flags, e.lookup)
	out.say("serving %s until Ctrl-C", render.Safe(name))
	err = e.openPage(cmd, out, d.URL(path))
	if err == nil {
		err = d.Serve(cmd.Context(), page)
	}
	return errors.Join(err, closeConn(), near.Close())
}

// openPage prints an address and, for a person at a terminal, opens it in a browser.
func (e *env) openPage(cmd *cobra.Command, out *output, address string) error {
	if _, err := fmt.Fprintln(e.streams(cmd).out, render.Safe(address)); err != nil {
		return err
	}
	if !e.streams(cmd).outTTY {
		return nil
	}
	if err := e.browse(address); err != nil {
		out.say("%v; open the address yourself", err)
	}
	return nil
}

// browse opens an address in the browser of this machine.
func (e *env) browse(address string) error { return browser.Open(runtime.GOOS, address, e.lookup) }

// showPage opens the page of a run.
func (e *env) showPage(ctx context.Context, cmd *cobra.Command, c *client, o *showOptions) error {
	run, err := c.find(ctx, o.id, o.external)
	if err != nil {
		return err
	}
	page, err := c.webPage(ctx)
	if err != nil {
		return err
	}
	return e.openPage(cmd, c.out, page+web.RunPath("", c.namespace, run.GetRunId()))
}

// webPage returns the address of the server's web page, without a slash at its end, from the settings
// that the server tells.
func (c *client) webPage(ctx context.Context) (string, error) {
	settings, err := c.settings(ctx)
	if err != nil {
		return "", err
	}
	const off = "off"
	switch at := settings["http"]; {
	case len(settings) == 0:
		return "", usagef("the server tells its settings only to admins, operators and viewers: open its web page yourself")
	case cmp.Or(at, off) == off:
		return "", usagef("the server serves no HTTP; start it with --http HOST:PORT")
	case cmp.Or(settings["web"], off) == off:
		return "", usagef("the server serves no web page; start it with --web on")
	default:
		return pageAt(at, c.address, settings)
	}
}

// settings returns the server's settings, as far as it tells them to the caller.
func (c *client) settings(ctx context.Context) (map[string]string, error) {
	info, err := c.GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{})
	settings := map[string]string{}
	for _, f := range info.GetFacts() {
		if f.GetSection() == "settings" {
			settings[f.GetName()] = f.GetValue()
		}
	}
	return settings, err
}

// pageAt returns the address of the server's HTTP as this machine can reach it: where the server says
// that it listens, or, if that is on all addresses, at the host where its API was reached.
func pageAt(listens, reached string, settings map[string]string) (string, error) {
	host, port, err := net.SplitHostPort(listens)
	if err != nil {
		return "", fmt.Errorf("the server's HTTP address %q: %w", listens, err)
	}
	scheme := "http"
	if address, err := netip.ParseAddr(host); err != nil || !address.Unmap().IsLoopback() {
		if host == "" || address.IsUnspecified() {
			if host, _, err = net.SplitHostPort(profile.Addresses(reached)[0]); err != nil {
				return "", err
			}
		}
		if cert := settings["tls-cert"]; cert != "" && cert != "off" {
			scheme = "https"
		}
	}
	base := settings["http-base-path"]
	if base == "off" {
		base = ""
	}
	return scheme + "://" + net.JoinHostPort(host, port) + base, nil
}
