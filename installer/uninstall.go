package installer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// uninstall stops a service and removes its definition. With purge it also removes settings, data
// and logs; otherwise it prints where they are.
func uninstall(ctx context.Context, m manager, s Spec, d *disk, purge bool, out io.Writer) error {
	if err := m.available(ctx); err != nil {
		return err
	}
	_, found, err := m.definition(ctx)
	if err != nil {
		return err
	}
	if found {
		if err := m.stop(ctx); err != nil {
			return fmt.Errorf("stop %s: %w", s.Name, err)
		}
		if err := m.unregister(ctx); err != nil {
			return fmt.Errorf("unregister %s: %w", s.Name, err)
		}
		fmt.Fprintf(out, "uninstalled %s\n", s.Name)
	} else {
		fmt.Fprintf(out, "%s is not installed\n", s.Name)
	}
	for _, path := range m.additions() {
		fmt.Fprintf(out, "kept %s, which was created by hand and also applies to the next %s; remove it by hand\n",
			plain(path), s.Name)
	}
	if packaged, _ := m.packaged(); packaged != "" {
		fmt.Fprintf(out, "the service of the package is in effect again: %s; start it with: kagzi service start%s\n",
			plain(packaged), s.flags())
	}
	if purge && !found && !s.remains(d) {
		return nil // the paths of that name belong to something else
	}
	if purge {
		return errors.Join(s.purge(d, out), s.purgeBinary(d, m.place(), out))
	}
	kept := s.leftovers()
	if s.Copied {
		kept = append(kept, s.Binary)
	}
	for _, path := range kept {
		if _, err := os.Lstat(d.at(path)); err == nil {
			fmt.Fprintf(out, "kept %s\n", plain(path))
		}
	}
	return nil
}

// removable rejects a service installed by a package, and data used by the package's service.
func removable(m manager, name string, purge bool) error {
	packaged, inEffect := m.packaged()
	if inEffect || packaged != "" && purge {
		return refuse(exitConflict,
			"the service %s and its data belong to the package that installed %s; remove the package "+
				"with apt, dnf or your package manager", name, plain(packaged))
	}
	return nil
}

// ours reports whether this program wrote a definition whose record is lost or is for another
// service, by its command line, which no other program has.
func ours(definition, name string) bool {
	if _, err := specOf(definition); err == nil {
		return true
	}
	return strings.Contains(definition, " service run --name "+name) || strings.Contains(definition, label(name))
}

// remains reports whether an uninstalled service has left its settings or its database, which shows
// that the paths of its name are its own.
func (s Spec) remains(d *disk) bool {
	for _, path := range []string{s.Config, joinOn(s.System, s.DataDir, "kagzi.db")} {
		if _, err := os.Lstat(d.at(path)); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// leftovers returns what a service has on disk, except the program.
func (s Spec) leftovers() []string {
	paths := []string{s.DataDir}
	if s.dynamic() {
		paths = append(paths, s.privateDir())
	}
	if s.LogDir != "" {
		paths = append(paths, s.LogDir)
	}
	paths = append(paths, s.Config)
	if s.System == "linux" && !s.User {
		paths = append(paths, environmentFile(s))
	}
	return paths
}

// privateDir returns where systemd keeps the data of a dynamic user; DataDir is a link to it.
func (s Spec) privateDir() string { return joinOn(s.System, "/var/lib/private", s.Name) }

// purge removes everything that a service leaves, except what others may use too.
func (s Spec) purge(d *disk, out io.Writer) error {
	var failures []error
	for _, path := range s.leftovers() {
		if _, err := os.Lstat(d.at(path)); err != nil {
			continue
		}
		if why := s.shared(d, path); why != "" {
			fmt.Fprintf(out, "kept %s, %s\n", plain(path), why)
			continue
		}
		if err := os.RemoveAll(d.at(path)); err != nil {
			failures = append(failures, err)
			continue
		}
		fmt.Fprintf(out, "removed %s\n", plain(path))
	}
	// remove the directories around them if empty
	for _, path := range []string{dir(s.System, s.Config), dir(s.System, s.DataDir)} {
		if filepath.Base(path) == s.Name || filepath.Base(path) == capital(s.Name) {
			_ = os.Remove(d.at(path))
		}
	}
	return errors.Join(failures...)
}

// shared returns why something that a service leaves may be used by others, or "". A path chosen by
// the user may contain anything, for example the environment files of several services. The
// settings of a user service may contain the profiles and keys of the user's clients.
func (s Spec) shared(d *disk, path string) (why string) {
	config, data, logs := d.places.directories(s.Name, s.User)
	chosen := false
	switch path {
	case s.DataDir:
		chosen = path != data
	case s.LogDir:
		chosen = path != logs
	case s.Config, environmentFile(s):
		chosen = dir(s.System, path) != config
	}
	if chosen {
		return "which was set by hand; remove it by hand"
	}
	if text, err := os.ReadFile(d.at(path)); err == nil && path == s.Config && clientTable.Match(text) {
		return "which also has settings of clients; remove it by hand if you no longer need it"
	}
	return ""
}

// clientTable matches the start of a client table in a settings file, in every form of TOML.
var clientTable = regexp.MustCompile(`(?m)^[ \t]*\[?[ \t]*["']?(client|profile)["']?[ \t]*[].=]`)

// copied reports whether a program copied by the installation exists.
func (s Spec) copied(d *disk) bool {
	_, err := os.Lstat(d.at(s.Binary))
	return err == nil && s.Copied
}

// purgeBinary removes the copied program, unless another service uses it.
func (s Spec) purgeBinary(d *disk, place string, out io.Writer) error {
	if !s.copied(d) {
		return nil
	}
	why, err := s.sharedBinary(place)
	if err != nil {
		return err
	}
	if why != "" {
		fmt.Fprintf(out, "kept %s, %s\n", plain(s.Binary), why)
		return nil
	}
	if err := os.Remove(d.at(s.Binary)); err != nil {
		return err
	}
	fmt.Fprintf(out, "removed %s\n", plain(s.Binary))
	return nil
}

// sharedBinary returns why the program must stay, or "" if only this service uses it. place is
// where the service's own definition is.
func (s Spec) sharedBinary(place string) (why string, err error) {
	if s.System == "windows" { // it cannot remove a program that may be this running one
		return "which Windows cannot remove while it runs; remove it by hand", nil
	}
	others, err := s.runners(place)
	if len(others) > 0 {
		why = "which " + others[0].Name + " uses"
	}
	return why, err
}

// runners returns the other services that run the same program and have their definitions in the
// same directory as place. On Windows there is no such directory and it returns none.
func (s Spec) runners(place string) (others []Spec, err error) {
	if s.System == "windows" {
		return nil, nil
	}
	definitions, err := filepath.Glob(filepath.Join(filepath.Dir(place), "*"+filepath.Ext(place)))
	if err != nil {
		return nil, err
	}
	for _, file := range definitions {
		definition, err := os.ReadFile(file)
		if err != nil || file == place {
			continue // a unit that is not ours, or this one
		}
		if other, err := specOf(string(definition)); err == nil && other.Binary == s.Binary {
			others = append(others, other)
		}
	}
	return others, nil
}
