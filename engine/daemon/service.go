package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/kagzi/kagzi/engine/certs"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
)

// Service is the service that is installed on this machine.
type Service struct {
	Name            string
	Config          string // its settings file
	Environment     string // its file of environment variables
	DataDir         string
	DatabaseURLFile string // file with the database URL; empty: none
}

// orService sets the database to that of the installed service if these settings name none and
// their own does not exist: root's commands are about the service, whose settings are not root's.
// note tells so; empty: nothing was changed.
func (c *Config) orService(ctx context.Context, find func(context.Context) (Service, bool)) (note string, err error) {
	if find == nil || c.DB != "" || c.DataDir != "" {
		return "", nil
	}
	own, _, err := c.database()
	if path, is := sqliteFile(own); err == nil && is && isThere(path) {
		return "", nil
	}
	s, found := find(ctx)
	if !found {
		return "", err
	}
	url, err := s.database()
	if err != nil {
		return "",
			usagef("find the database of the service %s: %w; run the command as root, or name the database with --db",
				s.Name, err)
	}
	c.DB = url
	c.Sources["db"] = "service " + s.Name
	return fmt.Sprintf("using the database of the service %s, %s; use --db or --data-dir for another",
		s.Name, output.Plain(withoutPassword(url))), nil
}

// database returns the URL of the service's database, by the precedence of the server: the URL's
// file, which is passed in the environment, the environment, then the settings file.
func (s Service) database() (url string, err error) {
	if s.DatabaseURLFile != "" {
		text, err := os.ReadFile(s.DatabaseURLFile)
		return strings.TrimSpace(string(certs.FileText(text))), err
	}
	text, err := os.ReadFile(s.Environment)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for line := range strings.Lines(string(certs.FileText(text))) {
		for _, name := range []string{"KAGZI_DB=", "KAGZI_DB_URL="} {
			if value, is := strings.CutPrefix(strings.TrimSpace(line), name); is && value != "" {
				return strings.Trim(value, `"'`), nil
			}
		}
	}
	if isThere(s.Config) {
		said, err := readFile(s.Config)
		if err != nil {
			return "", err
		}
		if value := said["db"].text; value != "" {
			return value, nil
		}
	}
	own := Config{DataDir: s.DataDir}
	url, _, err = own.database()
	return url, err
}
