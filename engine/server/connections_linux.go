package server

import (
	"io"
	"net"
	"syscall"

	"google.golang.org/grpc/mem"
)

// readyConn is a plaintext connection for whose reads gRPC takes a buffer only when there is
// something to read, so that one that is silent has none. gRPC finds ReadOnReady by its name, and
// knows to do the same only for connections that nobody has wrapped.
type readyConn struct {
	*countedConn
	file syscall.RawConn
	try  func(fd uintptr) bool // made once

	// Of the read that is under way; there is one at a time.
	pool   mem.BufferPool
	size   int
	buffer *[]byte
	n      int
	err    error
}

// small is c with as little memory as it can have while it is silent.
func small(c *countedConn) net.Conn {
	plain, ok := c.Conn.(*net.TCPConn)
	if !ok {
		return c // what is encrypted keeps what it has read of a record
	}
	file, err := plain.SyscallConn()
	if err != nil {
		return c
	}
	ready := &readyConn{countedConn: c, file: file}
	ready.try = ready.tryRead
	return ready
}

// tryRead is false when there is nothing to read yet.
func (c *readyConn) tryRead(fd uintptr) bool {
	c.buffer = c.pool.Get(c.size)
	c.n, c.err = syscall.Read(int(fd), *c.buffer)
	for c.err == syscall.EINTR {
		c.n, c.err = syscall.Read(int(fd), *c.buffer)
	}
	if c.err == nil {
		return true
	}
	c.pool.Put(c.buffer)
	c.buffer = nil
	return c.err != syscall.EAGAIN
}

// ReadOnReady waits for data and reads at most size bytes of it into a buffer of the pool, which is
// the caller's to put back.
func (c *readyConn) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	c.pool, c.size = pool, size
	err := c.file.Read(c.try)
	buffer, n := c.buffer, c.n
	if err == nil {
		err = c.err
	}
	c.buffer, c.pool, c.err = nil, nil, nil
	switch {
	case err != nil && buffer != nil:
		pool.Put(buffer)
	case err == nil && n == 0:
		pool.Put(buffer)
		err = io.EOF
	}
	if err != nil {
		return nil, 0, err
	}
	return buffer, n, nil
}
