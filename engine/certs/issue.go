package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// signer is a CA: its certificate, and its key once it was needed.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue makes a key and a certificate from the template; that of the CA is self-signed. It writes
// the key before the certificate, so that no certificate exists without its key.
func (w *workshop) issue(name string, template *x509.Certificate) error {
	key, fresh, err := w.keyFor(name)
	if err != nil {
		return err
	}
	parent, by := template, key
	if name != "ca" {
		if err := w.unlock(); err != nil {
			return err
		}
		parent, by = w.ca.cert, w.ca.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", w.path(name+".crt"), err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", w.path(name+".crt"), err)
	}
	if name == "ca" {
		w.ca = signer{cert: cert, key: key}
	}
	if fresh {
		err = w.write(name+".key", keyText(key), 0o600)
	}
	if err == nil {
		err = w.write(name+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
	}
	if err != nil {
		return err
	}
	w.note(name, cert, true)
	return nil
}

// keyFor returns a new key, or the existing one if an interrupted call of Make wrote it without its
// certificate.
func (w *workshop) keyFor(name string) (key *ecdsa.PrivateKey, fresh bool, err error) {
	_, certErr := w.root.Lstat(name + ".crt")
	if !errors.Is(certErr, fs.ErrNotExist) {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		return key, true, err
	}
	key, err = w.readKey(name)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		return key, true, err
	}
	return key, false, err
}

// unlock reads the CA's key.
func (w *workshop) unlock() (err error) {
	if w.ca.key != nil {
		return nil
	}
	if w.ca.key, err = w.readKey("ca"); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf(
				"the CA's key %s is missing, so no more certificates can be signed; "+
					"restore it, or choose another directory", w.path("ca.key"))
		}
		return err
	}
	if !w.ca.key.PublicKey.Equal(w.ca.cert.PublicKey) {
		return fmt.Errorf("%s does not belong to %s", w.path("ca.key"), w.path("ca.crt"))
	}
	return nil
}

func (w *workshop) readKey(name string) (*ecdsa.PrivateKey, error) {
	path := w.path(name + ".key")
	text, err := readPlain(w.root, name+".key")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	block := privateKey(text)
	if block == nil {
		return nil, fmt.Errorf("%s holds no private key in PEM; move it away", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s is not a key made by this program; choose another directory", path)
	}
	return key, nil
}

func keyText(key *ecdsa.PrivateKey) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err) // every key of this curve can be written
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// write makes a file with this mode, independent of the umask. An existing file or link is replaced
// only with Renew; a link is replaced, not followed.
func (w *workshop) write(name string, text []byte, mode fs.FileMode) (err error) {
	scratch := name
	if w.team.Renew {
		scratch += ".new-" + rand.Text()
	}
	if err = writeNew(w.root, scratch, text, mode); err == nil && w.team.Renew {
		if err = w.root.Rename(scratch, name); err != nil {
			err = errors.Join(err, w.root.Remove(scratch))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", w.path(name), err)
	}
	return nil
}

func writeNew(root *os.Root, name string, text []byte, mode fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode&0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Chmod(mode) // the umask may have changed it
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// readPlain reads a regular file; it refuses links and devices.
func readPlain(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file, so this program did not make it")
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	return FileText(text), err
}

// openPrivate opens a directory, and makes it with access for its owner only if it does not exist.
// It refuses a directory that other users may write to, and a link, which may lead anywhere.
func openPrivate(dir string) (*os.Root, error) {
	_, err := os.Lstat(dir)
	if fresh := errors.Is(err, fs.ErrNotExist); fresh {
		if err = os.MkdirAll(dir, 0o700); err == nil {
			err = os.Chmod(dir, 0o700) // the umask may have changed it
		}
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%s is a link; name the directory itself", dir)
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	if err := checkDir(info); err != nil {
		return nil, &UnsafeError{fmt.Sprintf("directory %s: %v", dir, err)}
	}
	return os.OpenRoot(dir)
}
