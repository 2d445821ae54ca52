package agq

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// read returns all commands of a text, each as one line, and how reading ended.
func read(text string, limit int) (commands []string, err error) {
	// one byte at a time, so that every boundary is met
	d := newReader(iotest.OneByteReader(strings.NewReader(text)), nil)
	d.limit = limit
	for {
		args, err := d.next()
		if err != nil {
			return commands, err
		}
		parts := make([]string, len(args))
		for i, a := range args {
			parts[i] = string(a)
		}
		commands = append(commands, strings.Join(parts, "|"))
	}
}

func TestCommandsAreRead(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"an array":                  {"*2\r\n$4\r\nPING\r\n$2\r\nw1\r\n", "PING|w1"},
		"two at once":               {"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n", "PING QUIT"},
		"an empty argument":         {"*2\r\n$3\r\nSET\r\n$0\r\n\r\n", "SET|"},
		"bytes that look like ends": {"*1\r\n$6\r\na\r\nb\r\n\r\n", "a\r\nb\r\n"},
		"an inline command":         {"ping w1\r\n", "ping|w1"},
		"a line feed alone":         {"ping\n", "ping"},
		"quotes":                    {`set "a b" 'c"d' "\n\"" 'x\'y'` + "\r\n", "set|a b|c\"d|\n\"|x'y"},
		"an empty array":            {"*0\r\n*1\r\n$4\r\nPING\r\n", "PING"},
		"an empty line":             {"\r\n  \r\nping\r\n", "ping"},
		"a null array":              {"*-1\r\nping\r\n", "ping"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(c.text, maxCommand)
			if strings.Join(got, " ") != c.want || !errors.Is(err, io.EOF) {
				t.Errorf("%q is read as %q and then %v, want %q", c.text, got, err, c.want)
			}
		})
	}
}

func TestGarbageIsRefusedWithAReason(t *testing.T) {
	for text, want := range map[string]string{
		"*1\r\n+4\r\n":                      "expected '$', got \"+4\"",
		"*1\r\n$x\r\n":                      `"x" is no length`,
		"*1\r\n$+4\r\n":                     `"+4" is no length`,
		"*1\r\n$-2\r\n":                     `"-2" is no length`,
		"*1\r\n$-1\r\n":                     "an argument cannot be null",
		"*1025\r\n":                         "1025 arguments, at most 1024 are allowed",
		"*99999999999999999999\r\n":         "is no length",
		"*1\r\n$3\r\nPING\r\n":              "an argument is longer than its length",
		"*1\r\n$600000000\r\n":              "600000000 bytes in an argument",
		"*2\r\n$3\r\nGET\r\n$1048576\r\n":   "a command has more than 1048576 bytes",
		"set \"a\r\n":                       "unbalanced quotes",
		"set \"a\"b\r\n":                    "unbalanced quotes",
		"\x00\x01\r\n":                      "control character",
		"*\r\n":                             "is no length",
		strings.Repeat("a", maxLine) + "bb": "a line has more than 65536 bytes",
	} {
		_, err := read(text, maxCommand)
		if bad := (*protocolError)(nil); !errors.As(err, &bad) || !strings.Contains(bad.text, want) {
			t.Errorf("%.40q is refused with %v, want a reason with %q", text, err, want)
		}
	}
}

func TestStrangersMaySayLess(t *testing.T) {
	text := fmt.Sprintf("*2\r\n$4\r\nAUTH\r\n$%d\r\n", maxStranger)
	if _, err := read(text, maxStranger); err == nil || !strings.Contains(err.Error(), "more than 65536 bytes") {
		t.Errorf("%d bytes before AUTH are refused with %v", maxStranger, err)
	}
}

func TestAnOutputIsNeverTooLong(t *testing.T) {
	long := strings.Repeat("x", maxOutput+3)
	text := fmt.Sprintf("*3\r\n$3\r\nset\r\n$12\r\njob:1:stdout\r\n$%d\r\n%s\r\n*1\r\n$4\r\nPING\r\n", len(long), long)
	d := newReader(strings.NewReader(text), nil)
	d.limit = maxCommand
	args, err := d.next()
	if err != nil || len(args) != 3 || len(args[2]) != maxOutput {
		t.Fatalf("an output of %d bytes is read as %d arguments, %v; want its first %d bytes", len(long), len(args), err,
			maxOutput)
	}
	if args, err = d.next(); err != nil || string(args[0]) != "PING" {
		t.Errorf("after it comes %q, %v, want PING", args, err)
	}
}

func TestACommandThatIsCutShortIsNoCommand(t *testing.T) {
	whole := "*2\r\n$4\r\nPING\r\n$2\r\nw1\r\n"
	for n := 1; n < len(whole); n++ {
		if got, err := read(whole[:n], maxCommand); len(got) != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q is read as %q, %v", whole[:n], got, err)
		}
	}
}

func TestAnswersHoldNoLineOfTheirUsers(t *testing.T) {
	var r reply
	r.fail("ERR a\r\n+OK\r\n")
	if got := string(r.text); got != "-ERR a  +OK  \r\n" {
		t.Errorf("an error with line breaks is written as %q", got)
	}
}

func FuzzReader(f *testing.F) {
	for _, seed := range []string{"*2\r\n$4\r\nPING\r\n$2\r\nw1\r\n", "ping 'a b'\r\n", "*3\r\n$3\r\nSET\r\n",
		"*1\r\n$-1\r\n", "*-1\r\n", "*3\r\n$3\r\nSET\r\n$12\r\njob:1:stdout\r\n$1\r\nx\r\n", "\"\\", "*1\r\n$1\r\n\xff\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		whole := newReader(bytes.NewReader(data), nil)
		parts := newReader(iotest.OneByteReader(bytes.NewReader(data)), nil)
		for {
			a, errA := whole.next()
			b, errB := parts.next()
			if (errA == nil) != (errB == nil) || !slices.EqualFunc(a, b, bytes.Equal) {
				t.Fatalf("read at once: %q, %v; byte by byte: %q, %v", a, errA, b, errB)
			}
			if errA != nil {
				return
			}
			if len(a) == 0 || len(a) > maxArgs {
				t.Fatalf("a command of %d arguments", len(a))
			}
		}
	})
}
