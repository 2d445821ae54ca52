package e2e

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/backends"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestASecretIsInNoFileOfTheDatabaseNorInABackup(t *testing.T) {
	t.Parallel()
	url := freshURL(t, "sqlite")
	path, _ := cutSQLite(url)
	s := New(t, openStore(t, url), patient)
	_, secret := s.key(t, &kagziv1.Key{Name: "root", Role: admin})
	root := s.as(t, secret)
	settle(t, root, "a")
	gone, old := root.key(t, &kagziv1.Key{Name: "gone", Role: viewer, Namespaces: []string{"a"}})
	fine(root.admin().RevokeKey(within(t, 20*time.Second), &kagziv1.RevokeKeyRequest{KeyId: gone.KeyId}))(t)
	copied := filepath.Join(t.TempDir(), "backup.db")
	if _, err := backends.Backup(t.Context(), url, copied); err != nil {
		t.Fatal(err)
	}
	wanted := map[string]bool{ // these must be found, which shows that the test looks in the right places
		"secret of a": true, secret: false, old: false, strings.Split(secret, "_")[3]: false,
		strings.Split(old, "_")[3]: false,
	}
	look := func(when string) {
		t.Helper()
		for text, kept := range wanted {
			found := false
			for _, file := range []string{path, path + "-wal", path + "-shm", copied} {
				raw, err := os.ReadFile(file)
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				found = found || bytes.Contains(raw, []byte(text))
			}
			if found != kept {
				t.Errorf("%s: that %.8s… is in a file is %t, want %t", when, text, found, kept)
			}
		}
	}
	look("while the server is at work")
	s.Stop()
	look("after it has stopped")
}

func TestNoLogNorSpanTellsWhatIsInAPayload(t *testing.T) {
	eachBackend(t, func(t *testing.T, url string) {
		log, spans := &syncBuffer{}, tracetest.NewSpanRecorder()
		o := patient
		o.Server.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Coordinator.Log = o.Server.Log
		o.Server.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
		s := New(t, openStore(t, url), o)
		ctx := within(t, time.Minute)
		const canary = "canary-4f1d"
		secret := &kagziv1.Payload{Data: []byte(canary), Metadata: map[string]string{"note": canary}}
		w := s.register(t)
		failure := &kagziv1.ErrorDetail{Message: canary, Subject: canary, Metadata: map[string]string{"what": canary}}
		for _, fails := range []bool{false, true} {
			run := s.start(t, func(r *kagziv1.StartWorkflowRequest) {
				r.Input, r.Tags = secret, map[string]string{"customer": canary}
			})
			fine(s.workflows().SignalWorkflow(ctx,
				&kagziv1.SignalWorkflowRequest{RunId: run, Name: "s", Payload: secret}))(t)
			task := w.take(t)
			fine(s.workers().CompleteStep(ctx, &kagziv1.CompleteStepRequest{
				RunId: run, LeaseToken: task.LeaseToken, StepId: "one", Output: secret}))(t)
			if fails {
				fine(s.workers().FailWorkflow(ctx, &kagziv1.FailWorkflowRequest{
					RunId: run, LeaseToken: task.LeaseToken, Error: failure}))(t)
			} else {
				fine(s.workers().CompleteWorkflow(ctx,
					&kagziv1.CompleteWorkflowRequest{RunId: run, LeaseToken: task.LeaseToken, Output: secret}))(t)
			}
			// An error does not repeat the refused value.
			_, err := s.workers().CompleteStep(ctx,
				&kagziv1.CompleteStepRequest{RunId: run, LeaseToken: task.LeaseToken, StepId: "two", Output: secret})
			if err == nil || strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), task.LeaseToken) {
				t.Errorf("a step after the end is answered with %v", err)
			}
			large := proto.CloneOf(secret)
			large.Data = bytes.Repeat([]byte(canary), 400_000)
			_, err = s.workflows().StartWorkflow(ctx, &kagziv1.StartWorkflowRequest{WorkflowType: "t", Input: large})
			if code := status.Code(err); code != codes.ResourceExhausted || strings.Contains(err.Error(), canary) {
				t.Errorf("too large an input is answered with %v", err)
			}
		}
		s.Stop()
		if text := log.text(); strings.Contains(text, canary) || !strings.Contains(text, "call refused") {
			t.Errorf("the log holds what is in a payload, or nothing at all: %.2000s", text)
		}
		ended := spans.Ended()
		for _, span := range ended {
			if text := fmt.Sprint(span.Name(), span.Attributes(), span.Events(), span.Status()); strings.Contains(
				text, canary) {
				t.Errorf("a span holds what is in a payload: %s", text)
			}
		}
		if len(ended) < 10 {
			t.Errorf("%d spans: they were not kept", len(ended))
		}
	})
}

// builders are the files that assemble statements from names of the schema.
var builders = []string{"sqlite/end.go", "postgres/copy.go", "postgres/standing.go", "postgres/migrate.go",
	"sqlite/progress.go"}

var statement = regexp.MustCompile(`(?is)^\s*(select|insert\s+into|update|delete\s+from|create|drop|alter|with)\s`)

// A statement assembled from text could contain a user's text. So statements are files or constants
// in the code.
func TestNoStatementIsPutTogetherFromText(t *testing.T) {
	t.Parallel()
	looked, built := 0, map[string]bool{}
	for _, backend := range []string{"sqlite", "postgres"} {
		err := filepath.WalkDir(filepath.Join("..", "..", "..", "backends", backend),
			func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") ||
					strings.Contains(path, "pgtest") {
					return err
				}
				file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
				if err != nil {
					return err
				}
				looked++
				ast.Inspect(file, func(n ast.Node) bool {
					var text ast.Expr
					switch n := n.(type) {
					case *ast.BinaryExpr:
						if _, both := n.Y.(*ast.BasicLit); n.Op == token.ADD && !both {
							text = n.X
						}
					case *ast.CallExpr:
						if f, ok := n.Fun.(*ast.SelectorExpr); ok && strings.HasSuffix(f.Sel.Name, "printf") &&
							len(n.Args) > 0 {
							text = n.Args[0]
						}
					}
					for {
						sum, ok := text.(*ast.BinaryExpr)
						if !ok {
							break
						}
						text = sum.X
					}
					if lit, ok := text.(*ast.BasicLit); ok && lit.Kind == token.STRING {
						if value, _ := strconv.Unquote(lit.Value); statement.MatchString(value) {
							built[filepath.Join(backend, filepath.Base(path))] = true
						}
					}
					return true
				})
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, known := range builders {
		if !built[filepath.FromSlash(known)] {
			t.Errorf("%s puts no statement together: the search is broken, or it need not be listed", known)
		}
		delete(built, filepath.FromSlash(known))
	}
	for path := range built {
		t.Errorf("%s puts a statement together from text: make it a file with parameters", path)
	}
	if looked < 40 {
		t.Errorf("%d files were looked at", looked)
	}
}
