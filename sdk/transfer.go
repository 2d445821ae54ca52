package kagzi

import (
	"context"
	"errors"
	"fmt"
	"io"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// capsuleChunk is how many bytes of a capsule travel in one message.
const capsuleChunk = 1 << 20

// ExportOptions say what a capsule holds.
type ExportOptions struct {
	RedactPayloads bool // only their sizes and hashes; such a capsule can be read, but neither imported nor replayed
}

// Export writes the run with its children, steps, payloads and signals to w as one zip file, a capsule, for ReplayCapsule and
// Import. What is written before an error is no whole file.
func (r *Run) Export(ctx context.Context, w io.Writer, opts ExportOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream when w fails
	stream, err := r.c.workflows.ExportWorkflow(ctx, &kagziv1.ExportWorkflowRequest{
		Namespace: r.c.options.Namespace, RunId: r.id, RedactPayloads: opts.RedactPayloads,
	})
	if err != nil {
		return callError(ctx, err)
	}
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return callError(ctx, err)
		}
		if _, err := w.Write(part.GetData()); err != nil {
			return fmt.Errorf("kagzi: export run %s: %w", r.id, err)
		}
	}
}

// ImportOptions say how a capsule is imported. Every zero field means the default in brackets.
type ImportOptions struct {
	// RequestID names this one import: repeated with the same id, Import returns the same run (a fresh UUIDv7).
	RequestID string
}

// Import reads a capsule and puts its runs, under new ids, into the client's namespace. It returns the run that was exported;
// AlreadyExisted tells that the RequestID had been answered before. Nothing or all of it is imported. Runs that are open come in
// paused: Run.Resume lets each go on. They keep their external ids, and do not hold them: a start with one of these does not find them.
func (c *Client) Import(ctx context.Context, capsule io.Reader, opts ImportOptions) (*Run, error) {
	id, err := requestID(opts.RequestID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream when the reader fails
	stream, err := c.workflows.ImportWorkflow(ctx)
	if err != nil {
		return nil, callError(ctx, err)
	}
	part := &kagziv1.Capsule{Namespace: c.options.Namespace, RequestId: id}
	for last := false; !last; {
		buffer := make([]byte, capsuleChunk)
		n, err := io.ReadFull(capsule, buffer)
		last = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return nil, fmt.Errorf("kagzi: import: %w", err)
		}
		part.Data = buffer[:n]
		if stream.Send(part) != nil {
			break // CloseAndRecv tells why
		}
		part = new(kagziv1.Capsule)
	}
	resp, err := stream.CloseAndRecv()
	if err != nil {
		return nil, callError(ctx, err)
	}
	return &Run{c: c, id: resp.GetRunId(), exists: resp.GetAlreadyImported()}, nil
}
