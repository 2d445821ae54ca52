// Package openapi holds the description of the API over HTTP, as OpenAPI 3.1. It is generated from
// the .proto files: openapi.json to read and compare, and the same compressed for the program.
package openapi

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
)

// GZIP is the description as JSON, compressed.
//
//go:embed openapi.json.gz
var GZIP []byte

// JSON returns the description as JSON.
func JSON() ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(GZIP))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}
