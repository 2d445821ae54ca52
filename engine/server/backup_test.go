package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// closing is a backup file that records that it was closed.
type closing struct {
	io.Reader
	closed chan struct{}
}

func (c *closing) Close() error {
	close(c.closed)
	return nil
}

// receive takes a backup to its end.
func receive(t *testing.T, client kagziv1.AdminServiceClient) (data []byte, last *kagziv1.BackupChunk, err error) {
	t.Helper()
	stream, err := client.Backup(t.Context(), &kagziv1.BackupRequest{})
	if err != nil {
		return nil, nil, err
	}
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return data, last, nil
		}
		if err != nil {
			return data, last, err
		}
		data, last = append(data, part.GetData()...), part
	}
}

func TestBackup(t *testing.T) {
	whole := bytes.Repeat([]byte("kagzi"), backupChunk/2) // two messages and a half
	sum := sha256.Sum256(whole)
	t.Run("it comes whole, with its checksum last, and is deleted", func(t *testing.T) {
		file := &closing{bytes.NewReader(whole), make(chan struct{})}
		_, conn := serveWith(t, servertest.StubStore{},
			Options{Backup: func(context.Context) (engine.Backup, io.ReadCloser, error) {
				return engine.Backup{Bytes: int64(len(whole)), SHA256: sum}, file, nil
			}})
		data, last, err := receive(t, kagziv1.NewAdminServiceClient(conn))
		if err != nil || !bytes.Equal(data, whole) {
			t.Fatalf("got %d bytes (%v), want %d", len(data), err, len(whole))
		}
		if last.GetTotalBytes() != int64(len(whole)) || !bytes.Equal(last.GetSha256(), sum[:]) ||
			len(last.GetData()) > 0 {
			t.Errorf("the last message = %v, want the size and the checksum alone", last)
		}
		<-file.closed
	})
	t.Run("one that is refused says why", func(t *testing.T) {
		_, conn := serveWith(t, servertest.StubStore{},
			Options{Backup: func(context.Context) (engine.Backup, io.ReadCloser, error) {
				return engine.Backup{}, nil, &engine.Error{Kind: engine.KindExhausted, Message: "no room"}
			}})
		if _, _, err := receive(t, kagziv1.NewAdminServiceClient(conn)); status.Code(err) != codes.ResourceExhausted {
			t.Fatalf("error = %v, want RESOURCE_EXHAUSTED", err)
		}
	})
	t.Run("the end of the server ends it", func(t *testing.T) {
		begun := make(chan struct{})
		s, conn := serveWith(t, servertest.StubStore{},
			Options{Backup: func(ctx context.Context) (engine.Backup, io.ReadCloser, error) {
				close(begun)
				<-ctx.Done()
				return engine.Backup{}, nil, ctx.Err()
			}})
		go func() {
			<-begun
			close(s.stopping)
		}()
		_, _, err := receive(t, kagziv1.NewAdminServiceClient(conn))
		if status.Code(err) != codes.Unavailable {
			t.Errorf("error = %v, want UNAVAILABLE", err)
		}
		s.stopping = make(chan struct{}) // for the stop of the test
	})
	t.Run("a server that makes none says so", func(t *testing.T) {
		_, conn := serveWith(t, servertest.StubStore{}, Options{})
		if _, _, err := receive(t, kagziv1.NewAdminServiceClient(conn)); status.Code(err) != codes.Unimplemented {
			t.Fatalf("error = %v, want UNIMPLEMENTED", err)
		}
	})
}
