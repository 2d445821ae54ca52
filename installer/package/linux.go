package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kagzi/kagzi/installer"
)

// nfpm makes packages of both families. It is run by its version and is none of our modules.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0"

//go:embed scripts
var scripts embed.FS

// binary is where packages put the program; the scripts say it too.
const binary = "/usr/bin/kagzi"

// recipe is what nfpm reads: JSON is YAML too.
type recipe struct {
	Name            string            `json:"name"`
	Arch            string            `json:"arch"`
	Platform        string            `json:"platform"`
	Version         string            `json:"version"`
	Section         string            `json:"section"`
	Priority        string            `json:"priority"`
	Maintainer      string            `json:"maintainer"`
	Description     string            `json:"description"`
	Vendor          string            `json:"vendor"`
	Homepage        string            `json:"homepage"`
	License         string            `json:"license"`
	DisableGlobbing bool              `json:"disable_globbing"`
	MTime           time.Time         `json:"mtime"`
	Contents        []packaged        `json:"contents"`
	Scripts         map[string]string `json:"scripts"`
	RPM             map[string]string `json:"rpm"`
}

// packaged is a file of a package.
type packaged struct {
	Source string `json:"src,omitempty"`
	Path   string `json:"dst"`
	Type   string `json:"type,omitempty"`
	Info   info   `json:"file_info"`
}

type info struct {
	Mode  fs.FileMode `json:"mode"`
	MTime time.Time   `json:"mtime"`
}

// packages makes a .deb and an .rpm of a program.
func (r *release) packages(t target, program string) ([]string, error) {
	made := []string{
		fmt.Sprintf("kagzi_%s_linux_%s.deb", r.version, t.arch),
		fmt.Sprintf("kagzi_%s_linux_%s.rpm", r.version, t.arch),
	}
	for _, name := range made {
		kind := strings.TrimPrefix(path.Ext(name), ".")
		recipe, err := r.recipe(t, kind, program)
		if err != nil {
			return nil, err
		}
		cmd := exec.Command("go", "run", nfpm, "package", "--config", recipe, "--packager", kind, "--target", filepath.Join(r.out, name))
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix()))
		if err := run(cmd); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// recipe writes all that a package holds into the scratch directory, with the file that says where each goes.
func (r *release) recipe(t target, kind, program string) (string, error) {
	directory := filepath.Join(r.scratch, t.os+"-"+t.arch, kind)
	p := recipe{
		Name: "kagzi", Arch: t.arch, Platform: t.os, Version: r.version, Section: "utils", Priority: "optional",
		Maintainer: "The Kagzi authors <kagzi@users.noreply.github.com>", Vendor: "Kagzi", Homepage: "https://github.com/kagzi/kagzi", License: "Apache-2.0",
		Description: "Durable workflows in one binary\n" +
			"Server, coordinator, terminal UI and command line for workflows that go on\nafter any crash, on an embedded database or on Postgres.",
		DisableGlobbing: true, MTime: r.time, Scripts: map[string]string{},
		RPM: map[string]string{"summary": "Durable workflows in one binary", "buildhost": "localhost", "group": "System Environment/Daemons"},
	}
	p.Contents = append(p.Contents, packaged{program, binary, "", info{0o755, r.time}})
	if err := r.addFiles(&p, kind, directory); err != nil {
		return "", err
	}
	p.addDirectories(r.time)
	if err := p.addScripts(directory); err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return "", err
	}
	file := filepath.Join(directory, "nfpm.yaml")
	return file, os.WriteFile(file, text, 0o644)
}

// addFiles adds what a package of that kind holds besides the program: the units of the service, and files that archives have as well.
func (r *release) addFiles(p *recipe, kind, directory string) error {
	add := func(where string, mode fs.FileMode, kind string, content []byte) error {
		source := filepath.Join(directory, "root", filepath.FromSlash(where))
		if err := os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
			return err
		}
		p.Contents = append(p.Contents, packaged{source, where, kind, info{mode, r.time}})
		return os.WriteFile(source, content, 0o644)
	}
	units, err := installer.PackagedFiles(binary)
	if err != nil {
		return err
	}
	for _, f := range units {
		kind := ""
		if f.Settings {
			kind = "config|noreplace"
		}
		if err := add(f.Path, f.Mode, kind, []byte(f.Content)); err != nil {
			return err
		}
	}
	for _, f := range r.shared {
		where, content, err := placeOf(f, kind)
		if err != nil {
			return err
		}
		if where == "" {
			continue
		}
		if err := add(where, f.mode, "", content); err != nil {
			return err
		}
	}
	return nil
}

// addDirectories adds the directories that are the package's own: an .rpm that does not name them leaves them behind.
func (p *recipe) addDirectories(at time.Time) {
	var own []string
	for _, c := range p.Contents {
		if d := path.Dir(c.Path); path.Base(d) == p.Name && !slices.Contains(own, d) {
			own = append(own, d)
		}
	}
	for _, d := range own {
		p.Contents = append(p.Contents, packaged{"", d, "dir", info{0o755, at}})
	}
}

// addScripts writes what runs around an installation and a removal.
func (p *recipe) addScripts(directory string) error {
	for when, name := range map[string]string{"postinstall": "postinst", "preremove": "prerm", "postremove": "postrm"} {
		text, err := scripts.ReadFile("scripts/" + name)
		if err != nil {
			return err
		}
		p.Scripts[when] = filepath.Join(directory, name)
		if err := os.WriteFile(p.Scripts[when], text, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// placeOf is where a family of packages has a file of an archive, empty when it has none, and as what.
func placeOf(f file, kind string) (where string, content []byte, err error) {
	zsh := map[string]string{"deb": "/usr/share/zsh/vendor-completions/_kagzi", "rpm": "/usr/share/zsh/site-functions/_kagzi"}
	license := map[string]string{"deb": "/usr/share/doc/kagzi/copyright", "rpm": "/usr/share/licenses/kagzi/LICENSE"}
	switch {
	case f.path == "LICENSE":
		return license[kind], f.content, nil
	case f.path == "README.md":
		return "/usr/share/doc/kagzi/README.md", f.content, nil
	case f.path == "completions/kagzi.bash":
		return "/usr/share/bash-completion/completions/kagzi", f.content, nil
	case f.path == "completions/_kagzi":
		return zsh[kind], f.content, nil
	case f.path == "completions/kagzi.fish":
		return "/usr/share/fish/vendor_completions.d/kagzi.fish", f.content, nil
	case strings.HasPrefix(f.path, "man/"):
		content, err = compressed(f.content)
		return "/usr/share/" + f.path + ".gz", content, err
	}
	return "", nil, nil
}
