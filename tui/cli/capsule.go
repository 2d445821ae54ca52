package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/cli/internal/flagvalue"
	"github.com/kagzi/kagzi/tui/render"
)

type exportOptions struct {
	id       string
	external bool
	file     string
	force    bool
	redact   bool
}

func newExport(e *env, o *exportOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export ID",
		Short: "Export a run with its children, steps, payloads and signals to a file",
		Long: `Export a run with its children, steps, attempts, payloads and signals to a capsule: one zip file
whose manifest.json lists the contents. A capsule can be imported into any server, and replayed
under a debugger with kagzi.ReplayCapsule of the SDK. Without --file it goes to stdout, unless
stdout is a terminal.`,
		Example: `  kagzi workflow export 01936b2e-… --file order-17.zip
  kagzi workflow export --external order-17 --redact > order-17.zip`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.completeOne(completeRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.id = args[0]
			if err := o.check(e.streams(cmd).outTTY); err != nil {
				return err
			}
			return e.run(cmd, func(ctx context.Context, c *client) error { return runExport(ctx, c, o) })
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.file, "file", "f", "-", "file to write; - is stdout")
	fs.BoolVar(&o.force, "force", false, "overwrite the file")
	fs.BoolVar(&o.redact, "redact", false, "replace payloads by their sizes and hashes")
	fs.BoolVar(&o.external, "external", false, "ID is an external id; use its newest run")
	return cmd
}

// fileExistsError reports that the output file exists.
type fileExistsError struct{ path string }

func (e *fileExistsError) Error() string {
	return e.path + " already exists; overwrite it with --force"
}
func (*fileExistsError) ExitCode() int { return ExitConflict }

func (o *exportOptions) check(outTTY bool) error {
	if o.file == "-" {
		if outTTY {
			return &usageError{err: errors.New("a capsule is a zip file and cannot be printed to a terminal"),
				hint: []string{"write it to a file: --file run.zip"}}
		}
		return nil
	}
	if _, err := os.Lstat(o.file); err == nil && !o.force {
		return &fileExistsError{o.file}
	}
	return nil
}

func runExport(ctx context.Context, c *client, o *exportOptions) error {
	runID, err := c.runID(ctx, o.id, o.external)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.ExportWorkflow(ctx, &kagziv1.ExportWorkflowRequest{
		Namespace: c.namespace, RunId: runID, RedactPayloads: o.redact})
	if err != nil {
		return c.externalHint(err)
	}
	if o.file == "-" {
		size, err := copyCapsule(c.out.out, stream)
		if err == nil {
			c.out.say("wrote %s", render.Bytes(size))
		}
		return c.externalHint(err)
	}
	size, err := writeFile(o.file, o.force, func(w io.Writer) (int64, error) { return copyCapsule(w, stream) })
	if err != nil {
		return c.externalHint(err)
	}
	return c.out.print(result{
		human: func() []string { return []string{render.Safe(o.file) + "  " + render.Bytes(size)} },
		document: render.Object{{Name: "run_id", Value: runID}, {Name: "file", Value: o.file},
			{Name: "bytes", Value: size}},
	})
}

func copyCapsule(w io.Writer, stream interface {
	Recv() (*kagziv1.Capsule, error)
}) (int64, error) {
	var size int64
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if size == 0 {
				return 0, errors.New("the server sent an empty capsule")
			}
			return size, nil
		}
		if err != nil {
			return size, err
		}
		n, err := w.Write(part.GetData())
		size += int64(n)
		if err != nil {
			return size, err
		}
	}
}

// writeFile creates a file readable by its owner only, whole or not at all: it writes a temporary
// file next to it and renames it. An existing file stays unless force is set.
func writeFile(path string, force bool, fill func(io.Writer) (int64, error)) (size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".part-*")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.Remove(f.Name()) }() // already renamed if all went well
	size, err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	switch {
	case err != nil:
		return 0, err
	case force:
		return size, os.Rename(f.Name(), path)
	}
	place, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // claims the name, or finds it taken
	if errors.Is(err, os.ErrExist) {
		return 0, &fileExistsError{path}
	}
	if err != nil {
		return 0, err
	}
	if err := place.Close(); err != nil {
		return 0, err
	}
	return size, os.Rename(f.Name(), path)
}

type importOptions struct {
	file      string
	requestID string
}

func newImport(e *env, o *importOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Import a run from a file written by export, under a new id",
		Long: `Import a run with its children from a capsule, the zip file that export writes. They get new ids;
the run's new id is printed. "-" reads stdin.

Open runs are imported paused; start them with kagzi workflow resume. Runs keep their external ids
but do not reserve them: a start with the same external id does not find them. Ended runs are kept
as long as if they had ended at the import.`,
		Example: "  kagzi workflow import order-17.zip --namespace staging",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.file = args[0]
			file := io.NopCloser(e.streams(cmd).in)
			if o.file != "-" {
				f, err := os.Open(o.file)
				if err != nil {
					return &usageError{err: err}
				}
				file = f
			}
			defer func() { _ = file.Close() }() // only read from
			return e.run(cmd, func(ctx context.Context, c *client) error { return runImport(ctx, c, o, file) })
		},
	}
	cmd.Flags().StringVar(&o.requestID, "request-id", "",
		"idempotency key of this import, to repeat it safely (default: a new one)")
	return cmd
}

// capsuleChunk is the number of capsule bytes in one message.
const capsuleChunk = 256 << 10

func runImport(ctx context.Context, c *client, o *importOptions, file io.Reader) error {
	if o.requestID == "" {
		o.requestID = c.newID()
	}
	ctx, cancel := context.WithCancel(ctx) // cancels the stream, so that a file read only partly is not taken as whole
	defer cancel()
	buffered := bufio.NewReader(file)
	if head, _ := buffered.Peek(2); string(head) == "\xff\xfe" || string(head) == "\xfe\xff" {
		return usagef("%s is UTF-16 text, not a capsule: PowerShell's > rewrites what a program prints; "+
			"export it again with: kagzi workflow export ID --file FILE.zip", o.file)
	}
	answer, err := sendCapsule(ctx, c, o, buffered)
	if detailOf(status.Convert(err)).GetMetadata()["field"] == "data" {
		return &callError{err: err, hint: "give a complete file written by kagzi workflow export: " + o.file}
	}
	if err != nil {
		return hintedUncertain(err, "to repeat it without a second run add: --request-id "+o.requestID)
	}
	if answer.GetAlreadyImported() {
		c.out.say("this request id was already used; nothing was imported")
	}
	return c.out.print(result{
		human: func() []string {
			return []string{fmt.Sprintf("%s  %s", render.Safe(answer.GetRunId()),
				flagvalue.Counted(int64(answer.GetRuns()), "run"))}
		},
		document: render.Document(answer),
	})
}

func sendCapsule(ctx context.Context, c *client, o *importOptions,
	file io.Reader) (*kagziv1.ImportWorkflowResponse, error) {
	stream, err := c.ImportWorkflow(ctx)
	if err != nil {
		return nil, err
	}
	part := &kagziv1.Capsule{Namespace: c.namespace, RequestId: o.requestID}
	buffer := make([]byte, capsuleChunk)
	for {
		n, err := io.ReadFull(file, buffer)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		switch {
		case err != nil && !last:
			return nil, fmt.Errorf("%s: %w", o.file, err)
		case n == 0 && part.GetRequestId() != "":
			return nil, usagef("%s is empty", o.file)
		}
		part.Data, err = buffer[:n], nil
		if n > 0 {
			err = stream.Send(part)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if last || err != nil { // the server ended the stream; its answer says why
			return stream.CloseAndRecv()
		}
		part = &kagziv1.Capsule{}
	}
}
