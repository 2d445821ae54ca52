package kagzi

import (
	"os"
	"strings"
	"testing"
)

func TestHostnameOfAWorker(t *testing.T) {
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for option, want := range map[string]string{
		"": own, "edge-7": "edge-7", strings.Repeat("h", maxName): strings.Repeat("h", maxName)} {
		equal(t, NewWorker(WorkerOptions{Hostname: option}).hello().GetHostname(), want)
	}
	for option, want := range map[string]string{
		strings.Repeat("h", maxName+1): "Hostname has 256 bytes, want at most 255", "\xff": "want UTF-8"} {
		o := WorkerOptions{Hostname: option}
		if err := o.checkText(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Hostname %.10q: %v, want %q", option, err, want)
		}
	}
}
