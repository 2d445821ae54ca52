package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Columns is the width for which the lines of a chapter are made: man indents them in 80 columns.
const Columns = 74

// Chapter is a page of section 7: text that is laid out already, with headings at the margin and
// everything else two columns in.
type Chapter struct {
	Name, Title string
	Lines       []string // the first is the title
}

// WriteChapters writes a page for each chapter, kagzi-guide-NAME.7.
func WriteChapters(chapters []Chapter, version, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range chapters {
		name := "kagzi-guide-" + c.Name
		page := []byte(chapterPage(c, name, version))
		if err := os.WriteFile(filepath.Join(dir, name+".7"), page, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func chapterPage(c Chapter, name, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH \"%s\" \"7\" \"\" \"%s\" \"Kagzi\"\n", roff(strings.ToUpper(name)), roff("kagzi "+version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n", roff(name), roff(c.Title))
	blank := false
	for _, line := range c.Lines[min(1, len(c.Lines)):] {
		switch {
		case line == "":
			blank = true
			continue
		case line[0] != ' ':
			b.WriteString(".fi\n.SH \"" + roff(line) + "\"\n.nf\n")
		default:
			if blank {
				b.WriteString(".sp\n")
			}
			b.WriteString(roff(strings.TrimPrefix(line, "  ")) + "\n")
		}
		blank = false
	}
	b.WriteString(".fi\n.SH SEE ALSO\n.BR kagzi (1)\n")
	return b.String()
}
