package conformance

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// proxy stands between a subject and the server. It can read, change, lose and answer the messages of
// the session, and break connections.
type proxy struct {
	target *grpc.ClientConn
	server *grpc.Server
	lines  *lines
	active func() // is called at each operation of a run

	mu      sync.Mutex
	tamper  tamper
	streams int64
}

// tamper is what a test does with the messages of sessions. Both functions are called one at a time.
type tamper struct {
	// up gets a message of the subject on a stream. It returns false to keep it from the server, and may
	// answer it.
	up func(stream int64, r *kagziv1.SessionRequest) (pass bool, answer *kagziv1.SessionResponse)
	// down gets a message of the server, and returns what the subject gets.
	down func(stream int64, r *kagziv1.SessionResponse) []*kagziv1.SessionResponse
	// unary gets the name of a call of WorkerService outside of a session, before it goes to the
	// server and, with answered, before its answer goes to the subject. It may break the connection.
	unary func(method string, answered bool)
	// call is as unary, for the calls of all services. What it returns before the call is a refusal.
	call func(method string, answered bool) error
}

func newProxy(address string, active func()) (*proxy, error) {
	target, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(engine.MaxMessage+64<<10),
			grpc.MaxCallSendMsgSize(engine.MaxMessage), grpc.ForceCodecV2(frames{})))
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		_ = target.Close()
		return nil, err
	}
	p := &proxy{target: target, active: active, lines: &lines{Listener: l, open: map[*line]struct{}{}}}
	p.server = grpc.NewServer(grpc.ForceServerCodecV2(frames{}), grpc.UnknownServiceHandler(p.handle),
		grpc.MaxRecvMsgSize(engine.MaxMessage), grpc.MaxSendMsgSize(engine.MaxMessage+64<<10))
	go func() { _ = p.server.Serve(p.lines) }()
	return p, nil
}

func (p *proxy) address() string { return p.lines.Addr().String() }

// set replaces the tampering.
func (p *proxy) set(t tamper) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tamper = t
}

// cut breaks all connections.
func (p *proxy) cut() { p.lines.cut() }

func (p *proxy) close() {
	p.server.Stop()
	_ = p.target.Close()
}

const sessionMethod = "/kagzi.v1.WorkerService/Session"

// handle passes a call on.
func (p *proxy) handle(_ any, down grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(down)
	in, _ := metadata.FromIncomingContext(down.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(down.Context(), in))
	defer cancel()
	if err := p.call(method, false); err != nil {
		return err
	}
	up, err := p.target.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	call := &relay{p: p, up: up, down: down, method: method, session: method == sessionMethod}
	p.mu.Lock()
	p.streams++
	call.stream = p.streams
	p.mu.Unlock()
	if name, ok := strings.CutPrefix(method, "/kagzi.v1.WorkerService/"); ok && !call.session {
		call.unary = name
		if isUnaryOperation(name) {
			p.active()
		}
		p.tell(name, false)
	}
	go call.upward()
	return call.downward()
}

func (p *proxy) tell(method string, answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tamper.unary != nil {
		p.tamper.unary(method, answered)
	}
}

// call tells the tampering of a call outside of a session. It may take long, and lets the others go on.
func (p *proxy) call(method string, answered bool) error {
	p.mu.Lock()
	f := p.tamper.call
	p.mu.Unlock()
	if f == nil || method == sessionMethod {
		return nil
	}
	return f(method[strings.LastIndexByte(method, '/')+1:], answered)
}

// relay is one call that is passed on.
type relay struct {
	p       *proxy
	up      grpc.ClientStream
	down    grpc.ServerStream
	method  string
	session bool
	stream  int64 // its number
	unary   string

	mu sync.Mutex // for sending down
}

func (c *relay) send(f frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down.SendMsg(&f)
}

func (c *relay) upward() {
	for {
		var f frame
		if err := c.down.RecvMsg(&f); err != nil {
			if errors.Is(err, io.EOF) {
				_ = c.up.CloseSend()
			}
			return
		}
		if c.session && !c.passUp(&f) {
			continue
		}
		if c.up.SendMsg(&f) != nil {
			return // RecvMsg tells why
		}
	}
}

// passUp lets the tampering have a message of the subject, or each of a batch. It returns false to keep
// it from the server.
func (c *relay) passUp(f *frame) bool {
	r := &kagziv1.SessionRequest{}
	if proto.Unmarshal(*f, r) != nil {
		return true // the server says so
	}
	if len(r.Batch) == 0 {
		return c.passOneUp(r)
	}
	r.Batch = slices.DeleteFunc(r.Batch, func(raw []byte) bool {
		one := &kagziv1.SessionRequest{}
		return proto.Unmarshal(raw, one) == nil && !c.passOneUp(one)
	})
	data, err := proto.Marshal(r)
	*f = data
	return err == nil && len(r.Batch) > 0
}

func (c *relay) passOneUp(r *kagziv1.SessionRequest) bool {
	if isOperation(r) {
		c.p.active()
	}
	c.p.mu.Lock()
	up := c.p.tamper.up
	pass, answer := true, (*kagziv1.SessionResponse)(nil)
	if up != nil {
		pass, answer = up(c.stream, r)
	}
	c.p.mu.Unlock()
	if answer != nil {
		if data, err := proto.Marshal(answer); err == nil {
			_ = c.send(data)
		}
	}
	return pass
}

func (c *relay) downward() error {
	for {
		var f frame
		if err := c.up.RecvMsg(&f); err != nil {
			c.down.SetTrailer(c.up.Trailer())
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if c.unary != "" {
			c.p.tell(c.unary, true)
		}
		_ = c.p.call(c.method, true)
		all := []frame{f}
		if c.session {
			all = c.passDown(f)
		}
		for _, f := range all {
			if err := c.send(f); err != nil {
				return err
			}
		}
	}
}

// passDown lets the tampering have a message of the server.
func (c *relay) passDown(f frame) []frame {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	r := &kagziv1.SessionResponse{}
	if c.p.tamper.down == nil || proto.Unmarshal(f, r) != nil {
		return []frame{f}
	}
	if len(r.Batch) == 0 {
		return c.passOneDown(r)
	}
	whole := &kagziv1.SessionResponse{}
	for _, raw := range r.Batch {
		one := &kagziv1.SessionResponse{}
		if proto.Unmarshal(raw, one) != nil {
			return []frame{f}
		}
		for _, passed := range c.passOneDown(one) {
			whole.Batch = append(whole.Batch, passed)
		}
	}
	data, err := proto.Marshal(whole)
	if err != nil || len(whole.Batch) == 0 {
		return nil
	}
	return []frame{data}
}

func (c *relay) passOneDown(r *kagziv1.SessionResponse) (all []frame) {
	for _, m := range c.p.tamper.down(c.stream, r) {
		if data, err := proto.Marshal(m); err == nil {
			all = append(all, data)
		}
	}
	return all
}

// frame is the bytes of a message.
type frame []byte

// frames is a codec that leaves messages as they are.
type frames struct{}

func (frames) Name() string { return "proto" }

func (frames) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, status.Error(codes.Internal, "not a frame")
	}
	return mem.BufferSlice{mem.SliceBuffer(*f)}, nil
}

func (frames) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return status.Error(codes.Internal, "not a frame")
	}
	*f = data.Materialize()
	return nil
}

// lines is a listener that can break its connections.
type lines struct {
	net.Listener
	mu   sync.Mutex
	open map[*line]struct{}
}

type line struct {
	net.Conn
	of     *lines
	silent atomic.Bool
}

func (l *lines) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &line{Conn: conn, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = struct{}{}
	return c, nil
}

func (c *line) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

func (l *lines) cut() {
	for _, c := range l.all() {
		_ = c.Close()
	}
}

func (l *lines) all() []*line {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*line, 0, len(l.open))
	for c := range l.open {
		all = append(all, c)
	}
	return all
}

// silence lets the connections of now stay open, but pass nothing on any more.
func (l *lines) silence() {
	for _, c := range l.all() {
		c.silent.Store(true)
	}
}

func (c *line) Write(b []byte) (int, error) {
	if c.silent.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *line) Read(b []byte) (int, error) {
	for {
		if n, err := c.Conn.Read(b); err != nil || !c.silent.Load() {
			return n, err
		}
	}
}
