package e2e

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fileName matches a Go or SQL file, or several with the same prefix, as overviews name them:
// "tx_*.go", "sql/claim.sql".
var fileName = regexp.MustCompile(`[a-z0-9_*/]+\.(go|sql)\b`)

func TestOverviewsNameOnlyExistingFiles(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	named := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		named += wantFiles(t, path, file.Doc.Text(), filepath.Dir(path))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if named < 100 {
		t.Errorf("%d files are named in overviews of packages, want more: are they read?", named)
	}
	readmes, err := filepath.Glob(filepath.Join(root, "*", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	named = 0
	for _, readme := range readmes {
		text, err := os.ReadFile(readme)
		if err != nil {
			t.Fatal(err)
		}
		named += wantFiles(t, readme, string(text), root, filepath.Dir(readme),
			filepath.Join(root, "backends", "sqlite"), filepath.Join(root, "backends", "postgres"))
	}
	if named < 20 {
		t.Errorf("%d files are named in READMEs of folders, want more: are they read?", named)
	}
}

// wantFiles checks that the files which an overview names exist in these directories, and returns
// how many it names.
func wantFiles(t *testing.T, where, text string, dirs ...string) (named int) {
	t.Helper()
	for _, name := range fileName.FindAllString(text, -1) {
		named++
		found := false
		for _, dir := range dirs {
			matches, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(name)))
			found = found || err == nil && len(matches) > 0
		}
		if !found {
			t.Errorf("%s names %s, which is not there", where, name)
		}
	}
	return named
}
