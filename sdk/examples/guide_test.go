package examples

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the root of the repository, from here.
const root = "../.."

func chapters(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(root + "/sdk/guide/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no chapters: %v", err)
	}
	return files
}

// quote is a code block of the guide whose first line says which declaration of which file it
// quotes.
var quote = regexp.MustCompile("(?ms)^```(?:go|python|ts) (\\S+?\\.(go|py|ts))#(\\S+)\n(.*?)^```$")

// A code block of the guide that begins with ```go FILE#NAME, ```python FILE#NAME or ```ts FILE#NAME
// quotes the declaration NAME, or TYPE.METHOD, of a file, named from the root of the repository. With
// UPDATE=1 in the environment the quotes are written again.
func TestTheGuideQuotesTheExamples(t *testing.T) {
	for _, chapter := range append(chapters(t), root+"/sdk/README.md") {
		text, err := os.ReadFile(chapter)
		if err != nil {
			t.Fatal(err)
		}
		updated := quote.ReplaceAllFunc(text, func(block []byte) []byte {
			part := quote.FindSubmatch(block)
			file, language, declared := filepath.Join(root, string(part[1])), "go", declaration
			switch string(part[2]) {
			case "py":
				language, declared = "python", pythonDeclaration
			case "ts":
				language, declared = "ts", typescriptDeclaration
			}
			code, err := declared(file, string(part[3]))
			if err != nil {
				t.Errorf("%s: %v", chapter, err)
				return block
			}
			return fmt.Appendf(nil, "```%s %s#%s\n%s\n```", language, part[1], part[3], code)
		})
		switch {
		case bytes.Equal(updated, text):
		case os.Getenv("UPDATE") != "":
			if err := os.WriteFile(chapter, updated, 0o644); err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("%s differs from the files that it quotes: UPDATE=1 go test ./sdk/examples", chapter)
		}
		if blocks := regexp.MustCompile("(?m)^```(go|python|ts)\\b").FindAll(updated, -1); len(blocks) != len(
			quote.FindAll(updated, -1)) {
			t.Errorf("%s has a block of Go, Python or TypeScript that is no quote", chapter)
		}
	}
}

// pythonDeclaration is the source of a function or class at the top of a file, with its decorators.
func pythonDeclaration(file, name string) (string, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	lines := strings.Split(string(source), "\n")
	head := regexp.MustCompile(`^((async )?def|class) ` + regexp.QuoteMeta(name) + `\b`)
	first := slices.IndexFunc(lines, head.MatchString)
	if first < 0 {
		return "", fmt.Errorf("%s declares no %s", file, name)
	}
	last := first + 1
	for last < len(lines) && (lines[last] == "" || strings.HasPrefix(lines[last], " ") || lines[last] == "):") {
		last++
	}
	for first > 0 && strings.HasPrefix(lines[first-1], "@") {
		first--
	}
	return strings.TrimSpace(strings.Join(lines[first:last], "\n")), nil
}

// typescriptDeclaration is the source of a function, class, constant or type at the top of a file, with
// its comment; or of a test by its name. The formatter ends each with a line that is not indented.
func typescriptDeclaration(file, name string) (string, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	lines := strings.Split(string(source), "\n")
	head := regexp.MustCompile(`^(export )?(async )?(function|class|const|interface|type) ` +
		regexp.QuoteMeta(name) + `\b`)
	first := slices.IndexFunc(lines, head.MatchString)
	if at := slices.Index(lines, "  '"+name+"',"); first < 0 && at > 0 && lines[at-1] == "test(" {
		first = at - 1
	}
	if first < 0 {
		return "", fmt.Errorf("%s declares no %s", file, name)
	}
	last := first
	ends := func(line string) bool {
		return !strings.HasPrefix(line, " ") && (strings.HasSuffix(line, ";") || line == "}")
	}
	for !ends(lines[last]) {
		if last++; last == len(lines) {
			return "", fmt.Errorf("%s: %s has no end", file, name)
		}
	}
	for first > 0 && strings.HasPrefix(lines[first-1], "/**") {
		first--
	}
	return strings.Join(lines[first:last+1], "\n"), nil
}

// declaration is the source of a function, a method (TYPE.METHOD) or a type, with its comment.
func declaration(file, name string) (string, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, source, parser.ParseComments)
	if err != nil {
		return "", err
	}
	text := func(from, to token.Pos) string {
		return string(source[fset.Position(from).Offset:fset.Position(to).Offset])
	}
	for _, d := range parsed.Decls {
		from, declared := d.Pos(), ""
		var doc *ast.CommentGroup
		switch d := d.(type) {
		case *ast.FuncDecl:
			declared, doc = d.Name.Name, d.Doc
			if d.Recv != nil {
				declared = strings.TrimPrefix(text(d.Recv.List[0].Type.Pos(), d.Recv.List[0].Type.End()), "*") +
					"." + declared
			}
		case *ast.GenDecl:
			if spec, ok := d.Specs[0].(*ast.TypeSpec); ok {
				declared, doc = spec.Name.Name, d.Doc
			}
		}
		if declared != name {
			continue
		}
		if doc != nil {
			from = doc.Pos()
		}
		return text(from, d.End()), nil
	}
	return "", fmt.Errorf("%s declares no %s", file, name)
}

// The chapters are shown in terminals, too, as kagzi help TOPIC.
func TestChaptersHaveTheirForm(t *testing.T) {
	readme, err := os.ReadFile(root + "/sdk/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(readme, []byte("\n")); n > 150 {
		t.Errorf("sdk/README.md has %d lines, at most 150", n)
	}
	for i, chapter := range chapters(t) {
		name := filepath.Base(chapter)
		data, err := os.ReadFile(chapter)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(name, fmt.Sprintf("%02d-", i+1)) {
			t.Errorf("%s is chapter %d", name, i+1)
		}
		if !bytes.Contains(readme, []byte("(guide/"+name+")")) {
			t.Errorf("sdk/README.md has no link to %s", name)
		}
		text := string(data)
		if n := strings.Count(text, "\n"); n < 60 || n > 200 {
			t.Errorf("%s has %d lines, want 60 to 200", name, n)
		}
		paragraphs := strings.SplitN(text, "\n\n", 3)
		if len(paragraphs) < 3 || !strings.HasPrefix(text, "# ") || strings.Contains(paragraphs[0], "\n") ||
			strings.Count(paragraphs[1], ". ") > 0 || !strings.HasSuffix(paragraphs[1], ".") {
			t.Errorf("%s has to begin with a line # Title and a paragraph of one sentence", name)
		}
		checkMarkdown(t, name, text)
	}
}

// checkMarkdown refuses what a terminal cannot show, and links that lead nowhere.
func checkMarkdown(t *testing.T, name, text string) {
	t.Helper()
	fenced, prose := false, ""
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced:
			continue
		case len([]rune(line)) > 120:
			t.Errorf("%s:%d has %d characters, at most 120", name, i+1, len([]rune(line)))
		case strings.HasPrefix(line, "|") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") > 4:
			t.Errorf("%s:%d has more than three columns", name, i+1)
		case strings.HasPrefix(line, "<") || strings.HasPrefix(line, "!["):
			t.Errorf("%s:%d has HTML or a picture", name, i+1)
		}
		prose += line + "\n"
	}
	if fenced {
		t.Errorf("%s has a code block without an end", name)
	}
	for _, link := range regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`).FindAllStringSubmatch(prose, -1) {
		if strings.Contains(link[1], "://") {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, "sdk/guide", link[1])); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every example has a README, and the list of examples names it.
func TestEveryExampleIsDescribed(t *testing.T) {
	list, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Glob("*/main.go")
	if err != nil || len(programs) < 8 {
		t.Fatalf("%d examples, %v", len(programs), err)
	}
	slices.Sort(programs)
	for _, program := range programs {
		folder := filepath.Dir(program)
		if !bytes.Contains(list, []byte("["+folder+"]("+folder+")")) {
			t.Errorf("README.md does not list %s", folder)
		}
		text, err := os.ReadFile(filepath.Join(folder, "README.md"))
		run := []byte("./sdk/examples/" + folder)
		if err != nil || !bytes.Contains(text, run) {
			t.Errorf("%s/README.md does not say how to run it: %v", folder, err)
		}
	}
}
