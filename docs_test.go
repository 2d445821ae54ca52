package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/kagzi/kagzi/tui/cli"
)

const (
	maxReadmeWords = 900 // of README.md, code blocks left out
	maxFolderLines = 150 // of a folder's README.md
	maxColumns     = 3   // of a table in a guide, which terminals show too
)

// documents returns the repository's Markdown files by path, with slashes.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".github" ||
			slices.Contains([]string{"node_modules", "testdata", "dist"}, d.Name())) {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		found[filepath.ToSlash(path)] = strings.ReplaceAll(string(text), "\r\n", "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 15 {
		t.Fatalf("only %d Markdown files were found", len(found))
	}
	return found
}

// block is fenced code of a Markdown file.
type block struct{ language, text string }

// fences splits a text into prose and fenced code.
func fences(text string) (prose string, blocks []block) {
	var out strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		language, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && !inside:
			blocks, inside = append(blocks, block{language: language}), true
		case fence:
			inside = false
		case inside:
			blocks[len(blocks)-1].text += line
		default:
			out.WriteString(line)
		}
	}
	return out.String(), blocks
}

func TestTheReadmeIsShortAndNamesTheTwoCommands(t *testing.T) {
	prose, blocks := fences(documents(t)["README.md"])
	if words := len(strings.Fields(prose)); words > maxReadmeWords {
		t.Errorf("README.md has %d words without code, want at most %d", words, maxReadmeWords)
	}
	var commands []string
	for _, b := range blocks {
		if b.language == "sh" {
			commands = append(commands, strings.Split(b.text, "\n")...)
		}
	}
	for _, want := range []string{"go run . demo", "go test ./..."} {
		if !slices.Contains(commands, want) {
			t.Errorf("README.md does not name the command %q on a line of its own", want)
		}
	}
}

func TestTheReadmesWorkflowCompiles(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	_, blocks := fences(documents(t)["README.md"])
	i := slices.IndexFunc(blocks, func(b block) bool { return b.language == "go" })
	if i < 0 {
		t.Fatal("README.md has no workflow in Go")
	}
	dir := t.TempDir()
	program, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	here, err := filepath.Abs("readme_workflow/main.go") // compiled as if it were there
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {here: program}})
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string][]byte{program: []byte(blocks[i].text), overlay: replace} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", os.DevNull, "./readme_workflow")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), "gofmt", "-l", program).Output(); err == nil && len(out) > 0 {
		t.Error("gofmt would change README.md's workflow")
	}
}

// link matches a Markdown link or image.
var link = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)[^)]*\)`)

func TestLinksWithinTheRepositoryLeadSomewhere(t *testing.T) {
	all := documents(t)
	for file, text := range all {
		prose, _ := fences(text)
		for _, m := range link.FindAllStringSubmatch(regexp.MustCompile("`[^`]*`").ReplaceAllString(prose, ""), -1) {
			if strings.Contains(m[1], ":") { // an address elsewhere
				continue
			}
			target, anchor, _ := strings.Cut(m[1], "#")
			place := file
			if target != "" {
				place = filepath.ToSlash(filepath.Join(filepath.Dir(file), filepath.FromSlash(target)))
				if _, err := os.Stat(place); err != nil {
					t.Errorf("%s links to %s, which is not there", file, m[1])
					continue
				}
			}
			if to, ok := all[place]; ok && anchor != "" && !slices.Contains(anchors(to), anchor) {
				t.Errorf("%s links to %s, and %s has no such heading", file, m[1], place)
			}
		}
	}
}

// anchors returns GitHub's anchors of the headings of a text.
func anchors(text string) (found []string) {
	prose, _ := fences(text)
	for line := range strings.Lines(prose) {
		if title := strings.TrimLeft(line, "#"); title != line && strings.HasPrefix(title, " ") {
			title = strings.ToLower(strings.TrimSpace(title))
			slug := regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(title, "")
			found = append(found, strings.ReplaceAll(slug, " ", "-"))
		}
	}
	return found
}

func TestEachFoldersReadmeNamesItsPackages(t *testing.T) {
	all := documents(t)
	for _, folder := range []string{"backends", "engine", "installer", "migrations", "proto", "sdk", "tui"} {
		text, ok := all[folder+"/README.md"]
		if !ok {
			t.Errorf("%s has no README.md", folder)
			continue
		}
		if lines := strings.Count(text, "\n"); lines > maxFolderLines {
			t.Errorf("%s/README.md has %d lines, want at most %d", folder, lines, maxFolderLines)
		}
		named := map[string]bool{}
		for _, span := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
			named[strings.TrimPrefix(span[1], folder+"/")] = true
		}
		for _, p := range packages(t, folder) {
			covered := named[p] || named[p+"/"] || p == "." && named[folder]
			for above := p; above != "." && !covered; above = filepath.ToSlash(filepath.Dir(above)) {
				_, own := all[folder+"/"+above+"/README.md"] // says what is below it
				covered = named[above+"/..."] || own && named[above]
			}
			if !covered {
				t.Errorf("the map in %s/README.md lacks the package `%s`", folder, p)
			}
		}
	}
}

// packages returns the directories with Go code below folder, relative to it.
func packages(t *testing.T, folder string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "testdata" || d.Name() == "node_modules" {
			return fs.SkipDir
		}
		if files, err := filepath.Glob(filepath.Join(path, "*.go")); err != nil || len(files) == 0 {
			return err
		}
		from, err := filepath.Rel(folder, path)
		found = append(found, filepath.ToSlash(from))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// printed runs a command in this process and returns its output.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	if code := cli.Execute(t.Context(), commands("v0.0.0"), args, strings.NewReader(""), &out, &errs); code != 0 {
		t.Errorf("kagzi %s: exit code %d: %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}

func TestEachGuideIsShown(t *testing.T) {
	line := regexp.MustCompile(`(?m)^  kagzi help (?:guide )?(\S+) `)
	topics := line.FindAllStringSubmatch(printed(t, "help", "guide"), -1)
	guides, err := filepath.Glob("*/guide/*.md")
	if err != nil || len(guides) < 9 || len(topics) < len(guides) {
		t.Fatalf("%d topics, %d guides, %v", len(topics), len(guides), err)
	}
	for _, topic := range topics {
		shown := printed(t, "help", "guide", topic[1])
		title, rest, _ := strings.Cut(shown, "\n\n")
		if title == "" || strings.Contains(title, "\n") || !strings.HasPrefix(rest, "  ") {
			t.Errorf("%s does not begin with a title and a sentence:\n%.200s", topic[1], shown)
		}
		code := regexp.MustCompile("(?m)^    .*$|`[^`]*`")
		for _, mark := range []string{"](", "**", "```", "<!--", "|---|", "\x1b"} {
			if strings.Contains(code.ReplaceAllString(shown, ""), mark) {
				t.Errorf("%s is shown with %q in it", topic[1], mark)
			}
		}
	}
	for _, file := range guides {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		prose, _ := fences(string(text))
		for line := range strings.Lines(prose) {
			cells := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") - 1
			if strings.HasPrefix(line, "|") && cells > maxColumns {
				t.Errorf("%s: a table has %d columns, want at most %d: %s", file, cells, maxColumns, line)
			}
		}
	}
}

// Commands in documents are parsed by the program but not run.
func TestCommandsInDocumentsExist(t *testing.T) {
	count := 0
	for file, text := range documents(t) {
		prose, blocks := fences(text)
		for _, b := range blocks {
			if b.language != "sh" && b.language != "console" {
				continue
			}
			for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
				if args := commandLine(line); args != nil {
					count++
					if err := parses(args, true); err != nil {
						t.Errorf("%s: %s: %v", file, strings.TrimSpace(line), err)
					}
				}
			}
		}
		for _, span := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(prose, -1) {
			args := commandLine(span[1])
			placeholder := len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] == strings.ToUpper(args[0])
			if args == nil || placeholder { // `kagzi COMMAND`
				continue
			}
			count++
			if err := parses(args, false); err != nil {
				t.Errorf("%s: `%s`: %v", file, span[1], err)
			}
		}
	}
	for _, wrong := range []string{
		"kagzi wrokflow list", "kagzi workflow lits", "sudo ./kagzi server --prot 1", "kagzi key create --role admin",
		"kagzi db backup", "KAGZI_DB=x kagzi db copy --from a b", "kagzi worker --lease",
	} {
		if args := commandLine(wrong); args == nil || parses(args, true) == nil {
			t.Errorf("%s passes", wrong)
		}
	}
	if count < 100 {
		t.Errorf("%d commands were found, want more: are they read?", count)
	}
}

// commandLine returns the arguments of kagzi in a shell line; nil for other commands. It stops at
// pipes, redirections and "…", which stands for more arguments.
func commandLine(line string) []string {
	words := shellWords(line)
	before := regexp.MustCompile(`^(sudo|\$|[A-Z_]+=.*)$`)
	for len(words) > 0 && before.MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 || words[0] != "kagzi" && words[0] != "./kagzi" {
		return nil
	}
	for i, word := range words {
		if slices.Contains([]string{"|", ">", "&", "&&", ";", "<", "…"}, word) {
			words = words[:i]
			break
		}
	}
	return append([]string{}, words[1:]...)
}

// shellWords splits a line at spaces outside quotes, without comments.
func shellWords(line string) (words []string) {
	for _, m := range regexp.MustCompile(`(?:[^\s'"]|'[^']*'|"[^"]*")+`).FindAllString(strings.TrimSpace(line), -1) {
		if strings.HasPrefix(m, "#") {
			break
		}
		words = append(words, strings.NewReplacer("'", "", `"`, "").Replace(m))
	}
	return words
}

// parses returns the error of a command line; whole also checks its arguments.
func parses(args []string, whole bool) error {
	root := commands("v0.0.0")
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	if err := cmd.ParseFlags(rest); err != nil && (whole || !errors.As(err, new(*pflag.ValueRequiredError))) {
		return err // prose may name a flag without its value
	}
	left := cmd.Flags().Args()
	if cmd.HasSubCommands() && len(left) > 0 {
		return parseError("no such command: " + strings.Join(left, " "))
	}
	if help, _ := cmd.Flags().GetBool("help"); help || !whole || cmd.HasSubCommands() {
		return nil
	}
	return cmd.ValidateArgs(left)
}

// parseError is an error of a command line.
type parseError string

func (e parseError) Error() string { return string(e) }
