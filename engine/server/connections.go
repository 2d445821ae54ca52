package server

import (
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
)

// countedHandshake counts the connections that are open. It counts where they are made safe,
// because gRPC's own handler of statistics would cost every message of every call some allocations.
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

// countedConn counts itself out when it is closed.
type countedConn struct {
	net.Conn
	open   *atomic.Int32
	closed sync.Once
}

func (c *countedConn) Close() error {
	c.closed.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
