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
	// checkInterval is how often handshakes look whether a file has changed.
	checkInterval = time.Second
	// nearExpiry is when the log begins to warn, once a day.
	nearExpiry = 14 * 24 * time.Hour
)

// Keeper holds a server's certificate and takes up a new one when its files change. It looks when
// somebody connects, so that nothing happens while nobody does. Connections that are there keep the
// certificate with which they began.
type Keeper struct {
	log  *slog.Logger
	now  func() time.Time
	held atomic.Pointer[configs]

	checking sync.Mutex // held while files are checked or read
	checked  time.Time
	seen     []os.FileInfo // of the files when they were read last, whether they were good or not
	warned   time.Time     // of the expiry
}

// configs are the configurations that a pair makes. Each lives as long as the pair, and with it the
// keys of resumption: no session goes on under authorities that are gone.
type configs struct {
	pair     *pair
	rpc, web *tls.Config
}

// Keep reads the files, which must be good. now is the wall clock; nil is the system's.
func Keep(f Files, log *slog.Logger, now func() time.Time) (*Keeper, error) {
	if now == nil {
		now = time.Now
	}
	k := &Keeper{log: log, now: now}
	return k, k.Reload(f)
}

// Reload reads the files, which may be others than before. If they are not good, those that were taken up before hold.
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
		k.log.Info("certificate taken up", "file", f.Cert, "subject", leaf.Subject.String(), "expires",
			moment(leaf.NotAfter))
		k.warned = time.Time{}
	}
	if before != nil && !p.clients.Equal(before.pair.clients) {
		k.log.Info("authorities of clients taken up", "file", f.ClientCA)
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
	k.log.Warn("the certificate expires soon, or has; put a new one in its place", "file",
		k.held.Load().pair.files.Cert, "expires", moment(leaf.NotAfter))
}

// Held is the certificate that is shown now, and its files. Do not change it.
func (k *Keeper) Held() (*x509.Certificate, Files) {
	p := k.held.Load().pair
	return p.cert.Leaf, p.files
}

// RPC is the configuration for a server of gRPC: TLS 1.3, and the certificate of a client, if it has one to show.
func (k *Keeper) RPC() *tls.Config { return k.config(func(d *configs) *tls.Config { return d.rpc }) }

// Web is the configuration for a server of HTTP/1.1, which asks for no certificate.
func (k *Keeper) Web() *tls.Config { return k.config(func(d *configs) *tls.Config { return d.web }) }

func (k *Keeper) config(of func(*configs) *tls.Config) *tls.Config {
	outer := of(k.held.Load()).Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		k.check()
		return of(k.held.Load()), nil
	}
	return outer
}

// check takes up files that have changed. Of many handshakes at once one checks, and the others go
// on with what is there.
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
		k.log.Warn("the changed files of the certificate are not good; those before hold", "error", err)
	}
}

// stamps is what the files look like now; nil stands for one that is not there.
func (f Files) stamps() []os.FileInfo {
	paths := []string{f.Cert, f.Key}
	if f.ClientCA != "" {
		paths = append(paths, f.ClientCA)
	}
	stamps := make([]os.FileInfo, len(paths))
	for i, path := range paths {
		if info, err := os.Stat(path); err == nil {
			// Windows is asked which file it is when it is first compared, by when another may have taken its place
			os.SameFile(info, info)
			stamps[i] = info
		}
	}
	return stamps
}

// same says whether nothing has changed from a to b.
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
	rpc := web.Clone()
	rpc.NextProtos = []string{"h2"}
	if p.clients != nil {
		rpc.ClientCAs, rpc.ClientAuth = p.clients, tls.VerifyClientCertIfGiven
	}
	return &configs{pair: p, rpc: rpc, web: web}
}
