package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	at    = time.Unix(1700000000, 0).UTC()
	files = []file{{"kagzi", 0o755, []byte("program")}, {"man/man1/kagzi.1", 0o644, []byte(".TH")}}
)

func TestATarballHoldsTheFilesAndNothingOfWhoMadeIt(t *testing.T) {
	archive, err := tarball("kagzi_1", files, at)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(g); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Uname != "" || !h.ModTime.Equal(at) {
			t.Errorf("%s: owner %d %q at %v, want nobody's at %v", h.Name, h.Uid, h.Uname, h.ModTime, at)
		}
		got = append(got, fmt.Sprintf("%s %o %s", h.Name, h.Mode, content))
	}
	if want := []string{"kagzi_1/kagzi 755 program", "kagzi_1/man/man1/kagzi.1 644 .TH"}; !slices.Equal(got, want) {
		t.Errorf("files = %q, want %q", got, want)
	}
}

func TestAnArchiveMadeTwiceIsTheSame(t *testing.T) {
	for name, pack := range map[string]func(string, []file, time.Time) ([]byte, error){"tar": tarball, "zip": zipped} {
		first, err := pack("kagzi_1", files, at)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := pack("kagzi_1", files, at); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s: %v, the same: %v, want the same bytes", name, err, bytes.Equal(first, second))
		}
	}
}

func TestAZipHoldsTheFiles(t *testing.T) {
	archive, err := zipped("kagzi_1", files, at)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range z.File {
		if f.Name != "kagzi_1/"+files[i].path || f.Mode() != files[i].mode || !f.Modified.Equal(at) {
			t.Errorf("%s, %v, %v, want %s, %v, %v", f.Name, f.Mode(), f.Modified, files[i].path, files[i].mode, at)
		}
	}
}

// recipeOf is what nfpm would read for a family of packages.
func recipeOf(t *testing.T, kind string) recipe {
	t.Helper()
	r := release{version: "1.2.3", time: at, scratch: t.TempDir(), shared: []file{
		{"LICENSE", 0o644, []byte("Apache")}, {"README.md", 0o644, []byte("# Kagzi")},
		{"completions/kagzi.bash", 0o644, nil}, {"completions/_kagzi", 0o644, nil}, {"completions/kagzi.fish", 0o644, nil}, {"completions/kagzi.ps1", 0o644, nil},
		{"man/man1/kagzi.1", 0o644, []byte(".TH")},
	}}
	path, err := r.recipe(target{"linux", "amd64"}, kind, "/elsewhere/kagzi")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got recipe
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAPackagePutsEachFileInItsPlace(t *testing.T) {
	for kind, special := range map[string][]string{
		"deb": {"/usr/share/doc/kagzi/copyright 644", "/usr/share/zsh/vendor-completions/_kagzi 644"},
		"rpm": {"/usr/share/licenses/kagzi 755 dir", "/usr/share/licenses/kagzi/LICENSE 644", "/usr/share/zsh/site-functions/_kagzi 644"},
	} {
		want := append(special, "/etc/kagzi 755 dir", "/usr/share/doc/kagzi 755 dir", "/etc/kagzi/kagzi.env 600 config|noreplace", "/etc/kagzi/kagzi.toml 644 config|noreplace", "/usr/bin/kagzi 755",
			"/usr/lib/systemd/system/kagzi.service 644", "/usr/share/bash-completion/completions/kagzi 644", "/usr/share/doc/kagzi/README.md 644",
			"/usr/share/fish/vendor_completions.d/kagzi.fish 644", "/usr/share/man/man1/kagzi.1.gz 644")
		var got []string
		for _, c := range recipeOf(t, kind).Contents {
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %o %s", c.Path, c.Info.Mode, c.Type)))
			if !c.Info.MTime.Equal(at) {
				t.Errorf("%s: time of %s = %v, want %v", kind, c.Path, c.Info.MTime, at)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: files\n%s\nwant\n%s", kind, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestTheScriptsOfAPackageAreShell(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("SKIPPED: no shell here")
	}
	for when, path := range recipeOf(t, "deb").Scripts {
		if out, err := exec.Command(sh, "-n", path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", when, err, out)
		}
		if text, err := os.ReadFile(path); err != nil || !bytes.Contains(text, []byte(binary)) && when != "postremove" {
			t.Errorf("%s: %v, want it to know %s", when, err, binary)
		}
	}
}

func TestABillNamesEachModuleOfAProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := release{version: "1.2.3", time: at}
	text, err := r.billOf(self, target{"linux", "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	var b bill
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if got := b.Metadata.Component.URL; got != "pkg:golang/github.com/kagzi/kagzi@v1.2.3?goos=linux&goarch=amd64" || b.Metadata.Timestamp != "2023-11-14T22:13:20Z" {
		t.Errorf("the program is %s at %s, want kagzi 1.2.3 at the time of the release", got, b.Metadata.Timestamp)
	}
	refs := map[string]component{}
	for _, c := range b.Components {
		refs[c.Name] = c
	}
	service := refs["github.com/kardianos/service"]
	if len(service.Hashes) != 1 || len(service.Hashes[0].Content) != 64 || !strings.HasPrefix(service.URL, "pkg:golang/github.com/kardianos/service@v") {
		t.Errorf("github.com/kardianos/service = %+v, want it with its hash", service)
	}
	if _, ok := refs["std"]; !ok || len(refs) != len(b.Components) {
		t.Errorf("components = %d, of them different %d, want the standard library too and each once", len(b.Components), len(refs))
	}
	if got := componentOf("library", "a/b", "v1.0.0+incompatible", "").URL; got != "pkg:golang/a/b@v1.0.0%2Bincompatible" {
		t.Errorf("purl = %s, want + escaped", got)
	}
}

func TestAVersionThatIsNoneIsRefusedBeforeAnythingIsBuilt(t *testing.T) {
	for _, version := range []string{"", "1", "v1.2", "v1.2.3 -X main.x=y", "../1.2.3", "v1.2.3\n"} {
		if err := build(version, filepath.Join(t.TempDir(), "dist"), targets); err == nil || !strings.Contains(err.Error(), "v1.2.3-rc.1") {
			t.Errorf("build(%q) = %v, want the form of a version", version, err)
		}
	}
}

func TestTheTimeOfAReleaseIsSOURCE_DATE_EPOCH(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	if got, err := sourceDate(); err != nil || !got.Equal(at) {
		t.Errorf("time = %v, %v, want %v", got, err, at)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err := sourceDate(); err == nil || !strings.Contains(err.Error(), "seconds since 1970") {
		t.Errorf("error %v, want what it must be", err)
	}
}

func TestChecksumsAreThoseOfSha256sum(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeChecksums(dir, []string{"b", "a"}); err != nil {
		t.Fatal(err)
	}
	const want = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  a\n3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d  b\n"
	if text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS")); err != nil || string(text) != want {
		t.Errorf("SHA256SUMS = %q, %v, want %q", text, err, want)
	}
}
