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

// Finding is one thing that Examine looked at.
type Finding struct {
	Name   string // "data directory"
	State  string // "ok", "warn" or "bad"
	Text   string // raw text in one line: what was found
	Advice string // what to do about it; empty when it is ok
}

const (
	well     = "ok"
	worrying = "warn"
	wrong    = "bad"

	littleDisk = 1 << 30   // bytes left that deserve a word
	leastDisk  = 256 << 20 // below, a server refuses new runs
)

// Examine looks at what a server needs that is started here without flags: its settings, its data
// directory and the disk under it, the schema of its database, its ports. It changes nothing, and
// is for machines on which none runs.
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
			"put it right; kagzi server --print-config says where each setting comes from"}}
	}
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
		list = append(list, ofDirectory(dir))
		list = append(list, ofDisk(dir)...)
	}
	list = append(list, ofSchema(ctx, b, url))
	return append(list, ofPorts(ctx, &c)...)
}

func ofSettings(c *Config, warnings []string) Finding {
	f := Finding{Name: "settings", State: well, Text: "no file; the environment and the defaults hold"}
	if c.File != "" {
		f.Text = "read from " + c.File
	}
	if len(warnings) > 0 {
		f.State, f.Text, f.Advice = worrying, strings.Join(warnings, "; "), "say it as the warning does"
	}
	return f
}

// ofDirectory is about who else can get at the database.
func ofDirectory(dir string) Finding {
	f := Finding{Name: "data directory", State: well, Text: dir}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Text += " is not there yet; a server makes it"
		return f
	case err == nil && !info.IsDir():
		err = errors.New("it is no directory")
	case err == nil:
		err = platform.CheckPrivate(info)
	}
	if err != nil {
		f.State, f.Text, f.Advice = wrong, fmt.Sprintf("%s: %v", dir, err),
			"make it yours alone, or name another with --data-dir"
	}
	return f
}

// ofDisk is about the room that is left for a database; nothing where that cannot be known.
func ofDisk(dir string) []Finding {
	for { // of the nearest directory that is there
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	free, err := platform.FreeBytes(dir)
	if err != nil {
		return nil
	}
	f := Finding{Name: "disk", State: well, Text: fmt.Sprintf("%.1f GiB left for the database", float64(free)/(1<<30))}
	if free < littleDisk {
		f.State, f.Advice = worrying, "make room"
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
			"see that it is there and may be read: kagzi db status"}
	case status.Refusal != "":
		return Finding{"database", wrong, withoutPassword(url) + " is not to be served", status.Refusal}
	case status.Applied == 0:
		return Finding{"database", well, withoutPassword(url) + " is not there yet; a server makes it", ""}
	case status.Applied > status.Newest:
		return Finding{"database", wrong, fmt.Sprintf(
			"%s has schema %d, made by a newer program; this one knows %d", withoutPassword(url), status.Applied,
			status.Newest), "use the newer program"}
	case len(status.Pending) > 0:
		return Finding{"database", worrying, fmt.Sprintf(
			"%s has schema %d of %d", withoutPassword(url), status.Applied, status.Newest),
			"a server brings it up to date when it starts; so does: kagzi db migrate"}
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

// ofPorts says whether a server could listen where it is to.
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
			f.State, f.Text = wrong, fmt.Sprintf("%s cannot be listened on: %v%s", place.address, err,
				takenBy(place.address))
			f.Advice = "end what has it, or choose another with " + place.flag
		}
		list = append(list, f)
	}
	return list
}

// takenBy names the program that listens on an address, where that can be known: ", by nginx (process 12)".
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
