package certs

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// checkInterval is the shortest interval at which handshakes check whether a file has changed.
	checkInterval = time.Second
	// nearExpiry is how long before its expiry the log warns about a certificate, once a day.
	nearExpiry = 14 * 24 * time.Hour
)

// Keeper holds a server's certificate and reloads it when its files change. It checks the files
// during handshakes, so it costs nothing while nobody connects. Open connections keep the
// certificate with which they began.
type Keeper struct {
	log  *slog.Logger
	now  func() time.Time
	held atomic.Pointer[configs]

	checking sync.Mutex // held while files are checked or read
	checked  time.Time
	seen     []os.FileInfo // of the files when last read, even if they were invalid
	warned   time.Time     // when the log last warned of the expiry
}

// configs holds the TLS configurations of a pair. Each lives as long as the pair, and so do its
// session ticket keys: no session is resumed under CAs that were removed.
type configs struct {
	pair     *pair
	rpc, web *tls.Config
}

// Keep reads the files, which must be valid, and returns their Keeper. now is the wall clock; nil:
// time.Now.
func Keep(f Files, log *slog.Logger, now func() time.Time) (*Keeper, error) {
	if now == nil {
		now = time.Now
	}
	k := &Keeper{log: log, now: now}
	return k, k.Reload(f)
}

// Reload reads the files, whose paths may have changed. If they are not valid it returns an error,
// and the Keeper keeps the current certificate.
func (k *Keeper) Reload(f Files) error {
	k.checking.Lock()
	defer k.checking.Unlock()
	return k.reload(f)
}

func (k *Keeper) reload(f Files) error {
	k.seen = f.stamps()
	p, err := f.read(k.now())
	if err != nil {
		return err
	}
	k.seen = p.stamps
	before := k.held.Swap(p.configs(k.now))
	leaf := p.cert.Leaf
	if before == nil || !leaf.Equal(before.pair.cert.Leaf) {
		k.log.Info("certificate loaded", "file", f.Cert, "subject", leaf.Subject.String(), "expires",
			moment(leaf.NotAfter))
		k.warned = time.Time{}
	}
	if before != nil && !p.clients.Equal(before.pair.clients) {
		k.log.Info("client CA loaded", "file", f.ClientCA)
	}
	k.warnOfExpiry(leaf)
	return nil
}

func (k *Keeper) warnOfExpiry(leaf *x509.Certificate) {
	now := k.now()
	if left := leaf.NotAfter.Sub(now); left > nearExpiry || !k.warned.IsZero() && now.Sub(k.warned) < 24*time.Hour {
		return
	}
	k.warned = now
	k.log.Warn("certificate expires soon or has expired; replace its file, it is reloaded without a restart", "file",
		k.held.Load().pair.files.Cert, "expires", moment(leaf.NotAfter))
}

// Held returns the certificate in use and its files. Do not change it.
func (k *Keeper) Held() (*x509.Certificate, Files) {
	p := k.held.Load().pair
	return p.cert.Leaf, p.files
}

// RPC returns the configuration for a gRPC server: TLS 1.3, with optional client certificates.
func (k *Keeper) RPC() *tls.Config { return k.config(func(d *configs) *tls.Config { return d.rpc }) }

// Web returns the same for an HTTP/1.1 server.
func (k *Keeper) Web() *tls.Config { return k.config(func(d *configs) *tls.Config { return d.web }) }

func (k *Keeper) config(of func(*configs) *tls.Config) *tls.Config {
	outer := of(k.held.Load()).Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		k.check()
		return of(k.held.Load()), nil
	}
	return outer
}

// check reloads files that have changed. If several handshakes run at once, one checks and the
// others use the current certificate.
func (k *Keeper) check() {
	if !k.checking.TryLock() {
		return
	}
	defer k.checking.Unlock()
	now := k.now()
	if since := now.Sub(k.checked); 0 <= since && since < checkInterval {
		return
	}
	k.checked = now
	held := k.held.Load().pair
	k.warnOfExpiry(held.cert.Leaf)
	if same(k.seen, held.files.stamps()) {
		return
	}
	if err := k.reload(held.files); err != nil {
		k.log.Warn("certificate reload failed; keeping the current certificate", "error", err)
	}
}

// stamps returns the current file infos; nil for a missing file.
func (f Files) stamps() []os.FileInfo {
	paths := []string{f.Cert, f.Key}
	if f.ClientCA != "" {
		paths = append(paths, f.ClientCA)
	}
	stamps := make([]os.FileInfo, len(paths))
	for i, path := range paths {
		if info, err := os.Stat(path); err == nil {
			// On Windows the identity of the file is read at the first comparison, when the file
			// may already be replaced; so compare now.
			os.SameFile(info, info)
			stamps[i] = info
		}
	}
	return stamps
}

// same says whether the files of a and b are the same and unchanged.
func same(a, b []os.FileInfo) bool {
	for i := range min(len(a), len(b)) {
		if (a[i] == nil) != (b[i] == nil) {
			return false
		}
		if a[i] != nil && (!os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() ||
			!a[i].ModTime().Equal(b[i].ModTime())) {
			return false
		}
	}
	return len(a) == len(b)
}

func (p *pair) configs(now func() time.Time) *configs {
	web := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{p.cert},
		NextProtos: []string{"http/1.1"}, Time: now}
	if p.clients != nil {
		web.ClientCAs, web.ClientAuth = p.clients, tls.VerifyClientCertIfGiven
	}
	rpc := web.Clone()
	rpc.NextProtos = []string{"h2"}
	return &configs{pair: p, rpc: rpc, web: web}
}
