// Package zone loads time zones on every system.
package zone

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"sync"
	"time"
)

// The time zones of Go, for systems without a database of them. Package time/tzdata has them, too, but
// not compressed: in the binary they would take five times as much.
//
//go:generate sh -c "gzip -9n -c \"$(go env GOROOT)/lib/time/zoneinfo.zip\" >zoneinfo.zip.gz"
//go:embed zoneinfo.zip.gz
var zoneinfo []byte

// Load returns a zone of the IANA database, as time.LoadLocation does, also where the system has none.
func Load(name string) (*time.Location, error) {
	location, err := time.LoadLocation(name)
	if err == nil {
		return location, nil
	}
	if own, embedded := embeddedZone(name); embedded == nil {
		return own, nil
	}
	return nil, err
}

func embeddedZone(name string) (*time.Location, error) {
	zones, err := embeddedZones()
	if err != nil {
		return nil, err
	}
	f, err := zones.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return time.LoadLocationFromTZData(name, data)
}

var embeddedZones = sync.OnceValues(func() (*zip.Reader, error) {
	r, err := gzip.NewReader(bytes.NewReader(zoneinfo))
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(all), int64(len(all)))
})
