package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

// writing returns every method of these that may write.
func writing() (methods []reflect.Method) {
	reading := map[string]bool{"LiveWorkers": true, "DueSchedules": true, "Keyring": true, "ListKeys": true}
	for _, kind := range []reflect.Type{
		reflect.TypeFor[engine.Runs](), reflect.TypeFor[engine.Work](), reflect.TypeFor[engine.Workers](),
		reflect.TypeFor[engine.Schedules](), reflect.TypeFor[engine.Namespaces](), reflect.TypeFor[engine.Keys](),
		reflect.TypeFor[engine.Upkeep](),
	} {
		for i := range kind.NumMethod() {
			if m := kind.Method(i); !reading[m.Name] {
				methods = append(methods, m)
			}
		}
	}
	return methods
}

func TestEveryVerbThatWritesIsRefused(t *testing.T) {
	path := copyOf(t, remains(t), "", "-wal")
	before := contents(t, filepath.Dir(path))
	s := readOnlyAt(t, path)
	s.space.Free = func(string) (uint64, error) { return 0, nil }
	methods := writing()
	if len(methods) < 30 {
		t.Fatalf("methods that write = %d, want them all", len(methods))
	}
	for _, m := range methods {
		call := reflect.ValueOf(s).MethodByName(m.Name)
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for i := 1; i < call.Type().NumIn(); i++ {
			arg := reflect.New(call.Type().In(i)).Elem()
			if arg.Kind() == reflect.Slice {
				arg = reflect.MakeSlice(arg.Type(), 1, 1)
			}
			args = append(args, arg)
		}
		answers := call.Call(args)
		if err, _ := answers[len(answers)-1].Interface().(error); !errors.Is(err, engine.ErrReadOnly) {
			t.Errorf("%s: %v, want ErrReadOnly", m.Name, err)
		}
	}
	if err := s.SetHolder("me"); !errors.Is(err, engine.ErrReadOnly) {
		t.Errorf("SetHolder: %v, want ErrReadOnly", err)
	}
	if after := contents(t, filepath.Dir(path)); after != before {
		t.Errorf("afterwards the directory holds\n%swant\n%s", after, before)
	}
}

func TestReadOnlyOpenRefusesWithReason(t *testing.T) {
	sound := copyOf(t, remains(t), "")
	altered := func(script string) string {
		path := copyOf(t, sound, "")
		behindItsBack(t, path, script)
		return path
	}
	text := func(content string) string {
		path := filepath.Join(t.TempDir(), "kagzi.db")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	foreign := filepath.Join(t.TempDir(), "other.db")
	behindItsBack(t, foreign, "create table t (a)")
	directory := filepath.Join(t.TempDir(), "kagzi.db")
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, path, want string }{
		{"a file that is not there", filepath.Join(t.TempDir(), "kagzi.db"), "there is no database"},
		{"a directory that is not there", filepath.Join(t.TempDir(), "data", "kagzi.db"), "there is no database"},
		{"a directory", directory, "it is not a file"},
		{"a text", text(strings.Repeat("this is no database ", 500)), "not a SQLite database"},
		{"an empty file", text(""), "kagzi db migrate"},
		{"another program's database", foreign, "another program"},
		{"an older schema", altered("pragma user_version = 1"),
			"start `kagzi server` on it once, or run `kagzi db migrate`"},
		{"a newer schema", altered("pragma user_version = 4711"), "newer kagzi"},
	} {
		dir := filepath.Dir(c.path)
		there := ""
		if _, err := os.Stat(dir); err == nil && c.path != directory {
			there = contents(t, dir)
		}
		s, err := Open(t.Context(), c.path, engine.OpenOptions{ReadOnly: true})
		if err == nil {
			s.Close()
			t.Errorf("%s was opened", c.what)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q does not say %q", c.what, err, c.want)
		}
		if _, err := os.Stat(dir); there != "" && contents(t, dir) != there || there == "" && err == nil &&
			c.path != directory && contents(t, dir) != "" {
			t.Errorf("%s: the directory was changed", c.what)
		}
	}
}

func TestASchemaThatIsChangedUnderWhoLooksIsNoticed(t *testing.T) {
	path := copyOf(t, remains(t), "")
	s := readOnlyAt(t, path)
	expectRuns(t, s, 3)
	behindItsBack(t, path, "pragma user_version = 4711")
	if _, err := runsIn(t.Context(), s); !errors.Is(err, engine.ErrPrecondition) {
		t.Fatalf("error = %v, want that the schema was changed", err)
	}
}

func TestADamagedPageDoesNotEndWhoLooks(t *testing.T) {
	path := copyOf(t, remains(t), "")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096 * 2; i < len(text); i++ {
		text[i] = 0xff
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), path, engine.OpenOptions{ReadOnly: true})
	if err != nil {
		return // it was noticed at once
	}
	defer s.Close()
	if _, err := runsIn(t.Context(), s); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("error = %v, want that the file is damaged", err)
	}
	select {
	case <-s.Fatal():
		t.Error("it is fatal")
	default:
	}
}
