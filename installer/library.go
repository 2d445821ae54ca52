//go:build unix

package installer

import (
	"fmt"

	"github.com/kardianos/service"
)

// library is what is used of github.com/kardianos/service to register: it writes a definition and enables it, and takes it away.
// Starting and stopping is not left to it: it drops what systemctl says about a failure, uses launchctl's old commands, and waits
// on Windows without end.
type library interface {
	Install() error
	Uninstall() error
}

// systemOf finds a service manager of the library by its name: what it detects by itself can be wrong in containers.
func systemOf(name string) (service.System, error) {
	for _, s := range service.AvailableSystems() {
		if s.String() == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("this build knows no service manager %s", name)
}

// definer makes a library that writes a definition as it is.
func definer(system, name string, user bool, option string) func(definition string) (library, error) {
	return func(definition string) (library, error) {
		s, err := systemOf(system)
		if err != nil {
			return nil, err
		}
		return s.New(nil, &service.Config{Name: name, Executable: "/", Option: service.KeyValue{"UserService": user, option: definition}})
	}
}
