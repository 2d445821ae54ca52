package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/kagzi/kagzi/installer"
)

var at = time.Unix(1700000000, 0).UTC()

// packages is the part of nfpm.yaml that the tests read.
type packages struct {
	Scripts  map[string]string `yaml:"scripts"`
	Contents []struct {
		Source string `yaml:"src"`
		Path   string `yaml:"dst"`
		Type   string `yaml:"type"`
		Info   struct {
			Mode fs.FileMode `yaml:"mode"`
		} `yaml:"file_info"`
	} `yaml:"contents"`
}

func readPackages(t *testing.T) packages {
	t.Helper()
	text, err := os.ReadFile("nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var p packages
	if err := yaml.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPackagesHoldTheServiceAsKagziInstallsIt(t *testing.T) {
	directory := t.TempDir()
	if err := writeService(directory); err != nil {
		t.Fatal(err)
	}
	files, err := installer.PackagedFiles(binary)
	if err != nil {
		t.Fatal(err)
	}
	p := readPackages(t)
	for _, f := range files {
		want := fmt.Sprintf("installer/package/files/root%s %o ", f.Path, f.Mode)
		if f.Settings {
			want += "config|noreplace"
		}
		got := ""
		for _, c := range p.Contents {
			if c.Path == f.Path {
				got = fmt.Sprintf("%s %o %s", c.Source, c.Info.Mode, c.Type)
			}
		}
		if got != want {
			t.Errorf("nfpm.yaml has %s as %q, want %q", f.Path, got, want)
		}
		text, err := os.ReadFile(filepath.Join(directory, "root", filepath.FromSlash(f.Path)))
		if err != nil || string(text) != f.Content {
			t.Errorf("%s: %v, %q, want %q", f.Path, err, text, f.Content)
		}
	}
	if len(files) != 3 {
		t.Errorf("files of the service = %d, want 3", len(files))
	}
}

func TestPackagesGiveEachFileAMode(t *testing.T) {
	for _, c := range readPackages(t).Contents {
		want := fs.FileMode(0o644)
		switch {
		case c.Path == binary, c.Type == "dir":
			want = 0o755
		case c.Path == "/etc/kagzi/kagzi.env":
			want = 0o600
		}
		if c.Info.Mode != want {
			t.Errorf("mode of %s = %o, want %o", c.Path, c.Info.Mode, want)
		}
	}
}

func TestScriptsAreShell(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("SKIPPED: no shell here")
	}
	scripts := readPackages(t).Scripts
	if len(scripts) != 3 {
		t.Errorf("scripts = %v, want three", scripts)
	}
	for when, path := range scripts {
		path = filepath.Join("..", "..", filepath.FromSlash(path))
		if out, err := exec.Command(sh, "-n", path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", when, err, out)
		}
		if text, err := os.ReadFile(path); err != nil || !bytes.Contains(text, []byte(binary)) && when != "postremove" {
			t.Errorf("%s: %v, want it to know %s", when, err, binary)
		}
	}
}

func TestAllBuildsUseTheSameFlags(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	script, releases := read("build.sh"), read("../../.goreleaser.yml")
	for _, want := range []string{"CGO_ENABLED=0", "GOFLAGS=", "-trimpath", "grpcnotrace", "nopgxregisterdefaulttypes", "nethttpomithttp2",
		"-s -w", "-X main.version="} {
		if !strings.Contains(script, want) || !strings.Contains(releases, want) {
			t.Errorf("build.sh or .goreleaser.yml does not set %s", want)
		}
	}
	compiled := func(text, pattern string) (flags []string) {
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			flags = append(flags, found[1])
		}
		return flags
	}
	of, as := compiled(script, `-gcflags='(.*)'`), compiled(releases, `(?m)^      - (\S+=(?:-l)?)$`)
	if len(of) == 0 || !slices.Equal(of, as) {
		t.Errorf("build.sh compiles with %q, .goreleaser.yml with %q", of, as)
	}
	for _, file := range []string{"linux.sh", "../appliance.sh", "../Dockerfile"} {
		if text := read(file); !strings.Contains(text, "installer/package/build.sh") || strings.Contains(text, "go build") {
			t.Errorf("%s does not build by build.sh", file)
		}
	}
}

func TestABillNamesEachModuleOfAProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := billOf("1.2.3", self, at)
	if err != nil {
		t.Fatal(err)
	}
	var b bill
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	url := regexp.MustCompile(`^pkg:golang/github\.com/kagzi/kagzi@v1\.2\.3\?goos=[a-z]+&goarch=[a-z0-9]+$`)
	if got := b.Metadata.Component.URL; !url.MatchString(got) || b.Metadata.Timestamp != "2023-11-14T22:13:20Z" {
		t.Errorf("the program is %s at %s, want kagzi 1.2.3 at the time of the release", got, b.Metadata.Timestamp)
	}
	refs := map[string]component{}
	for _, c := range b.Components {
		refs[c.Name] = c
	}
	service := refs["github.com/kardianos/service"]
	if len(service.Hashes) != 1 || len(service.Hashes[0].Content) != 64 ||
		!strings.HasPrefix(service.URL, "pkg:golang/github.com/kardianos/service@v") {
		t.Errorf("github.com/kardianos/service = %+v, want it with its hash", service)
	}
	if _, ok := refs["std"]; !ok || len(refs) != len(b.Components) {
		t.Errorf("components = %d, of them different %d, want the standard library too and each once",
			len(b.Components), len(refs))
	}
	if got := componentOf("library", "a/b", "v1.0.0+incompatible",
		"").URL; got != "pkg:golang/a/b@v1.0.0%2Bincompatible" {
		t.Errorf("purl = %s, want + escaped", got)
	}
}

func TestABadVersionIsRefusedBeforeAnythingIsBuilt(t *testing.T) {
	for _, version := range []string{"", "1", "v1.2", "v1.2.3 -X main.x=y", "../1.2.3", "v1.2.3\n"} {
		directory := filepath.Join(t.TempDir(), "files")
		if err := run([]string{"files", version, directory}); err == nil ||
			!strings.Contains(err.Error(), "v1.2.3-rc.1") {
			t.Errorf("files of version %q: %v, want the form of a version", version, err)
		}
	}
}

func TestTheTimeOfAReleaseIsSourceDateEpoch(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	if got, err := sourceDate(); err != nil || !got.Equal(at) {
		t.Errorf("time = %v, %v, want %v", got, err, at)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err := sourceDate(); err == nil || !strings.Contains(err.Error(), "seconds since 1970") {
		t.Errorf("error %v, want what it must be", err)
	}
}

func TestManualPagesAreCompressedAlike(t *testing.T) {
	first, err := compressed([]byte(".TH KAGZI"))
	if err != nil {
		t.Fatal(err)
	}
	if second, err := compressed([]byte(".TH KAGZI")); err != nil || !bytes.Equal(first, second) {
		t.Errorf("compressed twice: %v, the same: %v, want the same bytes", err, bytes.Equal(first, second))
	}
}
