package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
)

// FreeAddress returns an unused address of this machine for a server that will listen there again.
// It uses a separate loopback host where the system has more than 127.0.0.1, because a released
// port there is soon given to another server or connection.
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
