package bench

import (
	"net"
	"net/url"
	"strings"
	"sync"
	"time"
)

// delayed is a proxy in front of a Postgres that makes it look further away: what comes in on one
// side goes out on the other half a round trip later, in order, however much is on its way.
type delayed struct {
	listener net.Listener
	target   string
	each     time.Duration // each way

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil: closed
	open  sync.WaitGroup
}

const defaultPostgresPort = "5432"

// delayDatabase starts a proxy for the database of a URL, and returns the URL by way of it.
func delayDatabase(db string, roundTrip time.Duration) (*delayed, string, error) {
	u, err := url.Parse(db)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Hostname() == "" ||
		strings.Contains(u.Host, ",") || u.Query().Has("host") {
		return nil, "", usagef("--db-delay needs one host in the URL of --db, such as postgres://USER@HOST/NAME")
	}
	port := u.Port()
	if port == "" {
		port = defaultPostgresPort
	}
	d := &delayed{target: net.JoinHostPort(u.Hostname(), port), each: roundTrip / 2,
		conns: map[net.Conn]struct{}{}}
	if d.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, "", err
	}
	u.Host = d.listener.Addr().String()
	d.open.Go(d.accept)
	return d, u.String(), nil
}

func (d *delayed) accept() {
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return
		}
		d.open.Go(func() { d.serve(conn) })
	}
}

func (d *delayed) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", d.target)
	if err != nil {
		return
	}
	defer server.Close()
	if !d.add(client, server) {
		return
	}
	defer d.remove(client, server)
	var back sync.WaitGroup
	back.Go(func() { d.pass(client, server) })
	d.pass(server, client)
	back.Wait()
}

func (d *delayed) add(conns ...net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conns == nil {
		return false
	}
	for _, c := range conns {
		d.conns[c] = struct{}{}
	}
	return true
}

func (d *delayed) remove(conns ...net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range conns {
		delete(d.conns, c)
	}
}

// onWay is what was read at some time.
type onWay struct {
	at   time.Time
	data []byte
}

// pass copies from one side to the other until either is closed, and then closes both.
func (d *delayed) pass(to, from net.Conn) {
	way := make(chan onWay, 1<<10)
	var writing sync.WaitGroup
	writing.Go(func() {
		var err error
		for w := range way {
			if err == nil {
				pause(time.Until(w.at.Add(d.each)))
				_, err = to.Write(w.data)
			}
			if err != nil {
				from.Close()
			}
		}
		to.Close()
	})
	for {
		buffer := make([]byte, 64<<10)
		n, err := from.Read(buffer)
		if n > 0 {
			way <- onWay{time.Now(), buffer[:n]}
		}
		if err != nil {
			break
		}
	}
	close(way)
	writing.Wait()
}

// close ends all connections. On nil it does nothing.
func (d *delayed) close() error {
	if d == nil {
		return nil
	}
	err := d.listener.Close()
	d.mu.Lock()
	for c := range d.conns {
		c.Close()
	}
	d.conns = nil
	d.mu.Unlock()
	d.open.Wait()
	return err
}
