//go:build !unix

package pgtest

import (
	"errors"
	"net/url"
)

// startServer needs a Unix socket and a shell.
func startServer(bool) (*url.URL, error) {
	return nil, errors.New("a private server is started on Unix only")
}

// startPooler needs Unix, as startServer does.
func startPooler(*url.URL) (*url.URL, error) {
	return nil, errors.New("a pooler is started on Unix only")
}
