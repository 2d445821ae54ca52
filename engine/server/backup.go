package server

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// backupChunk is the number of bytes of a backup in one message.
const backupChunk = 256 << 10

// Backup sends a copy of the database. The copy is made in a file, which is deleted afterwards.
func (s *Server) Backup(_ *kagziv1.BackupRequest, stream kagziv1.AdminService_BackupServer) error {
	if s.options.Backup == nil {
		return &engine.Error{Kind: engine.KindUnsupported,
			Message: "this server cannot make backups; use `kagzi db backup --db URL` instead"}
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	go func() { // ends with the call
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	made, file, err := s.options.Backup(ctx)
	if err != nil {
		return s.unlessStopping(err)
	}
	defer file.Close()
	if err := s.sendBackup(ctx, &made, file, stream); err != nil {
		return s.unlessStopping(err)
	}
	by := auth.ActorOf(ctx)
	s.recorder.Events.Note(slog.LevelInfo, "backup sent", slog.Int64("bytes", made.Bytes), slog.String("by", by.Name),
		slog.String("peer", by.Peer))
	return nil
}

// unlessStopping returns wire.ErrStopping if the server is stopping, otherwise err.
func (s *Server) unlessStopping(err error) error {
	select {
	case <-s.stopping:
		return wire.ErrStopping
	default:
		return err
	}
}

func (s *Server) sendBackup(ctx context.Context, made *engine.Backup, file io.Reader,
	stream kagziv1.AdminService_BackupServer) error {
	for {
		data := make([]byte, backupChunk) // a message may be read after Send
		n, err := io.ReadFull(file, data)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if n > 0 {
			if err := stream.Send(&kagziv1.BackupChunk{Data: data[:n], TotalBytes: made.Bytes}); err != nil {
				return err
			}
		}
		if last {
			return stream.Send(&kagziv1.BackupChunk{TotalBytes: made.Bytes, Sha256: made.SHA256[:]})
		}
	}
}
