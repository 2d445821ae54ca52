package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/kagzi/kagzi/installer"
)

// binary is where packages install the program; nfpm.yaml and the scripts have the path too.
const binary = "/usr/bin/kagzi"

// completions are the files of `kagzi completion`, by shell.
var completions = map[string]string{"bash": "kagzi.bash", "zsh": "_kagzi", "fish": "kagzi.fish",
	"powershell": "kagzi.ps1"}

// writeFiles writes into a directory, in place of what it wrote there before:
//
//	completions/   one file a shell
//	man/           the manual, as archives hold it: man1/ has the commands, man7/ the guide
//	man.gz/        the same compressed, as packages install it
//	root/          the unit and the settings of the service, by their place on the disk
//
// They come from a program of that version for this machine, which is built when none is given.
func writeFiles(version, directory, program string) (err error) {
	for _, old := range []string{"completions", "man", "man.gz", "root"} {
		if err := os.RemoveAll(filepath.Join(directory, old)); err != nil {
			return err
		}
	}
	if program == "" {
		scratch, err := os.MkdirTemp("", "kagzi-package-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(scratch) }()
		program = filepath.Join(scratch, "kagzi")
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-X main.version=v"+version, "-o", program,
			"github.com/kagzi/kagzi")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if err := command(build); err != nil {
			return err
		}
	}
	for shell, name := range completions {
		text, err := exec.Command(program, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("kagzi completion %s: %w", shell, err)
		}
		if err := write(filepath.Join(directory, "completions", name), text); err != nil {
			return err
		}
	}
	return errors.Join(writeManual(directory, program), writeService(directory))
}

func writeManual(directory, program string) error {
	for _, section := range []struct {
		name string
		args []string
	}{{"man1", nil}, {"man7", []string{"--guide"}}} {
		manual := filepath.Join(directory, "man", section.name)
		args := append([]string{"man", "--dir", manual}, section.args...)
		if err := command(exec.Command(program, args...)); err != nil {
			return err
		}
		pages, err := os.ReadDir(manual)
		if err != nil {
			return err
		}
		for _, page := range pages {
			text, err := os.ReadFile(filepath.Join(manual, page.Name()))
			if err != nil {
				return err
			}
			if text, err = compressed(text); err != nil {
				return err
			}
			if err := write(filepath.Join(directory, "man.gz", section.name, page.Name()+".gz"), text); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeService writes what `kagzi service install` would write for a package's program.
func writeService(directory string) error {
	files, err := installer.PackagedFiles(binary)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := write(filepath.Join(directory, "root", filepath.FromSlash(f.Path)), []byte(f.Content)); err != nil {
			return err
		}
	}
	return nil
}

func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

// compressed returns content as gzip -n9 would write it.
func compressed(content []byte) ([]byte, error) {
	var b bytes.Buffer
	g, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = g.Write(content)
	err = errors.Join(err, g.Close())
	return b.Bytes(), err
}
