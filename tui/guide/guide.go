// Package guide holds the guide's chapters that `kagzi help TOPIC` shows: the Markdown files of the
// repository, embedded in the binary (this file), rendered as plain text (text.go, inline.go).
package guide

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/proto/near"
)

// Topic is one chapter.
type Topic struct {
	Name    string // what `kagzi help` calls it: the file's name without its number and extension
	Title   string // its first heading
	Summary string // the first sentence under the title
	Path    string // of the file, from the top of the repository
	Text    []byte // Markdown
	Section string // what it belongs to, for lists: one of Sections
}

// Sections of topics, in the order of lists.
const (
	Developing = "Writing workflows"
	Operating  = "Operating a server"
	Background = "Background"
)

// readmes are the folder READMEs that are topics by another name than their folder's.
var readmes = []struct{ path, name, section string }{
	{"sdk/README.md", "sdk", Developing},
	{"installer/README.md", "operating", Operating},
	{"tui/README.md", "tui", Operating},
	{"backends/README.md", "backends", Background},
	{"engine/README.md", "architecture", Background},
}

// number is the ordinal in front of a chapter's file name, which orders chapters and is no part of
// the topic.
var number = regexp.MustCompile(`^[0-9]+[-_.]`)

// Load reads the topics of a tree of Markdown files: sdk/guide/*.md, installer/guide/*.md and the
// READMEs of some folders. Files that are not there are left out. It fails when a chapter does not
// begin with a title and a sentence, or when two have the same name.
func Load(files fs.FS) ([]Topic, error) {
	if files == nil {
		return nil, nil
	}
	var topics []Topic
	add := func(name, file, section string) error {
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return err
		}
		title, summary := opening(text)
		if title == "" || summary == "" {
			return fmt.Errorf("%s: want a title in the first line (# Title) and a sentence below it", file)
		}
		topics = append(topics, Topic{
			Name: name, Title: title, Summary: summary, Path: file, Text: text, Section: section,
		})
		return nil
	}
	for _, r := range readmes {
		if _, err := fs.Stat(files, r.path); err != nil {
			continue
		}
		if err := add(r.name, r.path, r.section); err != nil {
			return nil, err
		}
	}
	for _, dir := range []struct{ path, section string }{{"sdk/guide", Developing}, {"installer/guide", Operating}} {
		found, err := fs.Glob(files, dir.path+"/*.md")
		if err != nil {
			return nil, err
		}
		slices.Sort(found)
		for _, file := range found {
			name := number.ReplaceAllString(strings.TrimSuffix(path.Base(file), ".md"), "")
			if name == "README" {
				continue
			}
			if err := add(name, file, dir.section); err != nil {
				return nil, err
			}
		}
	}
	order := []string{Developing, Operating, Background}
	slices.SortStableFunc(topics, func(a, b Topic) int {
		return cmp.Compare(slices.Index(order, a.Section), slices.Index(order, b.Section))
	})
	seen := map[string]string{}
	for _, t := range topics {
		if other := seen[t.Name]; other != "" {
			return nil, fmt.Errorf("%s and %s are both the topic %s", other, t.Path, t.Name)
		}
		seen[t.Name] = t.Path
	}
	return topics, nil
}

// Find returns the topic of a name.
func Find(topics []Topic, name string) (Topic, bool) {
	i := slices.IndexFunc(topics, func(t Topic) bool { return t.Name == strings.ToLower(name) })
	if i < 0 {
		return Topic{}, false
	}
	return topics[i], true
}

// Near returns at most three of names that a mistyped name may have meant, the nearest first.
func Near(names []string, typed string) []string {
	typed = strings.ToLower(typed)
	type candidate struct {
		name     string
		distance int
	}
	var alike []candidate
	for _, name := range names {
		d := near.Distance(typed, name)
		switch {
		case len(typed) >= 3 && strings.HasPrefix(name, typed):
			d = 0
		case len(typed) >= 4 && strings.Contains(name, typed):
			d = min(d, 1)
		}
		if d <= max(1, min(3, len(typed)/3)) {
			alike = append(alike, candidate{name, d})
		}
	}
	slices.SortStableFunc(alike, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var names3 []string
	for _, c := range alike[:min(3, len(alike))] {
		names3 = append(names3, c.name)
	}
	return names3
}

// sentenceEnd is where the first sentence of a paragraph ends.
var sentenceEnd = regexp.MustCompile(`[.!?:]( |$)`)

// opening returns a chapter's title, which must be its first line, and the first sentence of the
// paragraph below it.
func opening(text []byte) (title, summary string) {
	first, rest, _ := strings.Cut(string(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))), "\n")
	title, ok := strings.CutPrefix(first, "# ")
	if !ok {
		return "", ""
	}
	if blocks := parse(rest); len(blocks) > 0 && blocks[0].kind == paragraph {
		summary = plain(blocks[0].text)
		if end := sentenceEnd.FindStringIndex(summary); end != nil {
			summary = summary[:end[0]+1]
		}
	}
	return plain(title), summary
}
