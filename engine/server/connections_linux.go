package server

import (
	"io"
	"net"
	"syscall"

	"google.golang.org/grpc/mem"
)

// readyConn is a plaintext connection that holds no read buffer while it is idle: gRPC takes a
// buffer only when there is data. gRPC does this by itself only for connections that are not
// wrapped; for this one it finds the method ReadOnReady.
type readyConn struct {
	*countedConn
	file syscall.RawConn
	try  func(fd uintptr) bool // tryRead, allocated once

	// State of the current read; there is one at a time.
	pool   mem.BufferPool
	size   int
	buffer *[]byte
	n      int
	err    error
}

// small returns c in the form that uses the least memory while idle.
func small(c *countedConn) net.Conn {
	plain, ok := c.Conn.(*net.TCPConn)
	if !ok {
		return c // TLS keeps a buffer for partly read records
	}
	file, err := plain.SyscallConn()
	if err != nil {
		return c
	}
	ready := &readyConn{countedConn: c, file: file}
	ready.try = ready.tryRead
	return ready
}

// tryRead reads into a new buffer. It returns false if there is nothing to read yet.
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

// ReadOnReady waits for data and reads at most size bytes into a buffer of the pool. The caller
// puts the buffer back.
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
