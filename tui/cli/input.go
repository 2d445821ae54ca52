package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// maxInput limits what is read as input. It is above the server's limit, which has the better
// message.
const maxInput = 8 << 20

// inputFlags select a run's input.
type inputFlags struct {
	input string
	file  string
}

func (f *inputFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.input, "input", "", "input of the run: JSON, @FILE with JSON, or - for stdin")
	fs.StringVar(&f.file, "input-file", "", "file with the input as JSON; - for stdin")
}

// stdin reports whether the input is read from stdin.
func (f *inputFlags) stdin() bool { return f.file == "-" || f.input == "-" || f.input == "@-" }

// given reports whether the flags select an input.
func (f *inputFlags) given(changed func(string) bool) bool {
	return changed("input") || changed("input-file")
}

// read returns the selected input, checked to be JSON; nil if there is none.
func (f *inputFlags) read(changed func(string) bool, in io.Reader) (*kagziv1.Payload, error) {
	switch {
	case changed("input") && changed("input-file"):
		return nil, usagef("--input and --input-file cannot be given together")
	case changed("input-file"):
		return readPayload("--input-file", "@"+f.file, in)
	case changed("input"):
		return readPayload("--input", f.input, in)
	}
	return nil, nil
}

// readPayload returns the payload of a flag: JSON, @FILE with JSON, or - for stdin.
func readPayload(flag, value string, in io.Reader) (*kagziv1.Payload, error) {
	path, named := strings.CutPrefix(value, "@")
	if value == "-" {
		path, named = "-", true
	}
	if !named {
		return jsonPayload(flag, []byte(value))
	}
	data, err := readAll(path, in, maxInput)
	if err != nil {
		return nil, &usageError{err: fmt.Errorf("%s: %w", flag, err)}
	}
	return jsonPayload(flag, data)
}

// largePayload is the size in bytes above which a payload gets a warning, as in the SDK.
const largePayload = 256 << 10

// warnLarge warns about large payloads: each is stored and sent to workers whole.
func (o *output) warnLarge(what string, payloads ...*kagziv1.Payload) {
	var large []int64
	for _, p := range payloads {
		if n := len(p.GetData()); n > largePayload {
			large = append(large, int64(n))
		}
	}
	const advice = "is stored and sent whole to each worker that claims the run; store it elsewhere and pass a reference"
	switch len(large) {
	case 0:
	case 1:
		o.say("warning: the %s is large, %s: it %s", what, render.Bytes(large[0]), advice)
	default:
		o.say("warning: %d of the %ss are large, more than %s: each %s", len(large), what,
			render.Bytes(largePayload), advice)
	}
}

// readAll reads a file, or stdin for "-", up to a limit in bytes.
func readAll(path string, in io.Reader, limit int64) ([]byte, error) {
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // only read from
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("more than %s", render.Bytes(limit))
	}
	return render.FileText(data), err
}

func jsonPayload(source string, data []byte) (*kagziv1.Payload, error) {
	if err := checkJSON(source, data); err != nil {
		return nil, err
	}
	return &kagziv1.Payload{Data: data, Metadata: map[string]string{"content-type": "application/json"}}, nil
}

// checkJSON reports where data is not JSON, with a caret under the place.
func checkJSON(source string, data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return usagef("%s is empty; give JSON, such as null or {}", source)
	}
	offset := len(data)
	var reason string
	switch {
	case !utf8.Valid(data):
		reason = "not UTF-8 text"
		offset = validPrefix(data)
	default:
		var value json.RawMessage
		err := json.Unmarshal(data, &value)
		if err == nil {
			return nil
		}
		reason = strings.TrimPrefix(err.Error(), "json: ")
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			offset = min(max(int(syntax.Offset)-1, 0), len(data))
			if strings.Contains(reason, "unexpected end") {
				offset = len(data)
			}
		}
	}
	line, column, text := place(data, offset)
	usage := usagef("%s is not valid JSON at line %d, column %d: %s", source, line,
		utf8.RuneCountInString(text[:column])+1, reason)
	before, after := render.Safe(text[:column]), render.Safe(text[column:])
	if render.Width(before+after) <= 120 {
		usage.hint = []string{before + after, strings.Repeat(" ", render.Width(before)) + "^"}
	}
	return usage
}

// validPrefix returns how many bytes at the start are UTF-8.
func validPrefix(data []byte) int {
	n := 0
	for n < len(data) {
		r, size := utf8.DecodeRune(data[n:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		n += size
	}
	return n
}

// place finds the line at an offset: its number from 1, the byte offset in it, and its text.
func place(data []byte, offset int) (line, column int, text string) {
	begin := bytes.LastIndexByte(data[:offset], '\n') + 1
	end := len(data)
	if n := bytes.IndexByte(data[offset:], '\n'); n >= 0 {
		end = offset + n
	}
	return bytes.Count(data[:offset], []byte("\n")) + 1, offset - begin, string(data[begin:end])
}

// askable returns an error where no terminal can answer a question. hint says what to do instead.
func (o *output) askable(hint string) error {
	if o.inTTY {
		return nil
	}
	return &usageError{err: errors.New("confirmation needs a terminal"), hint: []string{hint}}
}

// ask asks a yes-or-no question; anything but yes is an error that ends the command.
func (o *output) ask(ctx context.Context, question string) error {
	_, _ = fmt.Fprint(o.err, render.Safe(question+" [y/N] ")) // if it cannot be shown, nobody answers
	answer, err := bufio.NewReader(o.in).ReadString('\n')
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	} // any other end of input means no
	if reply := strings.ToLower(strings.TrimSpace(answer)); reply != "y" && reply != "yes" {
		o.say("aborted; nothing changed")
		return codeError(ExitError)
	}
	return nil
}
