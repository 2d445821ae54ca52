package server

import (
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
)

// countedHandshake counts open connections. It does so in the handshake, because a gRPC stats
// handler would cost allocations for every message.
type countedHandshake struct {
	credentials.TransportCredentials
	open *atomic.Int32
}

func (c countedHandshake) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return conn, info, err
	}
	c.open.Add(1)
	return small(&countedConn{Conn: conn, open: c.open}), info, nil
}

func (c countedHandshake) Clone() credentials.TransportCredentials {
	return countedHandshake{c.TransportCredentials.Clone(), c.open}
}

// countedConn decrements the count when it is closed.
type countedConn struct {
	net.Conn
	open   *atomic.Int32
	closed sync.Once
}

func (c *countedConn) Close() error {
	c.closed.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
