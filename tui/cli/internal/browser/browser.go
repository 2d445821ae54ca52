// Package browser opens a page in the browser of the person at this machine.
package browser

import (
	"errors"
	"fmt"
	"net/url"
	"os/exec"
)

// ErrNone reports that nobody at this machine could see a browser.
var ErrNone = errors.New("no browser can be opened here")

// Command returns the program that opens an address on a system, and its arguments; ErrNone if there is
// no screen to open it on. lookup reads an environment variable. The address must be HTTP: programs
// that open anything would run files too.
func Command(system, address string, lookup func(string) (string, bool)) ([]string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no address of a page", address)
	}
	set := func(name string) bool {
		value, _ := lookup(name)
		return value != ""
	}
	switch {
	case system == "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", u.String()}, nil
	case set("SSH_CONNECTION") && !set("DISPLAY") && !set("WAYLAND_DISPLAY"):
		return nil, ErrNone
	case system == "darwin":
		return []string{"open", u.String()}, nil
	case set("WSL_DISTRO_NAME"):
		return []string{"wslview", u.String()}, nil
	case set("DISPLAY") || set("WAYLAND_DISPLAY"):
		return []string{"xdg-open", u.String()}, nil
	}
	return nil, ErrNone // xdg-open would start a browser of the terminal
}

// Open starts the browser, and does not wait for it.
func Open(system, address string, lookup func(string) (string, bool)) error {
	command, err := Command(system, address, lookup)
	if err != nil {
		return err
	}
	cmd := exec.Command(command[0], command[1:]...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	go func() { _ = cmd.Wait() }() // so that it is no zombie; what it says is lost
	return nil
}
