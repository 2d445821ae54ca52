package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// ImportWorkflow makes the runs of a capsule under new ids, all of them or none. Runs that were open come paused.
func (s *Server) ImportWorkflow(stream kagziv1.WorkflowService_ImportWorkflowServer) error {
	ctx := stream.Context()
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return engine.Invalid("data", "must not be empty")
	}
	if err != nil {
		return err
	}
	p := engine.ImportRunsParams{RequestID: first.RequestId, By: actorOf(ctx)}
	if p.Namespace, err = wire.NamespaceOf(first.Namespace); err != nil {
		return err
	}
	if err := engine.CheckRequestID(p.RequestID); err != nil {
		return err
	}
	file, size, err := receiveCapsule(first, stream)
	if err != nil {
		return err
	}
	defer discard(file)
	started, err := s.importCapsule(ctx, file, size, &p)
	if err != nil {
		return err
	}
	return stream.SendAndClose(&kagziv1.ImportWorkflowResponse{
		RunId: started.RunID.String(), Runs: int32(len(p.Runs)), AlreadyImported: started.Repeated,
	})
}

// importCapsule unpacks one capsule at a time, so that several that are large do not fill the memory together.
func (s *Server) importCapsule(ctx context.Context, file io.ReaderAt, size int64, p *engine.ImportRunsParams) (engine.Started, error) {
	select {
	case s.imports <- struct{}{}:
		defer func() { <-s.imports }()
	case <-s.stopping:
		return engine.Started{}, wire.ErrStopping
	case <-ctx.Done():
		return engine.Started{}, ctx.Err()
	}
	p.Now = s.now()
	p.AuditID = engine.NewID(p.Now)
	runs, err := readCapsule(ctx, file, size)
	if err != nil {
		return engine.Started{}, err
	}
	if p.Runs, err = resettle(runs, p.Namespace, p.Now); err != nil {
		return engine.Started{}, err
	}
	return s.store.ImportRuns(ctx, *p)
}

// receiveCapsule keeps what is sent in a file, for a zip is read from its end.
func receiveCapsule(first *kagziv1.Capsule, stream kagziv1.WorkflowService_ImportWorkflowServer) (*os.File, int64, error) {
	file, err := os.CreateTemp("", "kagzi-capsule-*")
	if err != nil {
		return nil, 0, fmt.Errorf("keep a capsule: %w", err)
	}
	size := int64(0)
	for part := first; err == nil; part, err = stream.Recv() {
		if size += int64(len(part.Data)); size > engine.MaxCapsule {
			err = engine.TooLarge("data", "is longer than the %d bytes that are allowed", engine.MaxCapsule)
			break
		}
		if _, err = file.Write(part.Data); err != nil {
			err = fmt.Errorf("keep a capsule: %w", err)
			break
		}
	}
	if !errors.Is(err, io.EOF) {
		discard(file)
		return nil, 0, err
	}
	return file, size, nil
}

// discard deletes a temporary file. One that cannot be deleted is left to the system's own cleaning.
func discard(file *os.File) {
	file.Close()
	os.Remove(file.Name())
}
