package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
)

// FreeAddress is an address of this machine at which nobody listens, for a server that is to come
// back to it. It is of a loopback host of its own where the system has more than 127.0.0.1: there
// another server, or a connection, is soon given a port that was let go.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	host := "127.0.0.1"
	if runtime.GOOS == "linux" || runtime.GOOS == "windows" {
		host = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
