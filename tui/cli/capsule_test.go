package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func capsuleServer() *fake {
	f := sampleServer()
	f.capsule = [][]byte{[]byte("PK\x03\x04"), bytes.Repeat([]byte{0xff, 0}, 3000)}
	return f
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// assertAlone fails if a directory contains anything but the named files.
func assertAlone(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(names) {
		t.Errorf("%s holds %v, want %v", dir, entries, names)
	}
}

func TestExport(t *testing.T) {
	whole := "PK\x03\x04" + strings.Repeat("\xff\x00", 3000)
	t.Run("writes the whole file, readable by its owner only", func(t *testing.T) {
		s, dir := &session{server: capsuleServer(), tty: true}, t.TempDir()
		file := filepath.Join(dir, "run.zip")
		out, _ := s.want(t, ExitOK, "wf", "export", "--external", "order-17", "--file", file, "--redact")
		if read(t, file) != whole || out != file+"  5.9 KiB\n" {
			t.Errorf("stdout %q, %d bytes", out, len(read(t, file)))
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
			// Windows has no modes
			t.Errorf("mode %v, err %v", info.Mode(), err)
		}
		assertAlone(t, dir, "run.zip")
		if r := first[*kagziv1.ExportWorkflowRequest](t, s.server); !r.RedactPayloads || r.RunId != failedRun {
			t.Errorf("request %v", r)
		}
	})
	t.Run("reports the file as JSON", func(t *testing.T) {
		s, file := &session{server: capsuleServer()}, filepath.Join(t.TempDir(), "run.zip")
		out, _ := s.want(t, ExitOK, "wf", "export", failedRun, "-f", file, "-o", "jsonl")
		if !strings.Contains(out, `"bytes":6004`) || !strings.Contains(out, `"run_id":"`+failedRun) {
			t.Errorf("stdout %q", out)
		}
	})
	t.Run("overwrites a file only with --force", func(t *testing.T) {
		s, dir := &session{server: capsuleServer()}, t.TempDir()
		file := filepath.Join(dir, "run.zip")
		if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, msg := s.want(t, ExitConflict, "wf", "export", failedRun, "--file", file)
		if read(t, file) != "mine" || !strings.Contains(msg, "--force") || len(s.server.requests) != 0 {
			t.Errorf("stderr %q, %d calls", msg, len(s.server.requests))
		}
		s.want(t, ExitOK, "wf", "export", failedRun, "--file", file, "--force")
		if read(t, file) != whole {
			t.Errorf("%d bytes", len(read(t, file)))
		}
		assertAlone(t, dir, "run.zip")
	})
	t.Run("a failed export keeps the old file and leaves no other", func(t *testing.T) {
		s, dir := &session{server: capsuleServer()}, t.TempDir()
		s.server.fail = map[string]error{"ExportWorkflow end": unavailable}
		s.want(t, ExitUnavailable, "wf", "export", failedRun, "--file", filepath.Join(dir, "run.zip"))
		assertAlone(t, dir)
		s.want(t, ExitNotFound, "wf", "export", "none", "--file", filepath.Join(dir, "run.zip"))
		assertAlone(t, dir)
		s.server.fail, s.server.capsule = nil, nil
		s.want(t, ExitError, "wf", "export", failedRun, "--file", filepath.Join(dir, "run.zip"))
		assertAlone(t, dir)
	})
	t.Run("does not overwrite a file created meanwhile", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "run.zip")
		_, err := writeFile(file, false, func(io.Writer) (int64, error) {
			return 0, os.WriteFile(file, []byte("mine"), 0o600)
		})
		if read(t, file) != "mine" || !errors.As(err, new(*fileExistsError)) {
			t.Errorf("file %q, err %v", read(t, file), err)
		}
		assertAlone(t, dir, "run.zip")
	})
	t.Run("writes to stdout if it is no terminal", func(t *testing.T) {
		s := &session{server: capsuleServer()}
		if out, msg := s.want(t, ExitOK, "wf", "export", failedRun); out != whole || msg != "wrote 5.9 KiB\n" {
			t.Errorf("%d bytes, stderr %q", len(out), msg)
		}
		s.tty = true
		if out, msg := s.want(t, ExitUsage, "wf", "export", failedRun); out != "" || !strings.Contains(msg, "--file") {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
	})
}

func TestImport(t *testing.T) {
	write := func(t *testing.T, size int) string {
		path := filepath.Join(t.TempDir(), "run.zip")
		if err := os.WriteFile(path, bytes.Repeat([]byte("kagzi"), size/5+1)[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Run("sends the file in chunks, the namespace in the first only", func(t *testing.T) {
		for _, size := range []int{1, capsuleChunk - 1, capsuleChunk, capsuleChunk + 1, 3*capsuleChunk + 7} {
			s, path := &session{server: &fake{}}, write(t, size)
			out, _ := s.want(t, ExitOK, "wf", "import", path, "-n", "stage")
			if string(s.server.imported) != read(t, path) || out != "run-9  3 runs\n" {
				t.Errorf("size %d: %d bytes arrived, stdout %q", size, len(s.server.imported), out)
			}
			parts := requestsOf[*kagziv1.Capsule](s.server)
			if parts[0].Namespace != "stage" || parts[0].RequestId != "new-id" ||
				len(parts) != (size+capsuleChunk-1)/capsuleChunk {
				t.Errorf("size %d: %d parts, the first for %q", size, len(parts), parts[0].Namespace)
			}
		}
	})
	t.Run("reads stdin and prints JSON", func(t *testing.T) {
		s := &session{server: &fake{}, stdin: "zip"}
		out, msg := s.want(t, ExitOK, "wf", "import", "-", "--request-id", "taken", "-o", "jsonl")
		if want := `{"run_id":"run-9","runs":3,"already_imported":true}` + "\n"; out != want ||
			!strings.Contains(msg, "already used") {
			t.Errorf("stdout %q, stderr %q", out, msg)
		}
	})
	t.Run("reports the server's error", func(t *testing.T) {
		s := &session{server: &fake{fail: map[string]error{
			"ImportWorkflow": status.Error(codes.InvalidArgument, "no manifest.json in the capsule")}}}
		if _, msg := s.want(t, ExitUsage, "wf", "import", write(t, 3*capsuleChunk)); !strings.Contains(
			msg, "no manifest.json") {
			t.Errorf("stderr %q", msg)
		}
		if n := len(requestsOf[*kagziv1.Capsule](s.server)); n != 1 {
			t.Errorf("%d parts sent to a stream that had ended", n)
		}
	})
	t.Run("sends nothing for a missing or empty file", func(t *testing.T) {
		for _, path := range []string{filepath.Join(t.TempDir(), "none"), write(t, 0), t.TempDir()} {
			s := &session{server: &fake{}}
			if _, _, code := s.run(t, "wf", "import", path); code == ExitOK || len(s.server.requests) > 0 {
				t.Errorf("%s: exit code %d, %d calls", path, code, len(s.server.requests))
			}
		}
	})
}
