package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// powerShell returns text as PowerShell writes it to a file: in UTF-16, or in UTF-8 with a mark.
func powerShell(text string) map[string]string {
	little, big := []byte{0xff, 0xfe}, []byte{0xfe, 0xff}
	for _, unit := range utf16.Encode([]rune(text)) {
		little, big = append(little, byte(unit), byte(unit>>8)), append(big, byte(unit>>8), byte(unit))
	}
	return map[string]string{"UTF-16": string(little), "UTF-16BE": string(big), "BOM": "\xef\xbb\xbf" + text}
}

func TestInputOfPowerShellIsRead(t *testing.T) {
	for name, text := range powerShell(`{"input": {"name": "Zoë"}, "workflow_type": "t"}` + "\r\n") {
		path := filepath.Join(t.TempDir(), "in")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := &session{}
		s.want(t, ExitOK, "workflow", "start", "t", "--input", "@"+path)
		s.want(t, ExitOK, "workflow", "start", "--batch", path)
		s.stdin = text
		s.want(t, ExitOK, "workflow", "start", "t", "--input", "-")
		for _, r := range s.server.requests {
			var starts []*kagziv1.StartWorkflowRequest
			switch r := r.(type) {
			case *kagziv1.StartWorkflowRequest:
				starts = append(starts, r)
			case *kagziv1.StartWorkflowsRequest:
				starts = r.Requests
			}
			for _, start := range starts {
				if !strings.Contains(string(start.GetInput().GetData()), `"name": "Zoë"`) {
					t.Errorf("%s: input %q", name, start.GetInput().GetData())
				}
			}
		}
	}
}

func TestCapsuleThatPowerShellRewroteIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.zip")
	if err := os.WriteFile(path, []byte(powerShell("PK")["UTF-16"]), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &session{}
	if _, msg := s.want(t, ExitUsage, "workflow", "import", path); !strings.Contains(msg, "PowerShell") ||
		!strings.Contains(msg, "--file") {
		t.Errorf("stderr %q", msg)
	}
}
