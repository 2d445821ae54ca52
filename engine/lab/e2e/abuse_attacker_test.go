package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // the program registers it through the trace exporter

	"github.com/kagzi/kagzi/engine/lab/long"
)

// attacker is a connection that speaks hand-made HTTP/2.
type attacker struct {
	net.Conn
	*http2.Framer
	t      testing.TB
	block  bytes.Buffer
	packer *hpack.Encoder
}

// attack connects as a client does.
func (s *Server) attack(t testing.TB) *attacker {
	t.Helper()
	a := s.dialRaw(t)
	a.raw([]byte(http2.ClientPreface))
	a.do(a.WriteSettings())
	return a
}

// dialRaw connects and sends nothing.
func (s *Server) dialRaw(t testing.TB) *attacker {
	t.Helper()
	conn, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(abuseWaits))
	a := &attacker{Conn: conn, Framer: http2.NewFramer(conn, conn), t: t}
	a.AllowIllegalWrites, a.ReadMetaHeaders = true, hpack.NewDecoder(4096, nil)
	a.packer = hpack.NewEncoder(&a.block)
	return a
}

func (a *attacker) raw(b []byte) bool {
	_, err := a.Conn.Write(b)
	return err == nil
}

// do reports whether the server still listens.
func (a *attacker) do(err error) bool { return err == nil }

// times repeats do until the server hangs up or stops reading or, with a pace, as long as an abuse
// may last. It repeats a tenth as often unless tests try everything.
func (a *attacker) times(n int, do func(i int) error) {
	if !long.Enabled() {
		n /= 10
	}
	if *abusePace > 0 {
		n = min(n, *abusePace*abusePaced)
	}
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for i := range n {
		if *abusePace > 0 && i%*abusePace == 0 {
			<-pace.C
		}
		if do(i) != nil {
			return
		}
	}
}

// deaf discards what the server sends.
func (a *attacker) deaf() { go io.Copy(io.Discard, a.Conn) }

// headers encodes header fields, given as pairs.
func (a *attacker) headers(pairs ...string) []byte {
	a.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		a.packer.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return slices.Clone(a.block.Bytes())
}

const health = "/kagzi.v1.AdminService/HealthCheck"

// callTo returns the header fields of a call.
func callTo(path string, more ...string) []string {
	return append([]string{":method", "POST", ":scheme", "http", ":path", path, ":authority", "x", "content-type",
		"application/grpc", "te", "trailers"}, more...)
}

// open starts a call.
func (a *attacker) open(stream uint32, fields []string) error {
	return a.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, BlockFragment: a.headers(fields...), EndHeaders: true})
}

// message frames a message of a call.
func message(compressed byte, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{compressed}, uint32(len(body))), body...)
}

// answer returns the fields with which a call ended; "reset" or "gone" if it ended without.
func (a *attacker) answer(stream uint32) map[string]string {
	a.t.Helper()
	fields := map[string]string{}
	for {
		frame, err := a.ReadFrame()
		if err != nil {
			fields["gone"] = err.Error()
			return fields
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			for _, field := range f.Fields {
				fields[field.Name] = field.Value
			}
			if f.StreamID == stream && f.StreamEnded() {
				return fields
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == stream {
				fields["reset"] = f.ErrCode.String()
				return fields
			}
		}
	}
}

// send writes the whole body of a call, in frames.
func (a *attacker) send(stream uint32, body []byte) {
	for len(body) > 16<<10 && a.do(a.WriteData(stream, false, body[:16<<10])) {
		body = body[16<<10:]
	}
	a.do(a.WriteData(stream, true, body[:min(len(body), 16<<10)]))
}

// ask makes a whole call.
func (a *attacker) ask(stream uint32, fields []string, body []byte) map[string]string {
	a.t.Helper()
	a.SetDeadline(time.Now().Add(4 * abuseWaits))
	a.do(a.open(stream, fields))
	a.send(stream, body)
	return a.answer(stream)
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

// zipped returns that many zeros, compressed.
func zipped(size int) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for range size / len(zeros) {
		w.Write(zeros)
	}
	w.Close()
	return b.Bytes()
}

func wantCode(t testing.TB, what string, got map[string]string, want ...codes.Code) {
	t.Helper()
	for _, code := range want {
		if got["grpc-status"] == fmt.Sprint(uint32(code)) {
			return
		}
	}
	if got["reset"] != "" || got["gone"] != "" && !strings.Contains(got["gone"], "timeout") {
		return // refused with a shorter message
	}
	t.Errorf("%s is answered with %v, want one of %v", what, got, want)
}
