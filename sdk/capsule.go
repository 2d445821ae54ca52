package kagzi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/capsule"
	"github.com/kagzi/kagzi/sdk/internal/convert"
)

// Capsule is a run that was exported, with its children, open for reading. Nothing of it is written
// to disk, and what it holds is bounded: 1 GiB unpacked, 10,001 runs.
type Capsule struct {
	file    *os.File // nil when the capsule was not opened by its name
	content *capsule.Content
}

// OpenCapsule opens a file that Run.Export, or "kagzi workflow export", has written. Close it after use.
func OpenCapsule(file string) (*Capsule, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("kagzi: capsule: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		var c *Capsule
		if c, err = readCapsule(f, info.Size()); err == nil {
			c.file = f
			return c, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("kagzi: capsule %q: %w", file, err), f.Close())
}

func readCapsule(r io.ReaderAt, size int64) (*Capsule, error) {
	content, err := capsule.Read(r, size)
	if err != nil {
		return nil, err
	}
	return &Capsule{content: content}, nil
}

// Close closes the file.
func (c *Capsule) Close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// CapsuleRun is one of the runs of a capsule.
type CapsuleRun struct {
	RunID        string
	WorkflowType string
	Status       Status // as it stood at the export
	ParentRunID  string
}

// Runs are the capsule's runs: first the one that was exported, and each child after its parent.
func (c *Capsule) Runs() []CapsuleRun {
	runs := make([]CapsuleRun, len(c.content.Manifest.Runs))
	for i, r := range c.content.Manifest.Runs {
		runs[i] = CapsuleRun{r.RunID, r.WorkflowType, Status(strings.TrimPrefix(r.Status, statusPrefix)), r.ParentRunID}
	}
	return runs
}

// load reads one run and the latest attempt of each of its steps.
func (c *Capsule) load(runID string) (*runRecord, error) {
	run, steps, err := c.content.Load(runID)
	if err != nil {
		return nil, err
	}
	return newRecord(run, steps), nil
}

// Redacted reports a capsule of whose payloads only the sizes and hashes are there.
func (c *Capsule) Redacted() bool { return c.content.Manifest.Redacted }

// ReplayOptions say what is replayed. Every zero field means the default in brackets.
type ReplayOptions struct {
	RunID  string       // of a run of the capsule (the one that was exported)
	Codec  Codec        // the workers' codec (none)
	Logger *slog.Logger // (slog.Default())
}

// Replay runs a workflow function against the recorded results of a run, without a server, and
// without running the code of any step. Where a result is not recorded, the code is suspended as in
// production. It returns nil when code and record agree, and a *Divergence for the first place
// where they part: the code does not come to a step that is recorded, or comes to another kind of
// step in its place; a recorded value cannot be read; the run ended otherwise than the code does.
// As in production, steps are known by their names: the order in which the code comes to recorded
// ones does not matter.
//
// There is no limit of time, so the code can be stepped through in a debugger. Use Go and Map
// rather than goroutines of your own there: of those it cannot be told whether they are about to
// call, and they are given up after a quarter of a second.
func Replay[In, Out any](c *Capsule, fn func(ctx Context, in In) (Out, error), opts ReplayOptions) error {
	if fn == nil {
		return errors.New("kagzi: Replay: no function")
	}
	if c.Redacted() {
		return errors.New("kagzi: the capsule was exported without payloads, and cannot be replayed")
	}
	r, err := c.load(opts.RunID)
	if err != nil {
		return fmt.Errorf("kagzi: capsule: %w", err)
	}
	if r.redacted() {
		return fmt.Errorf("kagzi: run %s was exported without payloads, and cannot be replayed", r.run.GetRunId())
	}
	w := NewWorker(WorkerOptions{Codec: opts.Codec, Logger: opts.Logger})
	return replayRecord(context.Background(), w, typed(w, r.run.GetWorkflowType(), fn), r)
}

// TestingT is the part of *testing.T that ReplayCapsule uses.
type TestingT interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// ReplayCapsule is Replay as a test, for a capsule in a file: it fails at the first divergence,
// with the step, what was expected there and what the code did. Of several options the last holds.
//
//	func TestOrder4711(t *testing.T) { kagzi.ReplayCapsule(t, "testdata/order-4711.kagzi", Order) }
func ReplayCapsule[In, Out any](t TestingT, file string, fn func(ctx Context, in In) (Out, error),
	opts ...ReplayOptions) {
	t.Helper()
	var o ReplayOptions
	if len(opts) > 0 {
		o = opts[len(opts)-1]
	}
	c, err := OpenCapsule(file)
	if err != nil {
		t.Fatalf("%v", err)
		return
	}
	err = Replay(c, fn, o)
	if closeErr := c.Close(); err == nil && closeErr != nil {
		err = closeErr
	}
	var d *Divergence
	switch {
	case errors.As(err, &d):
		if d.Stack != "" {
			t.Logf("panic of the code:\n%s", d.Stack)
		}
		t.Fatalf("run %s of type %s diverges\n  step:     %s\n  expected: %s\n  got:      %s",
			convert.Printable(d.RunID), convert.Printable(d.WorkflowType),
			convert.Printable(cmp.Or(d.Step, "(input or end)")), convert.Printable(d.Expected),
			convert.Printable(d.Got))
	case err != nil:
		t.Fatalf("%v", err)
	}
}

// capsuleChunk is how many bytes of a capsule travel in one message.
const capsuleChunk = 1 << 20

// ExportOptions say what a capsule holds.
type ExportOptions struct {
	RedactPayloads bool // only their sizes and hashes; such a capsule can be read, but neither imported nor replayed
}

// Export writes the run with its children, steps, payloads and signals to w as one zip file, a
// capsule, for ReplayCapsule and Import. What is written before an error is no whole file.
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

// Import reads a capsule and puts its runs, under new ids, into the client's namespace. It returns
// the run that was exported; AlreadyExisted tells that the RequestID had been answered before.
// Nothing or all of it is imported. Runs that are open come in paused: Run.Resume lets each go on.
// They keep their external ids, and do not hold them: a start with one of these does not find them.
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
