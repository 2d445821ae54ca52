package server

import (
	"io"
	"net"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/mem"
)

// counting is a pool of buffers that knows how many are out.
type counting struct{ out, taken int }

func (c *counting) Get(n int) *[]byte {
	c.out++
	c.taken++
	b := make([]byte, n)
	return &b
}

func (c *counting) Put(*[]byte) { c.out-- }

// pair is the two ends of a connection, the second one as the server has it.
func pair(t *testing.T) (client net.Conn, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server = small(&countedConn{Conn: accepted, open: new(atomic.Int32)})
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func TestASilentConnectionHasNoBuffer(t *testing.T) {
	client, server := pair(t)
	reader, ok := server.(interface {
		ReadOnReady(int, mem.BufferPool) (*[]byte, int, error)
	})
	if !ok {
		t.Fatalf("%T is not read as gRPC reads when it is ready", server)
	}
	pool := &counting{}
	if _, err := client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"hel", "lo"} {
		buffer, n, err := reader.ReadOnReady(3, pool)
		if err != nil || string((*buffer)[:n]) != want || pool.out != 1 {
			t.Fatalf("read %d bytes, %v, with %d buffers out, want %q in one", n, err, pool.out, want)
		}
		pool.Put(buffer)
	}
	before := pool.taken
	go func() { // once this end has found nothing, or at once: both are silence
		_, _ = client.Write([]byte("!"))
		_ = client.(*net.TCPConn).CloseWrite()
	}()
	buffer, n, err := reader.ReadOnReady(3, pool)
	if err != nil || string((*buffer)[:n]) != "!" || pool.out != 1 {
		t.Fatalf("read %d bytes, %v, with %d buffers out of %d taken", n, err, pool.out, pool.taken-before)
	}
	pool.Put(buffer)
	if _, _, err := reader.ReadOnReady(3, pool); err != io.EOF || pool.out != 0 {
		t.Errorf("after the end: %v with %d buffers out, want EOF and none", err, pool.out)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := reader.ReadOnReady(3, pool); err == nil || pool.out != 0 {
		t.Errorf("of a closed one: %v with %d buffers out", err, pool.out)
	}
}

func TestAWaitingConnectionHasNoBuffer(t *testing.T) {
	client, server := pair(t)
	c := server.(*readyConn)
	pool := &counting{}
	c.pool, c.size = pool, 8
	ready := true
	if err := c.file.Read(func(fd uintptr) bool { ready = c.tryRead(fd); return true }); err != nil || ready ||
		pool.out != 0 || pool.taken != 1 {
		t.Errorf("nothing to read: %v, ready %t, %d buffers out of %d taken, want not ready and none of one", err,
			ready, pool.out, pool.taken)
	}
	client.Close()
}
