//go:build linux

package main

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// proxy is a network that can be damaged: it listens on a port of its own, for good, and passes bytes on to wherever its target is now.
type proxy struct {
	listener net.Listener
	group    sync.WaitGroup

	mu      sync.Mutex
	network string // of the target: tcp, unix
	target  string
	weather weather
	changed chan struct{} // closed when the weather changes
	conns   map[*link]struct{}
	joined  int // connections so far
	closed  bool
	watch   func() watch // makes one for each connection; nil: none
}

// watch looks at what passes over one connection. It is called for one piece at a time.
type watch func(up bool, data []byte) verdict

// weather is what a proxy does to bytes. The zero value passes them on.
type weather struct {
	silent   bool          // nothing passes, either way, and nobody is told
	deaf     bool          // answers do not pass
	delay    time.Duration // of each piece
	jitter   time.Duration // beside it, at most
	rate     int           // bytes a second, each way; 0 is no limit
	breaking float64       // chance of each piece to break its connection
}

// verdict is what a proxy's watch says about a piece of data.
type verdict int

const (
	pass     verdict = iota
	withhold         // drop it, and leave the connection as it is
	passCut          // pass it on, and break the connection
	cut              // break the connection
)

type link struct {
	up, down net.Conn

	mu    sync.Mutex
	watch watch
}

func newProxy(network, target string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, network: network, target: target, changed: make(chan struct{}), conns: map[*link]struct{}{}}
	p.group.Go(p.accept)
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// aim sets where new connections lead to.
func (p *proxy) aim(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// set changes the weather, for connections that are there and those to come.
func (p *proxy) set(w weather) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather = w
	close(p.changed)
	p.changed = make(chan struct{})
}

// cut breaks all connections and returns how many there were.
func (p *proxy) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.conns)
	for c := range p.conns {
		c.close()
	}
	return n
}

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.set(weather{})
	p.listener.Close()
	p.cut()
	p.group.Wait()
}

// joins is how many connections were opened so far.
func (p *proxy) joins() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.joined
}

func (p *proxy) accept() {
	for {
		down, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.group.Go(func() { p.join(down) })
	}
}

// join carries one connection until either side ends it.
func (p *proxy) join(down net.Conn) {
	p.mu.Lock()
	network, target := p.network, p.target
	p.mu.Unlock()
	up, err := net.DialTimeout(network, target, time.Second)
	if err != nil {
		down.Close()
		return
	}
	c := &link{up: up, down: down}
	p.mu.Lock()
	p.conns[c] = struct{}{}
	p.joined++
	closed := p.closed
	if p.watch != nil {
		c.watch = p.watch()
	}
	p.mu.Unlock()
	if closed {
		c.close()
	}
	var both sync.WaitGroup
	both.Go(func() { p.carry(c, true) })
	both.Go(func() { p.carry(c, false) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

// close resets both connections, so that what was on its way is lost.
func (c *link) close() {
	for _, conn := range []net.Conn{c.up, c.down} {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		conn.Close()
	}
}

type piece struct {
	data []byte
	due  time.Time
}

// carry passes bytes one way, up to the target or down from it.
func (p *proxy) carry(c *link, up bool) {
	defer c.close()
	from, to := c.down, c.up
	if !up {
		from, to = c.up, c.down
	}
	queue := make(chan piece, 64)
	var writing sync.WaitGroup
	writing.Go(func() {
		whole := true
		for piece := range queue {
			if whole = whole && p.send(c, to, piece, up); !whole {
				c.close() // which ends the reader; what it still brings goes nowhere
			}
		}
	})
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.mu.Lock()
			w := p.weather
			p.mu.Unlock()
			wait := w.delay
			if w.jitter > 0 {
				wait += rand.N(w.jitter)
			}
			if w.rate > 0 {
				time.Sleep(time.Duration(n) * time.Second / time.Duration(w.rate))
			}
			queue <- piece{append([]byte(nil), buffer[:n]...), time.Now().Add(wait)}
		}
		if err != nil {
			break
		}
	}
	close(queue)
	writing.Wait()
}

// send writes one piece when it is due and the weather lets it pass.
func (p *proxy) send(c *link, to net.Conn, d piece, up bool) bool {
	if wait := time.Until(d.due); wait > 0 {
		time.Sleep(wait)
	}
	for {
		p.mu.Lock()
		w, changed, closed := p.weather, p.changed, p.closed
		p.mu.Unlock()
		if closed {
			return false
		}
		if !w.silent && !(w.deaf && !up) {
			if w.breaking > 0 && rand.Float64() < w.breaking {
				return false
			}
			break
		}
		<-changed
	}
	v := c.judge(d.data, up)
	if v == withhold || v == cut {
		return v == withhold
	}
	_, err := to.Write(d.data)
	return err == nil && v == pass
}

// judge asks the watch.
func (c *link) judge(data []byte, up bool) verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch == nil {
		return pass
	}
	return c.watch(up, data)
}
