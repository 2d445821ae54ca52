package guide

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// chapters is a tree of files from paths and their texts.
func chapters(pairs ...string) fstest.MapFS {
	files := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		files[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return files
}

func TestLoad(t *testing.T) {
	const text = "# Title\n\nOne sentence. Another.\n"
	t.Run("names topics after files, without numbers", func(t *testing.T) {
		topics, err := Load(chapters(
			"engine/README.md", text, "installer/README.md", text, "installer/guide/tls.md", text,
			"sdk/guide/20-signals.md", text, "sdk/guide/10-start.md", text, "proto/README.md", text))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, topic := range topics {
			names = append(names, topic.Name)
		}
		if want := []string{"start", "signals", "operating", "tls", "architecture"}; !slices.Equal(names, want) {
			t.Errorf("topics %q, want %q", names, want)
		}
		if got := topics[0]; got.Title != "Title" || got.Summary != "One sentence." || got.Section != Developing {
			t.Errorf("%+v", got)
		}
	})
	t.Run("refuses a chapter without a title", func(t *testing.T) {
		_, err := Load(chapters("sdk/guide/a.md", "Text.\n"))
		if err == nil || !strings.Contains(err.Error(), "sdk/guide/a.md") {
			t.Errorf("%v", err)
		}
	})
	t.Run("refuses a chapter without a sentence", func(t *testing.T) {
		if _, err := Load(chapters("sdk/guide/a.md", "# A\n\n- item\n")); err == nil {
			t.Error("accepted")
		}
	})
	t.Run("refuses two chapters of one name", func(t *testing.T) {
		_, err := Load(chapters("sdk/guide/1-a.md", text, "installer/guide/a.md", text))
		if err == nil || !strings.Contains(err.Error(), "installer/guide/a.md") {
			t.Errorf("%v", err)
		}
	})
	t.Run("loads nothing from no files", func(t *testing.T) {
		if topics, err := Load(nil); err != nil || topics != nil {
			t.Errorf("%v, %v", topics, err)
		}
	})
}

func TestNear(t *testing.T) {
	names := []string{"backup", "backends", "troubleshooting", "tls", "key", "keys"}
	for typed, want := range map[string]string{
		"bakcup": "backup", "trouble": "troubleshooting", "shoot": "troubleshooting", "TLS": "tls",
		"kez": "key", "keyz": "key keys", "zzzzzz": "",
	} {
		if got := strings.Join(Near(names, typed), " "); got != want {
			t.Errorf("%s: %q, want %q", typed, got, want)
		}
	}
}

func TestText(t *testing.T) {
	topics := []Topic{
		{Name: "tls", Path: "installer/guide/tls.md"},
		{Name: "keys", Path: "installer/guide/keys.md"},
		{Name: "architecture", Path: "engine/README.md"},
	}
	render := func(text string, o Layout) string {
		topic := topics[0]
		topic.Text = []byte(text)
		o.Topics = topics
		return strings.Join(Text(topic, o), "\n")
	}
	for _, try := range []struct{ name, text, want string }{
		{"heading and paragraph", "# Title\n\nOne\ntwo.\n\n## Sub ##\nText.\n",
			"Title\n\n  One two.\n\nSub\n\n  Text."},
		{"wrapped paragraph", "word word word word word word word word word\n",
			"  word word word word word word word\n  word word"},
		{"a word wider than the line", strings.Repeat("x", 50) + " y\n", "  " + strings.Repeat("x", 50) + "\n  y"},
		{"fenced code is not changed", "```sh\na  *b* <!-- c -->\n\n\td [e](f)\n```\n",
			"    a  *b* <!-- c -->\n\n        d [e](f)"},
		{"indented code", "Do:\n\n    a\n\n    b\n\nText.\n", "  Do:\n\n    a\n\n    b\n\n  Text."},
		{"comments are dropped", "<!-- run -->\nText <!-- x\ny -->here.\n", "  Text here."},
		{"lists", "- a\n  b\n- c\n  1. d\n  2. e\n- f\n", "  - a b\n  - c\n    1. d\n    2. e\n  - f"},
		{"a list whose items wrap", "- " + strings.Repeat("word ", 9) + "\n",
			"  - word word word word word word word\n    word word"},
		{"code in an item", "1. Do:\n\n   ```sh\n   a\n     b\n   ```\n2. Then.\n",
			"  1. Do:\n\n      a\n        b\n\n  2. Then."},
		{"table", "| a | b |\n|---|:--|\n| `x\\|y` | z |\n", "  a      b\n  -----  -\n  `x|y`  z"},
		{"a table wider than the line", "| a | b |\n|---|---|\n| k | " + strings.Repeat("word ", 9) + "|\n",
			"  a  b\n  -  -----------------------------------\n  k  word word word word word word word\n     word word"},
		{"marks", "**bold** and *slant* and `code *x*` and 2 * 3 * 4 and snake_case_name\n",
			"  bold and slant and `code *x*` and 2 *\n  3 * 4 and snake_case_name"},
		{"links", "[a](https://x.org) [k](keys.md#top) [e](../../engine/) [n](../nothing.go)\n",
			"  a (https://x.org) k\n  (`kagzi help keys`) e\n  (`kagzi help architecture`) n"},
		{"control characters do not reach the terminal", "a\x1b[2Jb\n", "  a\\x1b[2Jb"},
	} {
		t.Run(try.name, func(t *testing.T) {
			if got := render(try.text, Layout{Width: 40}); got != try.want {
				t.Errorf("got\n%s\nwant\n%s", got, try.want)
			}
		})
	}
	t.Run("bold on a terminal only", func(t *testing.T) {
		want := "\x1b[1mT\x1b[0m\n\n  A \x1b[1mb\x1b[0m \x1b[1mc\x1b[0m."
		if got := render("# T\n\nA **b c**.\n", Layout{Width: 40, Strong: true}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
	t.Run("at most 100 columns", func(t *testing.T) {
		for line := range strings.SplitSeq(render(strings.Repeat("word ", 100), Layout{Width: 300}), "\n") {
			if len(line) > 100 {
				t.Errorf("%d columns", len(line))
			}
		}
	})
}
