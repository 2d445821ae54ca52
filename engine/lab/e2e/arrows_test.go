package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/kagzi/kagzi/"

// arrow lists the packages that one of our packages, and those below it without a line of their
// own, may import.
type arrow struct {
	from   string
	may    []string // packages, or with /... all below it
	reason string
}

var arrows = []arrow{
	{"engine", nil, "the language knows nobody; everything else translates to it"},
	{"engine/cron", []string{"proto/zone"}, "when an expression fires is arithmetic, and time zones are data"},
	{"engine/matching", []string{"engine"}, "matching runs and workers needs no wire and no database"},
	{"engine/coordinator", []string{"engine", "engine/cron", "proto/zone"}, "upkeep needs no wire and no database"},
	{"engine/server", []string{"engine", "engine/cron", "engine/matching", "engine/server/internal/...", "proto/..."},
		"the handlers see the store as an interface only"},
	{"engine/server/internal/wire", []string{"engine", "proto/..."},
		"how messages are read and made depends on nothing that a server keeps"},
	{"engine/server/internal/watch", []string{
		"engine", "engine/server/internal/wire", "engine/server/internal/async", "proto/..."},
		"who watches is told what the store notified, and reads it"},
	{"engine/server/internal/metrics", []string{
		"engine", "engine/server/internal/wire", "engine/server/internal/async", "proto/..."},
		"counting depends on nothing that is counted"},
	{"engine/server/internal/auth", []string{
		"engine", "engine/server/internal/wire", "engine/server/internal/async", "engine/server/internal/secret",
		"proto/..."}, "who may call what is decided before any handler is known"},
	{"engine/server/internal/session", []string{"engine", "engine/matching", "engine/server/internal/...", "proto/..."},
		"what workers do is written over all that callers go through, and never knows the server"},
	{"engine/server/internal/bundle", []string{"engine", "engine/server/internal/wire", "proto/..."},
		"a capsule is made of the store's rows and the contract's messages"},
	{"engine/server/internal/hook", []string{"engine"}, "a signature is checked from a hook and a request alone"},
	{"engine/agq", []string{"engine", "engine/matching", "engine/cron", "engine/server", "engine/server/internal/...",
		"proto/..."}, "one more door of the server: it calls the API, and knows no store"},
	{"engine/daemon", []string{"engine", "engine/...", "proto/..."},
		"the store comes as a function, so that the switch on dialect stays in one place"},
	{"engine/sandbox", []string{"engine", "engine/...", "proto/..."},
		"a server whose clock its owner moves; the store comes as a function here, too"},
	{"engine/conformance", []string{"engine", "engine/...", "proto/...", "sdk", "sdk/profile", "sdk/internal/..."},
		"it measures SDKs by the Go SDK; the store comes as a function"},
	{"engine/conformance/program", nil, "what a subject executes, for those who write programs and those who execute them"},
	{"engine/conformance/subject", []string{"engine/conformance/program", "proto/...", "sdk", "sdk/profile",
		"sdk/internal/..."}, "a worker like that of any SDK"},
	{"backends/internal/storelogic", []string{"engine"},
		"operations that read before they write, over statements that a backend brings"},
	{"backends/internal/storekit", []string{"engine"},
		"what the backends share beside that: encodings, listeners, lists of columns"},
	{"backends/memory", []string{"engine", "backends/internal/storelogic", "backends/internal/storekit"},
		"a backend whose rows are in memory, for tests and demonstrations"},
	{"backends/sqlite", []string{"engine", "backends/internal/storelogic", "backends/internal/storekit",
		"backends/sqlite/internal/...", "migrations"}, "a backend speaks SQL, and no gRPC, and knows no other backend"},
	{"backends/sqlite/internal/sqlite3", nil, "the driver knows SQLite's library, and nothing of what is stored"},
	{"backends/sqlite/internal/dbfile", []string{"engine", "backends/sqlite/internal/sqlite3", "migrations"},
		"what must hold of a file before anybody reads its rows"},
	{"backends/sqlite/internal/backup", []string{
		"engine", "backends/sqlite/internal/sqlite3", "backends/sqlite/internal/dbfile", "migrations"},
		"whole files are copied and replaced without the store, which it is given as functions"},
	{"backends/postgres", []string{"engine", "backends/internal/storelogic", "backends/internal/storekit",
		"migrations"}, "likewise"},
	{"backends/move", []string{"engine"}, "how rows move is the same for all databases: each comes as an interface"},
	{"backends", []string{"engine", "migrations", "backends/..."}, "the one switch on dialect"},
	{"proto/kagzi/v1", nil, "the wire is everybody's"},
	{"proto/waiting", []string{"proto/kagzi/v1"}, "what a run waits for is asked the same way by the SDK and by people"},
	{"proto/wire", []string{"proto/kagzi/v1"}, "how it is written, likewise"},
	{"proto/near", nil, "which name was meant by a mistyped one is asked the same way everywhere"},
	{"proto/query", []string{"proto/kagzi/v1", "proto/near"}, "server and command line select items of lists in one language"},
	{"proto/zone", nil, "time zones are data, for those who show times, too"},
	{"migrations", nil, "the schema is data"},
	{"sdk", []string{"proto/...", "sdk/profile", "sdk/internal/..."},
		"what users link into their programs holds no engine and no database"},
	{"sdk/internal/seam", []string{"proto/kagzi/v1"}, "what the SDK lets its own tests reach, and nobody else"},
	{"sdk/profile", nil, "where a server is, for workers and people alike, needs neither"},
	{"sdk/examples", []string{"sdk", "sdk/profile", "sdk/internal/...", "proto/..."},
		"what users write imports what users may import"},
	{"sdk/kagzitest", []string{"sdk", "sdk/profile", "sdk/internal/...", "engine", "engine/...", "backends/sqlite",
		"backends/sqlite/sqlitetest", "backends/sqlite/internal/...", "backends/internal/...", "migrations",
		"proto/..."}, "the real engine, in the tests of users alone"},
	{"tui", []string{"tui", "tui/...", "sdk", "sdk/profile", "sdk/internal/...", "proto/..."},
		"outsiders come in by the front door"},
	{"installer", nil, "a service manager is told of a program, not of workflows; the server comes as a function"},
	{"installer/package", []string{"installer"}, "a tool that packs the program with what `kagzi service` would write"},
	{"proto/gen", nil, "a tool that makes proto/kagzi/v1"},
	{"proto", []string{"proto/kagzi/v1"}, "holds the directive that makes it"},
	{"backends/storetest", []string{"engine", "engine/lab/long", "backends/storetest/..."},
		"the contract as tests is written against the contract"},
	{"backends/postgres/pgtest", nil, "a database for tests"},
	{"backends/sqlite/sqlitetest", nil, "likewise"},
	{"engine/lab/long", nil, "the tests of every package ask it how much to try"},
	{"engine/lab", []string{"engine", "engine/...", "backends/...", "migrations", "proto/...", "sdk", "sdk/profile",
		"sdk/internal/..."}, "it tests whole systems"},
}

// engineImports are the other modules that the engine may import. The server also needs gRPC.
var engineImports = []string{"github.com/adhocore/gronx"}

// sdkImports are the other modules that the SDK may add to a user's worker: gRPC, protobuf, a UUID,
// the API of OpenTelemetry (which records nothing until the user configures it), their
// dependencies, and a reader of kagzi.toml, so that workers and the command line find a server the
// same way.
var sdkImports = []string{
	"google.golang.org/grpc", "google.golang.org/protobuf", "google.golang.org/genproto/googleapis/rpc",
	"github.com/google/uuid",
	"golang.org/x/net", "golang.org/x/sys", "golang.org/x/text",
	"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/trace", "go.opentelemetry.io/otel/metric",
	"go.opentelemetry.io/auto/sdk",
	"github.com/go-logr/logr", "github.com/go-logr/stdr", "github.com/cespare/xxhash/v2",
	"github.com/pelletier/go-toml/v2",
}

// dependency is one package in the output of go list.
type dependency struct {
	ImportPath string
	Standard   bool
	Module     *struct{ Path string }
	Deps       []string
}

// list returns the packages that go list -deps names; it fails if one does not exist.
func list(t *testing.T, packages ...string) map[string]dependency {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Standard,Module,Deps"},
		packages...)...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list %v: %s", packages, exit.Stderr)
		}
		t.Fatal(err)
	}
	found := map[string]dependency{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var one dependency
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		found[one.ImportPath] = one
	}
	for _, name := range packages {
		if _, ok := found[name]; !ok && !strings.HasSuffix(name, "...") {
			t.Fatalf("package %s does not exist", name)
		}
	}
	return found
}

func allowed(may []string, name string) bool {
	return slices.ContainsFunc(may, func(m string) bool {
		whole, isWhole := strings.CutSuffix(m, "/...")
		return m == name || isWhole && strings.HasPrefix(name, whole+"/")
	})
}

// arrowOf returns the line for a package: the longest that names it or a parent.
func arrowOf(name string) (found arrow, ok bool) {
	for _, a := range arrows {
		if (name == a.from || strings.HasPrefix(name, a.from+"/")) && len(a.from) > len(found.from) {
			found, ok = a, true
		}
	}
	return found, ok
}

func TestEachPackageImportsOnlyWhatItMay(t *testing.T) {
	t.Parallel()
	var named []string
	for _, a := range arrows {
		named = append(named, module+a.from)
		for _, m := range a.may {
			if !strings.HasSuffix(m, "/...") {
				named = append(named, module+m)
			}
		}
	}
	slices.Sort(named)
	list(t, slices.Compact(named)...) // fails if one does not exist any more
	for path, p := range list(t, module+"...") {
		name, ours := strings.CutPrefix(path, module)
		if !ours {
			continue // not ours, or main.go, which wires all packages
		}
		a, ok := arrowOf(name)
		if !ok {
			t.Errorf("%s has no line in the table of arrows", name)
		}
		for _, dep := range p.Deps {
			imported, ours := strings.CutPrefix(dep, module)
			if ours && !allowed(a.may, imported) {
				t.Errorf("%s imports %s: %s", name, imported, a.reason)
			}
		}
	}
}

func TestTheEngineNeedsTheStandardLibraryAndACronParserOnly(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, from := range []string{"engine", "engine/cron", "backends/internal/storelogic", "engine/matching",
		"engine/coordinator", "migrations"} {
		for path, dep := range list(t, module+from) {
			if dep.Standard || dep.Module == nil || strings.HasPrefix(path, module) {
				continue
			}
			used[dep.Module.Path] = true
			if !slices.Contains(engineImports, dep.Module.Path) {
				t.Errorf("%s pulls in %s, of %s", from, path, dep.Module.Path)
			}
		}
	}
	wantAllUsed(t, "the engine", engineImports, used)
}

func TestTheSDKPullsInNothingElse(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for path, dep := range list(t, module+"sdk") {
		if dep.Standard || dep.Module == nil || strings.HasPrefix(path, module) {
			continue
		}
		used[dep.Module.Path] = true
		if !slices.Contains(sdkImports, dep.Module.Path) {
			t.Errorf("the SDK pulls in %s, of %s", path, dep.Module.Path)
		}
	}
	wantAllUsed(t, "the SDK", sdkImports, used)
}

func wantAllUsed(t *testing.T, who string, listed []string, used map[string]bool) {
	t.Helper()
	for _, name := range listed {
		if !used[name] {
			t.Errorf("%s does not need %s any more: take it off the list", who, name)
		}
	}
}

func TestTheProgramShipsNoTests(t *testing.T) {
	t.Parallel()
	for path := range list(t, "github.com/kagzi/kagzi") {
		switch path {
		case "testing", "testing/synctest", "github.com/chromedp/chromedp", module + "engine/lab/e2e",
			module + "backends/storetest",
			module + "backends/postgres/pgtest",
			module + "sdk/kagzitest":
			t.Errorf("the program holds %s", path)
		}
	}
}
