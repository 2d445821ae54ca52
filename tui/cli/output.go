package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/kagzi/kagzi/tui/render"
)

// streams are the input and output of a command, and what is known about them.
type streams struct {
	in       io.Reader
	out, err io.Writer
	inTTY    bool
	outTTY   bool
	errTTY   bool
	width    int // width of the terminal behind out; 0 if it is none
}

func streamsOf(cmd *cobra.Command) streams {
	s := streams{in: interruptible{cmd.Context(), cmd.InOrStdin()}, out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
	if f, ok := cmd.InOrStdin().(interface{ Fd() uintptr }); ok {
		s.inTTY = term.IsTerminal(int(f.Fd()))
	}
	if f, ok := s.out.(interface{ Fd() uintptr }); ok && term.IsTerminal(int(f.Fd())) {
		s.outTTY = true
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			s.width = width
		}
	}
	if f, ok := s.err.(interface{ Fd() uintptr }); ok {
		s.errTTY = term.IsTerminal(int(f.Fd()))
	}
	return s
}

// interruptible is input whose reads end with ctx. A read from a terminal cannot be cancelled
// otherwise.
type interruptible struct {
	ctx context.Context
	in  io.Reader
}

func (r interruptible) Read(p []byte) (int, error) {
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() { // if ctx ends first it stays behind with its own buffer: a blocked read of stdin cannot be stopped
		buffer := make([]byte, len(p))
		n, err := r.in.Read(buffer)
		done <- read{buffer[:n], err}
	}()
	select {
	case got := <-done:
		return copy(p, got.data), got.err
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}

// output writes the results of a command.
type output struct {
	streams
	format string // table, json, jsonl or yaml
	iso    bool
	colour bool
}

func newOutput(s streams, f *ClientFlags, lookup func(string) (string, bool)) *output {
	noColor, _ := lookup("NO_COLOR")
	terminal, _ := lookup("TERM")
	return &output{
		streams: s, format: f.Output, iso: f.Time == "iso",
		colour: s.outTTY && !f.NoColor && noColor == "" && terminal != "dumb",
	}
}

// result is something to print, for people and for programs.
type result struct {
	human    func() []string // safe lines
	document any             // for json and yaml: one document
	items    []any           // for jsonl: one object per line; nil means the document itself
}

// print writes a result in the requested format.
func (o *output) print(r result) error {
	switch o.format {
	case "json":
		return o.json(r.document, "  ")
	case "yaml":
		return o.yaml(r.document)
	case "jsonl":
		if r.items == nil {
			return o.json(r.document, "")
		}
		for _, item := range r.items {
			if err := o.json(item, ""); err != nil {
				return err
			}
		}
		return nil
	}
	return o.lines(r.human())
}

func (o *output) json(document any, indent string) error {
	b, err := render.JSON(document, indent)
	if err != nil {
		return err
	}
	_, err = o.out.Write(append(b, '\n'))
	return err
}

func (o *output) yaml(document any) error {
	b, err := render.YAML(document)
	if err != nil {
		return err
	}
	_, err = o.out.Write(b)
	return err
}

func (o *output) lines(lines []string) error {
	var b bytes.Buffer
	for _, line := range lines {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	_, err := o.out.Write(b.Bytes())
	return err
}

// table lays out a table for the width of the output.
func (o *output) table(t render.Table) []string {
	return t.Lines(render.Layout{Width: o.width, Colour: o.colour})
}

// paint colours safe text if colours are on.
func (o *output) paint(text string, style render.Style) string {
	if !o.colour {
		return text
	}
	return render.Paint(text, style)
}

// say writes a message to stderr and escapes what it quotes.
func (o *output) say(format string, args ...any) {
	// a message that cannot be shown is no reason to fail
	_, _ = fmt.Fprintln(o.err, render.Safe(fmt.Sprintf(format, args...)))
}

// sequence prints results as they come. Together they are one valid document: an array in json, a
// list in yaml. Close ends it.
type sequence struct {
	out   *output
	count int
}

func (s *sequence) add(line string, document any) error {
	s.count++
	switch s.out.format {
	case "json":
		b, err := render.JSON(document, "  ")
		if err != nil {
			return err
		}
		head := ",\n  "
		if s.count == 1 {
			head = "[\n  "
		}
		_, err = io.WriteString(s.out.out, head+string(bytes.ReplaceAll(b, []byte("\n"), []byte("\n  "))))
		return err
	case "jsonl":
		return s.out.json(document, "")
	case "yaml":
		return s.out.yaml([]any{document})
	}
	return s.out.lines([]string{line})
}

func (s *sequence) close() error {
	end := ""
	switch {
	case s.out.format == "json" && s.count > 0:
		end = "\n]\n"
	case s.count == 0 && (s.out.format == "json" || s.out.format == "yaml"):
		end = "[]\n"
	}
	_, err := io.WriteString(s.out.out, end)
	return err
}
