package cli

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/kagzi/kagzi/sdk/profile"
	"github.com/kagzi/kagzi/tui/render"
)

// agqAddress is the flag for the address of the AGQ port.
type agqAddress struct{ address string }

// agqConn is a connection to the AGQ port, which speaks RESP2.
type agqConn struct {
	raw net.Conn
	r   *bufio.Reader
}

// dialAGQ connects to the AGQ port and shows the key.
func (e *env) dialAGQ(ctx context.Context, c *client, at *agqAddress) (*agqConn, error) {
	address := at.address
	settings, err := c.settings(ctx)
	if err != nil && address == "" {
		return nil, err
	}
	if address == "" {
		if address, err = agqAt(settings["agq"], c.address); err != nil {
			return nil, err
		}
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usagef("--agq-address %q: want host:port such as 127.0.0.1:6380", address)
	}
	key, err := e.flags.Key()
	if err != nil {
		return nil, &usageError{err: err}
	}
	local := isLoopbackHost(host)
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the AGQ port: %w", err)
	}
	switch {
	case !local && e.flags.Encrypted():
		config, err := e.flags.TLSConfig()
		if err != nil {
			_ = raw.Close()
			return nil, &usageError{err: err}
		}
		if config = config.Clone(); config.ServerName == "" {
			config.ServerName = host
		}
		raw = tls.Client(raw, config)
	case !local && key != "":
		_ = raw.Close()
		return nil, inTheClear(address)
	}
	if until, has := ctx.Deadline(); has {
		_ = raw.SetDeadline(until)
	}
	r := &agqConn{raw: raw, r: bufio.NewReader(raw)}
	context.AfterFunc(ctx, r.close)
	if key != "" {
		if _, err := r.do("AUTH", string(key)); err != nil {
			r.close()
			return nil, err
		}
	}
	return r, nil
}

func isLoopbackHost(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// agqAt returns the address of the AGQ port as this machine can reach it.
func agqAt(listens, reached string) (string, error) {
	host, port, err := net.SplitHostPort(listens)
	if err != nil {
		return "", errNoAGQ // off, or the server does not say where
	}
	if address, err := netip.ParseAddr(host); host == "" || err == nil && address.IsUnspecified() {
		if host, _, err = net.SplitHostPort(profile.Addresses(reached)[0]); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(host, port), nil
}

func (r *agqConn) close() { _ = r.raw.Close() }

// text returns the answer of a command that has one text.
func (r *agqConn) text(args ...string) (string, error) {
	texts, err := r.do(args...)
	if err == nil && len(texts) != 1 {
		err = fmt.Errorf("%s was answered with %d texts", args[0], len(texts))
	}
	if err != nil {
		return "", err
	}
	return texts[0], nil
}

// do sends a command and returns the texts of its answer.
func (r *agqConn) do(args ...string) ([]string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	_, err := io.WriteString(r.raw, b.String())
	var texts []string
	if err == nil {
		texts, err = r.answer(true)
	}
	var refused agqError
	if err != nil && !errors.As(err, &refused) {
		return nil, fmt.Errorf("%s on the AGQ port: %w", args[0], err)
	}
	return texts, err
}

// agqError is an error that the server answered with.
type agqError string

func (e agqError) Error() string { return render.Safe(strings.TrimPrefix(string(e), "ERR ")) }

// maxAGQItems limits an answer, whose length is not to be trusted.
const maxAGQItems = 100_000

// answer reads an answer. With whole, it may be an array of texts.
func (r *agqConn) answer(whole bool) ([]string, error) {
	line, err := r.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return nil, errNotRESP
	}
	mark, rest := line[0], line[1:]
	n, bad := strconv.Atoi(rest)
	switch {
	case mark == '+' || mark == ':':
		return []string{rest}, nil
	case mark == '-':
		return nil, agqError(rest)
	case bad != nil || n > maxInput:
	case mark == '$':
		if n < 0 {
			return nil, nil
		}
		text := make([]byte, n+2)
		_, err := io.ReadFull(r.r, text)
		return []string{string(text[:n])}, err
	case mark == '*' && whole && n <= maxAGQItems:
		var all []string
		for range n {
			one, err := r.answer(false)
			if err != nil {
				return nil, err
			}
			all = append(all, one...)
		}
		return all, nil
	}
	return nil, errNotRESP
}

var errNotRESP = errors.New("the answer is not RESP; is it the AGQ port?")
