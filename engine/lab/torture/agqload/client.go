package agqload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// callLimit limits how long an answer may take; a pop's own time-out comes on top.
const callLimit = 3 * time.Second

// conn is a connection to an AGQ port.
type conn struct {
	raw net.Conn
	r   *bufio.Reader
}

// answer is an answer of RESP2. An error is Kind '-' with its text, nil is Null.
type answer struct {
	kind  byte
	text  string
	null  bool
	items []answer
}

func (a *answer) refused() bool { return a.kind == '-' }

func dial(address string) (*conn, error) {
	raw, err := net.DialTimeout("tcp", address, callLimit)
	if err != nil {
		return nil, err
	}
	return &conn{raw, bufio.NewReader(raw)}, nil
}

func (c *conn) close() {
	if c != nil {
		_ = c.raw.Close()
	}
}

// do sends a command and reads its answer within a time beyond callLimit.
func (c *conn) do(beyond time.Duration, args ...string) (answer, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	_ = c.raw.SetDeadline(time.Now().Add(callLimit + beyond))
	if _, err := io.WriteString(c.raw, b.String()); err != nil {
		return answer{}, err
	}
	return readAnswer(c.r)
}

// maxAnswer limits the length of a bulk string and the items of an array.
const maxAnswer = 16 << 20

func readAnswer(r *bufio.Reader) (answer, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return answer{}, err
	}
	line, whole := strings.CutSuffix(line, "\r\n")
	if !whole || line == "" {
		return answer{}, fmt.Errorf("an answer begins with %.100q", line)
	}
	a := answer{kind: line[0], text: line[1:]}
	switch a.kind {
	case '+', '-', ':':
		return a, nil
	case '$', '*':
	default:
		return answer{}, fmt.Errorf("an answer begins with %.100q", line)
	}
	n, err := strconv.Atoi(a.text)
	if err != nil || n < -1 || n > maxAnswer {
		return answer{}, errors.Join(fmt.Errorf("an answer has the length %.100q", a.text), err)
	}
	a.text, a.null = "", n < 0
	switch {
	case a.null:
	case a.kind == '$':
		text := make([]byte, n+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return answer{}, err
		}
		a.text = string(text[:n])
	default:
		for range n {
			item, err := readAnswer(r)
			if err != nil {
				return answer{}, err
			}
			a.items = append(a.items, item)
		}
	}
	return a, nil
}
