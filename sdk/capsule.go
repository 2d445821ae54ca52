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
	"google.golang.org/protobuf/proto"
)

// Capsule is an exported run with its children, open for reading. It is unpacked in memory: at most
// 1 GiB and 10,001 runs.
type Capsule struct {
	file    *os.File // nil if the capsule was not opened from a file
	content *capsule.Content
}

// OpenCapsule opens a file written by Run.Export or `kagzi workflow export`. Close it after use.
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

// CapsuleRun is one run in a capsule.
type CapsuleRun struct {
	RunID        string
	WorkflowType string
	Status       Status // at the time of the export
	ParentRunID  string
}

// Runs returns the exported run first, then its descendants, each after its parent.
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

// Redacted reports whether the capsule was exported without payloads, only their sizes and hashes.
func (c *Capsule) Redacted() bool { return c.content.Manifest.Redacted }

// ReplayOptions configures a replay. A field that is zero has the default in brackets.
type ReplayOptions struct {
	RunID  string       // the run to replay (the exported run)
	Codec  Codec        // the same as the workers' (none)
	Logger *slog.Logger // (slog.Default())
}

// Replay runs a workflow function against the recorded results of a run, without a server. It runs
// no step code. At a call without a recorded result, the code is suspended as in production.
//
// Replay returns nil if code and record agree, and a *Divergence for the first difference: a
// recorded step that the code does not reach, a recorded step of another kind, a recorded value
// that cannot be decoded, or an end that differs from the run's. Steps are matched by name, so
// their order does not matter.
//
// There is no time limit, so the code can be stepped through in a debugger. Use Go and Map rather
// than plain goroutines: Replay gives up on a plain goroutine that makes no call for 250 ms.
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

// TestingT is the part of *testing.T that ReplayCapsule needs.
type TestingT interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// ReplayCapsule opens a capsule file, calls Replay, and fails the test at the first divergence: it
// names the step, what is recorded and what the code did. If several opts are given, the last
// applies.
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
			t.Logf("stack of the panic:\n%s", d.Stack)
		}
		t.Fatalf("run %s of type %s diverges\n  step:     %s\n  expected: %s\n  got:      %s%s",
			convert.Printable(d.RunID), convert.Printable(d.WorkflowType),
			convert.Printable(cmp.Or(d.Step, "(input or end)")), convert.Printable(d.Expected),
			convert.Printable(d.Got), d.lists())
	case err != nil:
		t.Fatalf("%v", err)
	}
}

// capsuleChunk is the number of bytes of a capsule in one message.
const capsuleChunk = 1 << 20

// ExportOptions configures an export.
type ExportOptions struct {
	RedactPayloads bool // export only sizes and hashes; the capsule cannot be imported or replayed
}

// Export writes the run with its children, steps, payloads and signals to w as one zip file, called
// a capsule, for ReplayCapsule and Import. After an error the file is incomplete.
func (r *Run) Export(ctx context.Context, w io.Writer, opts ExportOptions) error {
	request := &kagziv1.ExportWorkflowRequest{
		Namespace: r.c.options.Namespace, RunId: r.id, RedactPayloads: opts.RedactPayloads,
	}
	return r.c.intercept(ctx, "ExportWorkflow", request, func(ctx context.Context) error {
		return r.export(ctx, w, request)
	})
}

func (r *Run) export(ctx context.Context, w io.Writer, request *kagziv1.ExportWorkflowRequest) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream when w fails
	stream, err := r.c.plain.ExportWorkflow(ctx, request)
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

// ImportOptions configures an import. A field that is zero has the default in brackets.
type ImportOptions struct {
	// RequestID identifies the import: repeating it returns the same run (a new UUIDv7).
	RequestID string
}

// Import adds the runs of a capsule to the client's namespace, under new ids, and returns the
// exported run. All runs are imported or none. AlreadyExisted reports that this RequestID was
// imported before. Open runs are imported paused; Run.Resume continues them. Imported runs show
// their external ids but do not reserve them: Start does not find them.
func (c *Client) Import(ctx context.Context, capsule io.Reader, opts ImportOptions) (*Run, error) {
	id, err := requestID(opts.RequestID)
	if err != nil {
		return nil, err
	}
	part := &kagziv1.Capsule{Namespace: c.options.Namespace, RequestId: id}
	var imported *Run
	err = c.intercept(ctx, "ImportWorkflow", proto.CloneOf(part), func(ctx context.Context) (err error) {
		imported, err = c.importFrom(ctx, part, capsule)
		return err
	})
	return imported, err
}

// importFrom sends a capsule; part is its first message.
func (c *Client) importFrom(ctx context.Context, part *kagziv1.Capsule, capsule io.Reader) (*Run, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream when the reader fails
	stream, err := c.plain.ImportWorkflow(ctx)
	if err != nil {
		return nil, callError(ctx, err)
	}
	for last := false; !last; {
		buffer := make([]byte, capsuleChunk)
		n, err := io.ReadFull(capsule, buffer)
		last = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return nil, fmt.Errorf("kagzi: import: %w", err)
		}
		part.Data = buffer[:n]
		if stream.Send(part) != nil {
			break // CloseAndRecv returns the reason
		}
		part = new(kagziv1.Capsule)
	}
	resp, err := stream.CloseAndRecv()
	if err != nil {
		return nil, callError(ctx, err)
	}
	return &Run{c: c, id: resp.GetRunId(), exists: resp.GetAlreadyImported()}, nil
}
