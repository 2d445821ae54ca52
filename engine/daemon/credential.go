package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// credentialMark begins the name of a file that the service manager hands to the service, which may not read it where it lies: systemd's
// LoadCredential=NAME:PATH.
const credentialMark = "credential:"

// fileOf is the path of a file that a setting names, as it is or as a credential.
func fileOf(text string) (path string, err error) {
	name, err := credentialOf(text)
	if name == "" || err != nil {
		return text, err
	}
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if dir == "" {
		return "", fmt.Errorf("%q: nobody handed this process credentials (CREDENTIALS_DIRECTORY is not set); "+
			"name the file, or have systemd start the server with LoadCredential=%s:FILE", text, name)
	}
	return filepath.Join(dir, name), nil
}

// credentialOf is the name of the credential that a setting names; empty: it names a file.
func credentialOf(text string) (name string, err error) {
	name, is := strings.CutPrefix(text, credentialMark)
	if !is {
		return "", nil
	}
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\`) {
		return "", fmt.Errorf("%q: want credential:NAME, the name of a credential of the service", text)
	}
	return name, nil
}
