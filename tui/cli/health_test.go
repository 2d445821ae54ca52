package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestHealthUsesTheListenAddress(t *testing.T) {
	for listen, want := range map[string]string{
		"":                 "",
		":50051":           "localhost:50051",
		"0.0.0.0:50051":    "localhost:50051",
		"[::]:50051":       "localhost:50051",
		"127.0.0.1:50051":  "127.0.0.1:50051",
		"10.1.2.3:50051":   "10.1.2.3:50051",
		"kagzi.test:50051": "kagzi.test:50051",
	} {
		if got := local(listen); got != want {
			t.Errorf("local(%q) = %q, want %q", listen, got, want)
		}
	}
}

func TestHealthIgnoresTheAddressOfClients(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kagzi.toml")
	if err := os.WriteFile(file, []byte("[client]\nprofile = \"prod\"\n[profile.prod]\naddress = \"prod:1\"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KAGZI_CONFIG", file)
	t.Setenv("KAGZI_PROFILE", "")
	for _, address := range []string{"", "far:2"} {
		t.Setenv("KAGZI_ADDRESS", address)
		for listen, want := range map[string]string{"": "127.0.0.1:50051", ":7000": "localhost:7000"} {
			if p, err := reaching(listen); err != nil || p.Address != want {
				t.Errorf("a server that listens on %q, with KAGZI_ADDRESS=%s, is reached at %q, %v, want %q", listen,
					address, p.Address, err, want)
			}
		}
	}
}

func TestHealthErrorsAreOneLine(t *testing.T) {
	t.Setenv("KAGZI_CONFIG", "off")
	err := Health(t.Context(), "127.0.0.1:1")
	if err == nil ||
		err.Error() != "no server answers at 127.0.0.1:1; start one with: kagzi server --listen 127.0.0.1:1" {
		t.Fatalf("err = %v", err)
	}
}
