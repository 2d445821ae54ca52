package cli

import "testing"

func TestHealthIsAskedWhereAServerOfThisMachineCanBeReached(t *testing.T) {
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

func TestHealthSaysInOneLineWhyNobodyServes(t *testing.T) {
	t.Setenv("KAGZI_CONFIG", "off")
	err := Health(t.Context(), "127.0.0.1:1")
	if err == nil || err.Error() != "no server answers at 127.0.0.1:1; start one with: kagzi server" {
		t.Fatalf("err = %v", err)
	}
}
