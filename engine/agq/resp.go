package agq

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Limits of one command, in bytes and arguments.
const (
	maxStranger = 64 << 10 // bytes before the connection has shown a key
	maxCommand  = 1 << 20  // bytes afterwards
	maxArgs     = 1024
	maxLine     = 64 << 10 // bytes of an inline command, and of a line that tells a length
	maxOutput   = 8 << 20  // bytes of an output that are kept while it is read; the rest is skipped
	maxBulk     = 512 << 20
)

// commandTime is how long the rest of a command may take once its first byte is here. A long output
// gets it again for each part.
const commandTime = time.Minute

// protocolError is a reason to close a connection: what came is not the protocol, or exceeds a limit.
type protocolError struct{ text string }

func (e *protocolError) Error() string { return e.text }

func badProtocol(format string, args ...any) error {
	return &protocolError{"Protocol error: " + fmt.Sprintf(format, args...)}
}

// reader reads commands of RESP2 and RESP3, and inline commands.
type reader struct {
	r     *bufio.Reader
	limit int // bytes of one command
	// extend is called before each part of a command, and with false when the command is complete
	extend func(more bool)
}

// newReader returns a reader of commands. extend may be nil.
func newReader(from io.Reader, extend func(bool)) *reader {
	if extend == nil {
		extend = func(bool) {}
	}
	return &reader{r: bufio.NewReaderSize(from, 4<<10), limit: maxStranger, extend: extend}
}

// next returns the arguments of the next command, at least one. A protocolError says
// that what came is no command; then nothing more can be read.
func (d *reader) next() ([][]byte, error) {
	for {
		first, err := d.r.Peek(1)
		if err != nil {
			return nil, err
		}
		d.extend(true)
		var args [][]byte
		if first[0] == '*' {
			args, err = d.array()
		} else {
			args, err = d.inline()
		}
		d.extend(false)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if len(args) > 0 { // an empty command is skipped, as Redis does
			return args, nil
		}
	}
}

// array reads a command in the form of an array of bulk strings.
func (d *reader) array() ([][]byte, error) {
	n, err := d.length('*', maxArgs, "arguments")
	if err != nil || n <= 0 {
		return nil, err
	}
	args, size := make([][]byte, 0, min(n, 16)), 0
	for range n {
		length, err := d.length('$', maxBulk, "bytes in an argument")
		if err != nil {
			return nil, err
		}
		if length < 0 {
			return nil, badProtocol("an argument cannot be null")
		}
		keep := length
		if isOutput(args) {
			keep = min(length, maxOutput)
		} else if size += length; size > d.limit {
			return nil, badProtocol("a command has more than %d bytes", d.limit)
		}
		arg, err := d.bulk(length, keep)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	return args, nil
}

// isOutput says whether the next argument is the output of a job, which is never refused: a worker that
// cannot report its output never reports the job.
func isOutput(args [][]byte) bool {
	if len(args) != 2 || !bytes.EqualFold(args[0], []byte("SET")) {
		return false
	}
	key := args[1]
	return bytes.HasPrefix(key, []byte("job:")) &&
		(bytes.HasSuffix(key, []byte(":stdout")) || bytes.HasSuffix(key, []byte(":stderr")))
}

// length reads a line with a mark and a number, which may be -1.
func (d *reader) length(mark byte, most int, of string) (int, error) {
	line, err := d.line()
	if err != nil {
		return 0, err
	}
	if len(line) == 0 || line[0] != mark {
		return 0, badProtocol("expected '%c', got %q", mark, cut(line, 16))
	}
	n, err := strconv.Atoi(string(line[1:]))
	if err != nil || n < -1 || line[1] == '+' {
		return 0, badProtocol("%q is no length", cut(line[1:], 16))
	}
	if n > most {
		return 0, badProtocol("%d %s, at most %d are allowed", n, of, most)
	}
	return n, nil
}

// line reads a line without its end.
func (d *reader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := d.r.ReadSlice('\n')
		if line = append(line, part...); len(line) > min(maxLine, d.limit) {
			return nil, badProtocol("a line has more than %d bytes", min(maxLine, d.limit))
		}
		if err == nil {
			return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// portion is how much of an argument is read at a time, so that a length without its bytes takes no
// memory.
const portion = 64 << 10

// bulk reads an argument and the end of its line, and keeps its first bytes.
func (d *reader) bulk(length, keep int) ([]byte, error) {
	arg := make([]byte, 0, min(keep, portion))
	for len(arg) < keep {
		had := len(arg)
		arg = append(arg, make([]byte, min(keep-had, portion))...)
		if _, err := io.ReadFull(d.r, arg[had:]); err != nil {
			return nil, err
		}
		d.extend(true)
	}
	for left := length - keep; left > 0; {
		n, err := d.r.Discard(min(left, portion))
		if err != nil {
			return nil, err
		}
		left -= n
		d.extend(true)
	}
	var end [2]byte
	if _, err := io.ReadFull(d.r, end[:]); err != nil {
		return nil, err
	}
	if end != [2]byte{'\r', '\n'} {
		return nil, badProtocol("an argument is longer than its length")
	}
	return arg, nil
}

// inline reads a command as people type it: words, which may be in quotes.
func (d *reader) inline() ([][]byte, error) {
	line, err := d.line()
	if err != nil {
		return nil, err
	}
	args, err := words(line)
	if err == nil && len(args) > maxArgs {
		err = badProtocol("%d arguments, at most %d are allowed", len(args), maxArgs)
	}
	return args, err
}

// words splits a line at spaces. In double quotes a backslash escapes a character, \n, \r and \t stand
// for theirs; in single quotes only \' is special.
func words(line []byte) ([][]byte, error) {
	var args [][]byte
	for i := 0; i < len(line); {
		if isSpace(line[i]) {
			i++
			continue
		}
		word, next, err := word(line, i)
		if err != nil {
			return nil, err
		}
		args, i = append(args, word), next
	}
	return args, nil
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' }

// word returns the word that begins at i, and where it ends.
func word(line []byte, i int) ([]byte, int, error) {
	out, quote := []byte{}, byte(0)
	for ; i < len(line); i++ {
		b := line[i]
		switch {
		case quote == 0 && isSpace(b):
			return out, i, nil
		case quote == 0 && (b == '"' || b == '\''):
			quote = b
		case quote != 0 && b == quote:
			if i+1 < len(line) && !isSpace(line[i+1]) {
				return nil, 0, badProtocol("unbalanced quotes")
			}
			return out, i + 1, nil
		case b == '\\' && i+1 < len(line) && (quote == '"' || quote == '\'' && line[i+1] == '\''):
			i++
			out = append(out, unescaped(line[i]))
		case b < ' ' || b == 0x7f:
			return nil, 0, badProtocol("an inline command holds the control character %q", b)
		default:
			out = append(out, b)
		}
	}
	if quote != 0 {
		return nil, 0, badProtocol("unbalanced quotes")
	}
	return out, i, nil
}

func unescaped(b byte) byte {
	switch b {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return b
}

// cut returns at most n bytes of text, for messages.
func cut[T ~string | ~[]byte](text T, n int) string {
	if len(text) > n {
		return string(text[:n]) + "…"
	}
	return string(text)
}
