package agq

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

const (
	maxPending = 16 << 20 // bytes of answers that a client does not read: its connection is closed
	slowReader = 1 << 20  // bytes of answers above which no command is read
)

// conn is one connection. One goroutine reads its commands and carries them out, and one writes the
// answers. A pop that waits blocks neither: see pop.go.
type conn struct {
	door   *Door
	raw    net.Conn
	number int64
	reader *reader
	ctx    context.Context // ends with the connection
	end    context.CancelFunc

	// Of the reading goroutine.
	secret   string // shown by the client; empty: none
	caller   caller
	identity string // the worker that it speaks for; empty: none so far
	name     string // CLIENT SETNAME
	tools    *[]string
	beaten   time.Time // when a heartbeat of its worker was last passed on without a session
	reported string    // the job that it reported last

	mu      sync.Mutex
	changed *sync.Cond // of pending and closing
	pending reply
	closing bool // no more answers: what is pending is written, then the connection closes
	pop     *pop // the pop that waits; nil: none
	fenced  bool // another connection has taken its worker over
	popped  int  // the number of the session in which it popped last; 0: it never popped
}

func newConn(d *Door, raw net.Conn) *conn {
	c := &conn{door: d, raw: raw, number: d.numbers.Add(1)}
	c.changed = sync.NewCond(&c.mu)
	c.ctx, c.end = context.WithCancel(context.Background())
	c.reader = newReader(raw, func(more bool) {
		switch {
		case more:
			_ = raw.SetReadDeadline(time.Now().Add(commandTime))
		case c.caller.known:
			_ = raw.SetReadDeadline(time.Time{})
		}
	})
	return c
}

// serve serves the connection until it ends.
func (c *conn) serve() {
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write()
	}()
	defer func() {
		c.leave()
		c.finish()
		<-written
		_ = c.raw.Close()
		c.end()
	}()
	_ = c.raw.SetReadDeadline(time.Now().Add(strangerTime))
	if t, ok := c.raw.(*tls.Conn); ok {
		_ = c.raw.SetWriteDeadline(time.Now().Add(c.door.writing))
		if err := t.HandshakeContext(c.ctx); err != nil {
			c.noHandshake(err)
			return
		}
	}
	if c.door.server.Keyless(c.ctx) {
		c.admit(caller{known: true, open: true, namespace: "default"})
	}
	for {
		args, err := c.reader.next()
		if err != nil {
			if bad := (*protocolError)(nil); errors.As(err, &bad) {
				c.say(func(r *reply) { r.fail("ERR " + bad.text) })
			}
			return
		}
		if !c.carryOut(args) {
			return
		}
	}
}

// noHandshake tells the log, and a client that speaks no TLS, why the connection closes.
func (c *conn) noHandshake(err error) {
	if errors.Is(err, io.EOF) || c.door.stopping() {
		return // it said nothing, as a probe of the port
	}
	c.door.log.Info("TLS handshake on the AGQ port failed; the connection is closed", "from", c.raw.RemoteAddr(),
		"error", err)
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) && plain.Conn != nil {
		_ = plain.Conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(plain.Conn, "-ERR this port speaks TLS; connect with TLS\r\n")
	}
}

// carryOut carries out one command, and says whether the connection goes on. A pop that waits is given up
// first: its client has something else to say, and would take the pop's late answer for another.
func (c *conn) carryOut(args [][]byte) bool {
	c.giveUp()
	name := strings.ToUpper(string(args[0]))
	texts := make([]string, len(args)-1)
	for i, a := range args[1:] {
		texts[i] = string(a)
	}
	one, known := commands[name]
	more := true
	switch {
	case !c.caller.known && !one.stranger:
		c.fail("NOAUTH Authentication required")
	case !known:
		c.fail("ERR unknown command '" + cut(name, 64) + "'")
	case len(texts) < one.least || one.most >= 0 && len(texts) > one.most:
		c.fail("ERR wrong number of arguments for '" + strings.ToLower(name) + "' command")
	case c.isFenced() && one.worker:
		c.refuse(c.errFenced())
	default:
		more = one.run(c, texts)
	}
	return more && c.mayRead()
}

// say adds an answer.
func (c *conn) say(build func(*reply)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sayLocked(build)
}

func (c *conn) sayLocked(build func(*reply)) {
	if c.closing {
		return
	}
	build(&c.pending)
	if len(c.pending.text) > maxPending {
		c.pending.text, c.closing = nil, true
	}
	c.changed.Broadcast()
}

func (c *conn) ok()              { c.say(func(r *reply) { r.simple("OK") }) }
func (c *conn) fail(text string) { c.say(func(r *reply) { r.fail(text) }) }
func (c *conn) bulk(text string) { c.say(func(r *reply) { r.bulk(text) }) }
func (c *conn) null()            { c.say(func(r *reply) { r.null() }) }
func (c *conn) integer(n int64)  { c.say(func(r *reply) { r.integer(n) }) }

// refuse answers with the error of a call.
func (c *conn) refuse(err error) { c.fail(errorText(err)) }

// errorText returns an error as the protocol has it: with a code that clients know.
func errorText(err error) string {
	st := status.Convert(err)
	switch st.Code().String() {
	case "Unauthenticated":
		return "NOAUTH Authentication required: " + st.Message()
	case "PermissionDenied":
		return "NOPERM " + st.Message()
	}
	return "ERR " + st.Message()
}

// mayRead waits until the client has read enough of the answers, and says whether to read on.
func (c *conn) mayRead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending.text) > slowReader && !c.closing {
		c.changed.Wait()
	}
	return !c.closing
}

// write writes answers until the connection closes.
func (c *conn) write() {
	for {
		c.mu.Lock()
		for len(c.pending.text) == 0 && !c.closing {
			c.changed.Wait()
		}
		text := c.pending.text
		c.pending.text = nil
		c.changed.Broadcast()
		c.mu.Unlock()
		if len(text) == 0 {
			return // closing, and all is written
		}
		_ = c.raw.SetWriteDeadline(time.Now().Add(c.door.writing))
		if _, err := c.raw.Write(text); err != nil {
			c.mu.Lock()
			c.closing, c.pending.text = true, nil
			c.changed.Broadcast()
			c.mu.Unlock()
			_ = c.raw.Close() // ends the reading goroutine
			return
		}
	}
}

// finish answers the pop that waits with nil, and closes the connection when everything is written. It may
// be called from any goroutine, and again.
func (c *conn) finish() {
	c.giveUp()
	c.mu.Lock()
	c.closing = true
	c.changed.Broadcast()
	c.mu.Unlock()
	_ = c.raw.SetReadDeadline(time.Unix(1, 0)) // ends the reading goroutine
}

// callContext returns the context of calls for this client: its address, certificate and key are those of
// the connection.
func (c *conn) callContext() context.Context {
	from := &peer.Peer{Addr: c.raw.RemoteAddr()}
	if t, ok := c.raw.(*tls.Conn); ok {
		from.AuthInfo = credentials.TLSInfo{State: t.ConnectionState(),
			CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}
	}
	md := metadata.MD{}
	if c.secret != "" && !c.caller.open {
		md.Set("authorization", "Bearer "+c.secret)
	}
	return metadata.NewIncomingContext(peer.NewContext(c.ctx, from), md)
}
