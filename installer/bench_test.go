//go:build unix

package installer

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bench is an installation on its own disk.
type bench struct {
	*installation
	manager *fakeManager
	root    string
	out     bytes.Buffer
	details bytes.Buffer
	owners  map[string]string // results of chown
}

func newBench(t *testing.T, s Spec) *bench {
	t.Helper()
	p, err := planOf(s)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{manager: &fakeManager{failAt: map[string]error{}}, root: t.TempDir(), owners: map[string]string{}}
	b.again(p)
	return b
}

// again is another installation on the same machine.
func (b *bench) again(p plan) {
	d := &disk{root: b.root, places: foreign(p.spec.System), chown: func(path, account, group string) error {
		b.owners[strings.TrimPrefix(path, b.root)] = account + ":" + group
		return nil
	}}
	b.installation = &installation{plan: p, manager: b.manager, disk: d, out: &b.out, details: &b.details,
		startNow: true}
	b.manager.calls, b.manager.counted = nil, nil
}

// files returns all files on the disk, sorted.
func (b *bench) files(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(b.root, func(path string, _ os.DirEntry, err error) error {
		if path != b.root {
			found = append(found, strings.TrimPrefix(path, b.root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

func (b *bench) wantCalls(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(b.manager.calls, want) {
		t.Errorf("calls = %q, want %q", b.manager.calls, want)
	}
}
