package zone

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestEveryZoneIsThereWithoutASystem(t *testing.T) {
	zones, err := embeddedZones()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, f := range zones.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		count++
		if _, err := embeddedZone(f.Name); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	if count < 500 {
		t.Errorf("%d zones, want all", count)
	}
	berlin, err := embeddedZone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	if got := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC).In(berlin).Format("15:04 MST"); got != "14:00 CEST" {
		t.Errorf("noon UTC is %s in Berlin in July, want 14:00 CEST", got)
	}
	for _, name := range []string{"", ".", "..", "Europe", "../Europe/Berlin", "/Europe/Berlin", "No/Where"} {
		if _, err := embeddedZone(name); err == nil {
			t.Errorf("%q is a zone, want an error", name)
		}
	}
}

// After an update of Go: go generate ./proto/zone
func TestTheZonesAreThoseOfGo(t *testing.T) {
	of := func(all []byte, err error) map[string]uint32 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		zones, err := zip.NewReader(bytes.NewReader(all), int64(len(all)))
		if err != nil {
			t.Fatal(err)
		}
		sums := make(map[string]uint32)
		for _, f := range zones.File {
			sums[f.Name] = f.CRC32
		}
		return sums
	}
	r, err := gzip.NewReader(bytes.NewReader(zoneinfo))
	if err != nil {
		t.Fatal(err)
	}
	got := of(io.ReadAll(r))
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := of(os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip")))
	for name, sum := range want {
		if got[name] != sum {
			t.Errorf("%s differs from the zone of Go: run go generate ./proto/zone", name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d zones, Go has %d", len(got), len(want))
	}
}
