package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/spf13/cobra"

	"github.com/kagzi/kagzi/tui/cli/internal/manual"
)

func TestManual(t *testing.T) {
	command := func() *cobra.Command {
		e := (&session{server: &fake{}}).env()
		e.version, e.local.Guides = "1.2.3", fstest.MapFS{
			"installer/guide/backup.md": {Data: []byte("# Backups\n\nHow to.\n\n## Do\n\n- .item\n")}}
		cmd := root(e)
		cmd.AddCommand(newMan(e))
		return cmd
	}
	write := func(dir string) {
		t.Helper()
		if code := Execute(t.Context(), command(), []string{"man", "--dir", dir}, strings.NewReader(""), discard{},
			discard{}); code != ExitOK {
			t.Fatalf("exit code %d", code)
		}
	}
	dir, again := filepath.Join(t.TempDir(), "man1"), t.TempDir()
	write(dir)
	write(again)
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 50 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	t.Run("writes a page per command, reproducibly", func(t *testing.T) {
		for _, page := range pages {
			first, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			if second, err := os.ReadFile(filepath.Join(again, filepath.Base(page))); err != nil ||
				string(first) != string(second) {
				t.Errorf("%s is not the same again: %v", filepath.Base(page), err)
			}
		}
		for _, name := range []string{"kagzi.1", "kagzi-workflow.1", "kagzi-workflow-start.1", "kagzi-key-create.1"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("contains the text of the help", func(t *testing.T) {
		page, err := os.ReadFile(filepath.Join(dir, "kagzi-key-create.1"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`.TH "KAGZI\-KEY\-CREATE" "1" "" "kagzi 1.2.3" "Kagzi"`, ".SH NAME\nkagzi\\-key\\-create \\- Create a key;",
			".B kagzi key create NAME \\-\\-role ROLE", ".SH EXAMPLES\n.nf\n",
			".B \\-\\-output\\-file string\nwrite the secret", ".SH OPTIONS OF THE GROUP\n", ".B \\-\\-address string",
			".SH SEE ALSO\n.BR kagzi\\-key (1)\n",
		} {
			if !strings.Contains(string(page), want) {
				t.Errorf("lacks %q:\n%s", want, page)
			}
		}
	})
	t.Run("escapes roff requests", func(t *testing.T) {
		if got := manual.RoffText(".so /etc/passwd\n'br\na \\fB \"b\" -c\n\n  shaped\nplain"); got !=
			"\\&.so /etc/passwd\n\\&'br\na \\efB \\(dqb\\(dq \\-c\n.PP\n.nf\n  shaped\n.fi\nplain\n" {
			t.Errorf("%q", got)
		}
	})
	t.Run("has the guide's chapters in section 7", func(t *testing.T) {
		dir := t.TempDir()
		args := []string{"man", "--guide", "--dir", dir}
		if code := Execute(t.Context(), command(), args, strings.NewReader(""), discard{}, discard{}); code != ExitOK {
			t.Fatalf("exit code %d", code)
		}
		page, err := os.ReadFile(filepath.Join(dir, "kagzi-guide-backup.7"))
		want := ".TH \"KAGZI\\-GUIDE\\-BACKUP\" \"7\" \"\" \"kagzi 1.2.3\" \"Kagzi\"\n" +
			".SH NAME\nkagzi\\-guide\\-backup \\- Backups\n.SH DESCRIPTION\n.nf\n.sp\nHow to.\n.fi\n" +
			".SH \"Do\"\n.nf\n.sp\n\\- .item\n.fi\n.SH SEE ALSO\n.BR kagzi (1)\n"
		if err != nil || string(page) != want {
			t.Errorf("%v, got\n%s\nwant\n%s", err, page, want)
		}
	})
	t.Run("requires --dir", func(t *testing.T) {
		if code := Execute(t.Context(), command(), []string{"man"}, strings.NewReader(""), discard{},
			discard{}); code != ExitUsage {
			t.Errorf("exit code %d", code)
		}
	})
}
