package world

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Backup is not offered: no screen asks for it.
func (w *World) Backup(context.Context, *kagziv1.BackupRequest, ...grpc.CallOption) (grpc.ServerStreamingClient[kagziv1.BackupChunk], error) {
	return nil, status.Error(codes.Unimplemented, "this world has no database")
}
