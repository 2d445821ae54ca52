// Command pause runs tests while it delays goroutines where order matters: around mutexes, at the
// start of a goroutine, and after a channel wakes it. A race that shows once in some hundred runs
// then shows in every second one.
//
//	go run ./engine/lab/pause ./sdk -count=20 -run TestLease
//	go run ./engine/lab/pause ./engine/lab/simulate -run TestSimulation -simulate.seeds=1000
//	go run ./engine/lab/pause -every 16 ./engine/... -short
//
// Arguments after its own flags go to go test. The code is instrumented in an overlay (go test
// -overlay) and keeps its line numbers. Delays are random, so a failure may need several runs to
// appear again. The exit code is that of go test, or 2 if the tests could not be run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kagzi/kagzi/engine/lab/overlay"
)

func main() {
	every := flag.Int("every", 4, "delay a goroutine at one in this many places")
	most := flag.Int("most", 200, "yield at most this many times in one delay")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./engine/lab/pause [flags] arguments of go test")
		flag.PrintDefaults()
	}
	flag.Parse()
	if wrong := wrongUse(*every, *most, flag.NArg()); wrong != "" {
		fmt.Fprintln(os.Stderr, "pause:", wrong)
		flag.Usage()
		os.Exit(2)
	}
	err := test(*every, *most, flag.Args())
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed) && failed.Exited():
		os.Exit(failed.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "pause:", err)
		os.Exit(2)
	}
}

// wrongUse returns an error text for bad flags or arguments; empty if they are good.
func wrongUse(every, most, words int) string {
	switch {
	case every < 1:
		return fmt.Sprintf("-every must be 1 or more, got %d", every)
	case most < 1:
		return fmt.Sprintf("-most must be 1 or more, got %d", most)
	case words == 0:
		return "name the packages to test, such as ./sdk"
	}
	return ""
}

func test(every, most int, args []string) error {
	dir, err := os.MkdirTemp("", "kagzi-pause-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files, err := sources()
	if err != nil {
		return err
	}
	changed := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		with, places, err := withPlaces(file, string(text))
		if err != nil {
			return err
		}
		if places > 0 {
			changed[file] = with
		}
	}
	replacing, err := overlay.Files(dir, changed)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", append([]string{"test", "-vet=off", "-overlay", replacing}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), fmt.Sprint("KAGZI_PAUSE_EVERY=", every), fmt.Sprint("KAGZI_PAUSE_MOST=", most))
	return cmd.Run()
}

// sources returns the module's Go files, without tests, engine/lab, backends/memory and proto.
func sources() ([]string, error) {
	const format = `{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}`
	list := exec.Command("go", "list", "-f", format, "github.com/kagzi/kagzi/...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %v", err) // without its exit code, which is not that of the tests
	}
	if len(out) == 0 {
		return nil, errors.New("no code of Kagzi here; run the command within the module")
	}
	files := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
	return slices.DeleteFunc(files, func(file string) bool {
		slashed := filepath.ToSlash(file)
		return strings.Contains(slashed, "/engine/lab/") || strings.Contains(slashed, "/backends/memory/") ||
			strings.Contains(slashed, "/proto/")
	}), nil
}

// place is code to insert at an offset of a file.
type place struct {
	at   int
	text string
}

const (
	here     = "kagziPause.Here()"
	imported = `; import kagziPause "github.com/kagzi/kagzi/engine/lab/pause/point"`
)

// withPlaces inserts the delays into a file's text and returns their number.
func withPlaces(name, text string) (with string, places int, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return "", 0, err
	}
	at := func(p token.Pos) int { return set.Position(p).Offset }
	all := []place{{at(file.Name.End()), imported}}
	statements := func(list []ast.Stmt) {
		for _, statement := range list {
			switch s := statement.(type) {
			case *ast.ExprStmt:
				switch methodOf(s.X) {
				case "Lock", "RLock":
					all = append(all, place{at(s.Pos()), here + "; "})
				case "Unlock", "RUnlock":
					all = append(all, place{at(s.End()), "; " + here})
				}
			case *ast.GoStmt:
				if f, ok := s.Call.Fun.(*ast.FuncLit); ok {
					all = append(all, place{at(f.Body.Lbrace) + 1, " " + here + "; "})
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			statements(n.List)
		case *ast.CaseClause:
			statements(n.Body)
		case *ast.CommClause:
			if len(n.Body) > 0 {
				all = append(all, place{at(n.Body[0].Pos()), here + "; "})
			}
			statements(n.Body)
		}
		return true
	})
	if len(all) == 1 {
		return text, 0, nil
	}
	slices.SortStableFunc(all, func(a, b place) int { return a.at - b.at })
	var out strings.Builder
	last := 0
	for _, p := range all {
		out.WriteString(text[last:p.at])
		out.WriteString(p.text)
		last = p.at
	}
	out.WriteString(text[last:])
	return out.String(), len(all) - 1, nil
}

// methodOf returns the name of the method that an expression calls without arguments; otherwise "".
func methodOf(x ast.Expr) string {
	call, ok := x.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return ""
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	return method.Sel.Name
}
