package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kagzi/kagzi/engine/daemon/internal/platform"
)

// Finding is the result of one check of Examine.
type Finding struct {
	Name   string // "data directory"
	State  string // "ok", "warn" or "bad"
	Text   string // one line of raw text: what was found
	Advice string // how to fix it; empty if ok
}

const (
	well     = "ok"
	worrying = "warn"
	wrong    = "bad"

	littleDisk = 1 << 30   // bytes left; below is a warning
	leastDisk  = 256 << 20 // below, a server refuses new runs
)

// Examine checks what a server without flags needs on this machine: settings, data directory and
// its disk, the database schema, and ports. It changes nothing and is meant for machines where no
// server runs.
func Examine(ctx context.Context, b Backends) []Finding { return examine(ctx, b, system()) }

func examine(ctx context.Context, b Backends, from surroundings) []Finding {
	flags := pflag.NewFlagSet("server", pflag.ContinueOnError)
	register(flags, serverSettings)
	c, warnings, err := resolve(flags, serverSettings, from)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return []Finding{{"settings", wrong, err.Error(),
			"fix the setting; kagzi server --print-config shows where each comes from"}}
	}
	places := c.placeWarnings()
	list := []Finding{ofSettings(&c, warnings)}
	url, dir, err := c.database()
	if err != nil {
		return append(list, Finding{"database", wrong, err.Error(), ""})
	}
	path, embedded := strings.CutPrefix(url, "sqlite:")
	if embedded {
		if dir == "" {
			dir = filepath.Dir(strings.TrimPrefix(path, "//"))
		}
		list = append(list, ofDirectory(dir, places))
		list = append(list, ofDisk(dir)...)
	}
	list = append(list, ofSchema(ctx, b, url))
	return append(list, ofPorts(ctx, &c)...)
}

func ofSettings(c *Config, warnings []string) Finding {
	f := Finding{Name: "settings", State: well, Text: "no file; using the environment and defaults"}
	if c.File != "" {
		f.Text = "read from " + c.File
	}
	if len(warnings) > 0 {
		f.State, f.Text, f.Advice = worrying, strings.Join(warnings, "; "), "change the setting as the warning says"
	}
	return f
}

// ofDirectory checks who else can access the data directory. warnings are those about directories.
func ofDirectory(dir string, warnings []string) Finding {
	f := Finding{Name: "data directory", State: well, Text: dir}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Text += " does not exist yet; a server creates it"
		err = nil
	case err == nil && !info.IsDir():
		err = errors.New("it is not a directory")
	case err == nil:
		_, err = platform.CheckPrivate(info)
	}
	if err != nil {
		f.State, f.Text, f.Advice = wrong, fmt.Sprintf("%s: %v", dir, err),
			"restrict it to your user, or choose another with --data-dir"
	}
	if f.State == well && len(warnings) > 0 {
		f.State, f.Text, f.Advice = worrying, strings.Join(warnings, "; "),
			"nothing, if it is a volume of a container; otherwise run chmod 700"
	}
	return f
}

// ofDisk checks the free disk space; nil if unknown.
func ofDisk(dir string) []Finding {
	for { // of the nearest existing directory
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	free, err := platform.FreeBytes(dir)
	if err != nil {
		return nil
	}
	f := Finding{Name: "disk", State: well, Text: fmt.Sprintf("%.1f GiB free for the database", float64(free)/(1<<30))}
	if free < littleDisk {
		f.State, f.Advice = worrying, "free disk space"
	}
	if free < leastDisk {
		f.State, f.Text = wrong, f.Text+": new runs would be refused"
	}
	return []Finding{f}
}

func ofSchema(ctx context.Context, b Backends, url string) Finding {
	status, err := b.Status(ctx, url)
	switch {
	case err != nil:
		return Finding{"database", wrong, withoutPassword(url) + ": " + err.Error(),
			"check that it exists and is readable: kagzi db status"}
	case status.Refusal != "":
		return Finding{"database", wrong, withoutPassword(url) + " cannot be served", status.Refusal}
	case status.Applied == 0:
		return Finding{"database", well, withoutPassword(url) + " does not exist yet; a server creates it", ""}
	case status.Applied > status.Newest:
		return Finding{"database", wrong, fmt.Sprintf(
			"%s has schema %d, made by a newer version; this one knows %d", withoutPassword(url), status.Applied,
			status.Newest), "use the newer version"}
	case len(status.Pending) > 0:
		return Finding{"database", worrying, fmt.Sprintf(
			"%s has schema %d of %d", withoutPassword(url), status.Applied, status.Newest),
			"a server updates it at startup, or run: kagzi db migrate"}
	}
	text := fmt.Sprintf("%s, schema %d", withoutPassword(url), status.Applied)
	if status.Place != "" {
		text += " in the Postgres schema " + status.Place
	}
	if len(status.Warnings) > 0 {
		return Finding{"database", worrying, text, strings.Join(status.Warnings, "; ")}
	}
	return Finding{"database", well, text, ""}
}

// ofPorts checks that a server could listen on its addresses.
func ofPorts(ctx context.Context, c *Config) []Finding {
	var list []Finding
	for _, place := range []struct{ flag, address string }{{"--listen", c.Listen}, {"--http", c.HTTP}} {
		if place.address == "" {
			continue
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", place.address)
		if err == nil {
			err = l.Close()
		}
		f := Finding{Name: "port", State: well, Text: place.address + " is free"}
		if err != nil {
			if op := (*net.OpError)(nil); errors.As(err, &op) {
				err = op.Err
			}
			f.State, f.Text = wrong, fmt.Sprintf("cannot listen on %s: %v%s", place.address, err,
				takenBy(place.address))
			f.Advice = "stop that program, or choose another address with " + place.flag
		}
		list = append(list, f)
	}
	return list
}

// takenBy names the program listening on an address, if known: ", by nginx (process 12)".
func takenBy(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	if name := platform.ListenerOn(port); name != "" {
		return ", taken by " + name
	}
	return ""
}
