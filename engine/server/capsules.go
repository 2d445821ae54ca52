package server

import (
	"errors"
	"io"
	"slices"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/bundle"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// ExportWorkflow streams a run, with its children and what these continued as, as a capsule (an
// exported run).
func (s *Server) ExportWorkflow(request *kagziv1.ExportWorkflowRequest,
	stream kagziv1.WorkflowService_ExportWorkflowServer) error {
	method := kagziv1.WorkflowService_ExportWorkflow_FullMethodName
	return s.onChain(stream.Context(), method, request, func(request any) error {
		return s.export(request.(*kagziv1.ExportWorkflowRequest), stream)
	})
}

func (s *Server) export(request *kagziv1.ExportWorkflowRequest,
	stream kagziv1.WorkflowService_ExportWorkflowServer) error {
	namespace, id, err := wire.RunOf(request)
	if err != nil {
		return err
	}
	p := bundle.ExportParams{Namespace: namespace, Run: id, Redact: request.RedactPayloads, At: s.now(),
		Version: s.options.Version}
	return bundle.Export(stream.Context(), s.store, p, chunks{stream})
}

// chunks is a writer that sends messages of at most ChunkBytes.
type chunks struct {
	stream kagziv1.WorkflowService_ExportWorkflowServer
}

func (c chunks) Write(data []byte) (int, error) {
	for part := range slices.Chunk(data, bundle.ChunkBytes) {
		if err := c.stream.Send(&kagziv1.Capsule{Data: slices.Clone(part)}); err != nil {
			return 0, err
		}
	}
	return len(data), nil
}

// ImportWorkflow makes the runs of a capsule under new ids, all or none. Open runs are imported
// paused.
func (s *Server) ImportWorkflow(stream kagziv1.WorkflowService_ImportWorkflowServer) error {
	ctx := stream.Context()
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return engine.Invalid("data", "must not be empty")
	}
	if err != nil {
		return err
	}
	p := engine.ImportRunsParams{RequestID: first.RequestId, By: auth.ActorOf(ctx),
		NamespaceMustExist: !s.known.auto}
	if p.Namespace, err = wire.NamespaceOf(first.Namespace); err != nil {
		return err
	}
	if err := engine.CheckRequestID(p.RequestID); err != nil {
		return err
	}
	started, err := s.importer.Import(ctx, first, stream, &p)
	if err != nil {
		return err
	}
	return stream.SendAndClose(&kagziv1.ImportWorkflowResponse{
		RunId: started.RunID.String(), Runs: int32(len(p.Runs)), AlreadyImported: started.Repeated,
	})
}
