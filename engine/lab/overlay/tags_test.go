package overlay

import "testing"

func TestATagIsAddedToThoseOfTheFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"":                              "-tags=failpoint",
		"-trimpath":                     "-tags=failpoint",
		"-tags=":                        "-tags=failpoint",
		"-tags=a,b -trimpath\n":         "-tags=a,b,failpoint",
		"-trimpath --tags=a":            "-tags=a,failpoint",
		"-tags=a -tags=b -ldflags=-X=t": "-tags=b,failpoint",
	} {
		if got := withTag(flags, "failpoint"); got != want {
			t.Errorf("%q: %s, want %s", flags, got, want)
		}
	}
}
