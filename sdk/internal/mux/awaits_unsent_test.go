package mux

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func TestWaitsAbandonedWithoutAServerAreDropped(t *testing.T) {
	conn, err := grpc.NewClient("passthrough:///none", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			return nil, errors.New("nobody is there")
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	a := NewAwaits(AwaitOptions{Conn: conn, Log: slog.New(slog.DiscardHandler), Explain: func(err error) error {
		return err
	}})
	defer a.Close()
	a.enter("a", false)
	for range 3 * MaxAwaiting {
		a.leave(a.enter("b", false))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if kept := len(a.streams[0].unsent); kept == 0 || kept > 2*MaxAwaiting {
		t.Errorf("%d waits are to be sent although one is open, want at most %d", kept, 2*MaxAwaiting)
	}
}
