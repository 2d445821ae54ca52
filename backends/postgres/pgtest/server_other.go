//go:build !unix

package pgtest

import (
	"errors"
	"net/url"
)

// startServer needs what only Unix has: a socket, and a shell that keeps watch.
func startServer(bool) (*url.URL, error) {
	return nil, errors.New("a private server is started on Unix only")
}

// startPooler is for Unix only, like the server that it would stand before.
func startPooler(*url.URL) (*url.URL, error) {
	return nil, errors.New("a pooler is started on Unix only")
}
