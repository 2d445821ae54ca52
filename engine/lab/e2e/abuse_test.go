package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine/lab/long"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Anyone who reaches the port can send anything to it. Each abuse runs until it is over or the
// server hangs up. Meanwhile other clients must be served, and the memory that the server keeps
// must be bounded.

const (
	abuseKeeps = 64 << 20        // bytes
	abuseWaits = 5 * time.Second // for any answer, on a busy machine
)

var abuseHalves = flag.Int("abuse.halves", 300,
	"open this many silent or half-open connections at once; each takes two files")

var abusePace = flag.Int("abuse.pace", 0, "repeat an abuse this often a millisecond (default: as fast as possible)")

// abusePaced limits, in milliseconds, how long an abuse with a pace lasts.
const abusePaced = 2000

var abuses = []struct {
	name string
	do   func(s *Server, a *attacker)
}{
	{"calls that are reset at once", func(_ *Server, a *attacker) {
		a.deaf()
		a.times(10_000, func(i int) error {
			stream := uint32(2*i + 1)
			if err := a.open(stream, callTo("/kagzi.v1.WorkflowService/WaitWorkflow")); err != nil {
				return err
			}
			return a.WriteRSTStream(stream, http2.ErrCodeCancel)
		})
	}},
	{"calls reset within a message, one after another", func(_ *Server, a *attacker) {
		a.deaf()
		half := message(0, make([]byte, 4<<20))[:8<<10]
		a.times(2_000, func(i int) error {
			stream := uint32(2*i + 1)
			a.open(stream, callTo(health))
			a.WriteData(stream, false, half)
			return a.WriteRSTStream(stream, http2.ErrCodeCancel)
		})
	}},
	{"a header block that never ends", func(_ *Server, a *attacker) {
		a.deaf()
		a.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: a.headers(callTo(health)...)})
		more := a.headers("x-more", strings.Repeat("more", 3000))
		a.times(5_000, func(int) error { return a.WriteContinuation(1, false, more) })
	}},
	{"empty continuations of a header block", func(_ *Server, a *attacker) {
		a.deaf()
		a.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: a.headers(callTo(health)...)})
		a.times(100_000, func(int) error { return a.WriteContinuation(1, false, nil) })
	}},
	{"a small header block that expands a lot", func(_ *Server, a *attacker) {
		a.deaf()
		large := []string{"x-large", strings.Repeat("x", 3900)}
		a.open(1, callTo(health, large...))
		bomb := callTo(health)
		for range 15_000 { // each is one byte of the block
			bomb = append(bomb, large...)
		}
		a.times(20, func(i int) error { return a.open(uint32(2*i+3), bomb) })
	}},
	{"100,000 header fields", func(_ *Server, a *attacker) {
		a.deaf()
		fields := callTo(health)
		for i := range 100_000 {
			fields = append(fields, fmt.Sprint("x-", i), "")
		}
		block := a.headers(fields...)
		a.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:16<<10]})
		for block = block[16<<10:]; len(block) > 16<<10; block = block[16<<10:] {
			a.WriteContinuation(1, false, block[:16<<10])
		}
		a.WriteContinuation(1, true, block)
	}},
	{"endless settings whose answers are not read", func(_ *Server, a *attacker) {
		a.times(100_000, func(int) error { return a.WriteSettings() })
	}},
	{"endless pings whose answers are not read", func(_ *Server, a *attacker) {
		a.times(100_000, func(int) error { return a.WritePing(false, [8]byte{}) })
	}},
	{"priorities and unknown frames", func(_ *Server, a *attacker) {
		a.deaf()
		a.times(50_000, func(i int) error {
			a.WriteRawFrame(http2.FrameType(0xbe), 0, 0, []byte("what"))
			return a.WritePriority(uint32(2*i+1), http2.PriorityParam{Weight: 1})
		})
	}},
	{"data without content", func(_ *Server, a *attacker) {
		a.deaf()
		a.open(1, callTo(health))
		a.times(100_000, func(int) error { return a.WriteData(1, false, nil) })
	}},
	{"padding instead of content", func(_ *Server, a *attacker) {
		a.deaf()
		a.open(1, callTo(health))
		pad := make([]byte, 255)
		a.times(50_000, func(int) error { return a.WriteDataPadded(1, false, nil, pad) })
	}},
	{"more data than the flow control allows", func(_ *Server, a *attacker) {
		a.deaf()
		a.open(1, callTo("/kagzi.v1.WorkerService/Session"))
		chunk := make([]byte, 16<<10)
		a.times(8_000, func(int) error { return a.WriteData(1, false, chunk) })
	}},
	{"a window that is too large", func(_ *Server, a *attacker) {
		a.deaf()
		a.open(1, callTo(health))
		a.times(1_000, func(int) error {
			a.WriteWindowUpdate(0, 1<<31-1)
			return a.WriteWindowUpdate(1, 1<<31-1)
		})
	}},
	{"answers that are not read", func(_ *Server, a *attacker) {
		a.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		a.times(3_000, func(i int) error {
			stream := uint32(2*i + 1)
			if err := a.open(stream, callTo("/kagzi.v1.WorkflowService/ListWorkflows")); err != nil {
				return err
			}
			return a.WriteData(stream, true, message(0, nil))
		})
	}},
	{"a window that comes and goes", func(_ *Server, a *attacker) {
		a.deaf()
		a.open(1, callTo("/kagzi.v1.AdminService/Watch"))
		a.WriteData(1, true, message(0, nil))
		a.times(50_000, func(i int) error {
			return a.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(i % 2 * 65_535)})
		})
	}},
	{"connections that send nothing or half a handshake", func(s *Server, a *attacker) {
		for i := range *abuseHalves {
			half := s.dialRaw(a.t)
			half.raw([]byte(http2.ClientPreface)[:i%len(http2.ClientPreface)])
		}
	}},
	{"bytes that are not HTTP/2", func(s *Server, a *attacker) {
		for _, words := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
			"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x5a", 508), strings.Repeat("\x00", 1<<20),
			strings.Repeat("\xff", 1<<20)} {
			other := s.dialRaw(a.t)
			other.raw([]byte(words))
			if _, err := io.Copy(io.Discard, other.Conn); isTimeout(err) {
				a.t.Errorf("%.10q is still listened to", words)
			}
		}
	}},
	{"frames where they may not be", func(s *Server, a *attacker) {
		waiting := map[string]*attacker{}
		for name, wrong := range map[string]func(a *attacker){
			"data of the connection":    func(a *attacker) { a.WriteData(0, false, []byte("x")) },
			"headers of the connection": func(a *attacker) { a.open(0, callTo(health)) },
			"settings of a stream":      func(a *attacker) { a.WriteRawFrame(http2.FrameSettings, 0, 1, nil) },
			"settings of 5 bytes": func(a *attacker) {
				a.WriteRawFrame(http2.FrameSettings, 0, 0, make([]byte, 5))
			},
			"a ping of 3 bytes":         func(a *attacker) { a.WriteRawFrame(http2.FramePing, 0, 0, make([]byte, 3)) },
			"a stream of the server":    func(a *attacker) { a.open(2, callTo(health)) },
			"a stream that was before":  func(a *attacker) { a.open(5, callTo(health)); a.open(3, callTo(health)) },
			"a continuation of nothing": func(a *attacker) { a.WriteContinuation(1, true, a.headers("a", "b")) },
			"more padding than frame": func(a *attacker) {
				a.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, 1, []byte{200, 1})
			},
			"a frame of 16 MiB": func(a *attacker) {
				a.raw([]byte{0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1})
				a.raw(make([]byte, 1<<20))
			},
			"a header block that is noise": func(a *attacker) {
				a.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, bytes.Repeat([]byte{0xff}, 4096))
			},
		} {
			other := s.attack(a.t)
			wrong(other)
			other.WritePing(false, [8]byte{1})
			waiting[name] = other
		}
		for name, other := range waiting {
			for {
				frame, err := other.ReadFrame()
				if isTimeout(err) {
					a.t.Errorf("%s is answered with nothing", name)
				}
				if ping, ok := frame.(*http2.PingFrame); err != nil || ok && ping.IsAck() {
					break // hung up, or continued
				}
			}
		}
	}},
	{"a push, a GOAWAY, and more calls after it", func(_ *Server, a *attacker) {
		a.deaf()
		a.WriteGoAway(0, http2.ErrCodeNo, []byte(strings.Repeat("bye", 1000)))
		a.times(100, func(i int) error { return a.open(uint32(2*i+1), callTo(health)) })
		a.WriteRawFrame(http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, 1, []byte{0, 0, 0, 2})
	}},
	{"messages that expand a thousandfold", func(_ *Server, a *attacker) {
		for i, size := range []int{16 << 20, 32 << 20} {
			got := a.ask(uint32(2*i+1), callTo("/kagzi.v1.WorkflowService/StartWorkflow", "grpc-encoding", "gzip"),
				message(1, zipped(size)))
			wantCode(a.t, fmt.Sprint(size, " bytes, packed"), got, codes.ResourceExhausted)
		}
	}},
	{"malformed messages", func(_ *Server, a *attacker) {
		for i, wrong := range []struct {
			what string
			body []byte
			more []string
			want []codes.Code
		}{
			{"a message of 4 GiB", []byte{0, 0xff, 0xff, 0xff, 0xff, 1, 2}, nil, []codes.Code{codes.ResourceExhausted}},
			{"a message that is packed in no way", message(1, []byte("x")), nil,
				[]codes.Code{codes.Internal, codes.Unimplemented}},
			{"a message with an unknown compression", message(1, []byte("x")),
				[]string{"grpc-encoding", "rot13"}, []codes.Code{codes.Unimplemented}},
			{"a message that is no gzip", message(1, []byte("x")), []string{"grpc-encoding", "gzip"},
				[]codes.Code{codes.Internal}},
			{"half a message", message(0, make([]byte, 100))[:50], nil, []codes.Code{codes.Internal}},
			{"no message", nil, nil, []codes.Code{codes.Internal}},
			{"two messages", append(message(0, nil), message(0, nil)...), nil, []codes.Code{codes.OK, codes.Internal}},
			{"a compression that is no number", message(9, nil), nil,
				[]codes.Code{codes.Internal, codes.Unimplemented}},
			{"a time limit that is none", message(0, nil), []string{"grpc-timeout", "99999999999999H"},
				[]codes.Code{codes.Internal}},
			{"metadata that is no base64", message(0, nil), []string{"x-bin", "\x01\x02!"},
				[]codes.Code{codes.Internal}},
		} {
			wantCode(a.t, wrong.what, a.ask(uint32(2*i+1), callTo(health, wrong.more...), wrong.body), wrong.want...)
		}
	}},
}

// TestAbusersAreBoundedAndOthersAreServed measures alone: no test runs in parallel.
func TestAbusersAreBoundedAndOthersAreServed(t *testing.T) {
	if raced && testing.Short() {
		t.Skip(
			"the limits are for a normal build; the race detector needs several times more")
	}
	s := New(t, openStore(t, freshURL(t, "sqlite")), patient)
	run := s.start(t)
	ask := func(other kagziv1.WorkflowServiceClient) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(context.Background(), abuseWaits)
		defer cancel()
		began := time.Now()
		_, err := other.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{RunId: run})
		return time.Since(began), err
	}
	// beside measures calls of another client until the neighbour is done, and calls meanwhile
	// before it ends
	beside := func(t *testing.T, i int, other kagziv1.WorkflowServiceClient, meanwhile func(took []time.Duration)) {
		t.Helper()
		b := s.neighbour(t, i)
		var over atomic.Bool
		lengths := make(chan []time.Duration)
		go func() {
			var took []time.Duration
			for len(took) == 0 || !over.Load() {
				one, err := ask(other)
				if err != nil {
					t.Errorf("somebody else's call: %v", err)
					break
				}
				took = append(took, one)
			}
			lengths <- took
		}()
		said, done := b.wait()
		over.Store(true)
		if took := <-lengths; len(took) > 0 { // otherwise another client was not served
			meanwhile(took)
		}
		if rest, err := b.end(); err != nil || !done {
			t.Errorf("the neighbour ended with %v: %s%s", err, said, rest)
		}
	}
	var nobodys, busys, abusers []time.Duration // alternating, because the machine may be busy
	for i, abuse := range abuses {
		t.Run(strings.ReplaceAll(abuse.name, " ", "_"), func(t *testing.T) {
			other := kagziv1.NewWorkflowServiceClient(s.Dial())
			fine(ask(other))(t)
			if long.Enabled() {
				for range 300 {
					nobodys = append(nobodys, fine(ask(other))(t))
				}
				beside(t, busy, other, func(took []time.Duration) { busys = append(busys, took...) })
			}
			before := kept()
			beside(t, i, other, func(took []time.Duration) {
				now := kept() // while the abuser is still there
				if now > before+abuseKeeps {
					t.Errorf("the server keeps %d MiB for it, want at most %d", (now-before)>>20, abuseKeeps>>20)
				}
				fine(ask(other))(t)
				t.Logf("kept %d KiB; of %d calls of another the slowest took %s", (int64(now)-int64(before))>>10,
					len(took), slices.Max(took))
				abusers = append(abusers, took...)
			})
		})
	}
	if len(nobodys) > 0 && len(busys) > 0 && len(abusers) > 0 {
		const share = 0.99
		t.Logf(
			"p99 of another's calls: %s of %d beside nobody, %s of %d beside a busy client, %s of %d beside abusers: %.1f times as long as beside the client",
			atShare(nobodys, share), len(nobodys), atShare(busys, share), len(busys), atShare(abusers, share),
			len(abusers),
			float64(atShare(abusers, share))/float64(atShare(busys, share)))
		t.Logf("%.1f times as long as beside nobody", float64(atShare(abusers, share))/float64(atShare(nobodys, share)))
	}
}

// No spelling of a method's path bypasses its permission check.
func TestAPathMustBeExactlyAMethods(t *testing.T) {
	t.Parallel()
	s := New(t, openStore(t, freshURL(t, "sqlite")), patient)
	root := s.lock(t)
	body, err := proto.Marshal(&kagziv1.CreateNamespaceRequest{Namespace: "broken-in"})
	if err != nil {
		t.Fatal(err)
	}
	const path = "/kagzi.v1.NamespaceService/CreateNamespace"
	got := s.attack(t).ask(1, callTo(path), message(0, body))
	wantCode(t, path, got, codes.Unauthenticated)
	for _, tricked := range []string{
		path[1:], "/" + path, path + "/", path + "//", strings.Replace(path, "/Create", "//Create", 1),
		strings.Replace(path, "/Create", "%2FCreate", 1),
		strings.ToUpper(path), strings.ToLower(path), "/kagzi.v1.namespaceservice/CreateNamespace", path + "?x",
		path + "#x", path + "\x00", path + " ", "/." + path,
		"/kagzi.v1.AdminService/../NamespaceService/CreateNamespace",
		"/kagzi.v1.AdminService/HealthCheck/../../kagzi.v1.NamespaceService/CreateNamespace",
		"/NamespaceService/CreateNamespace", "/kagzi.v2.NamespaceService/CreateNamespace", "/kagzi.v1.NamespaceService",
		"/kagzi.v1.NamespaceService/", "/", "", "*",
		"//", "/" + strings.Repeat("a", 8000), "http://x" + path, "/kagzi.v1.AdminService/CreateNamespace",
		"/grpc.health.v1.Health/CreateNamespace",
	} {
		got := s.attack(t).ask(1, callTo(tricked), message(0, body))
		refused := got["reset"] != "" || got["gone"] != "" || got[":status"] >= "400"
		if code := got["grpc-status"]; !refused && code != fmt.Sprint(uint32(codes.Unimplemented)) {
			t.Errorf("the path %.80q is answered with %v, want UNIMPLEMENTED", tricked, got)
		}
	}
	for what, fields := range map[string][]string{
		"GET":                     slices.Replace(callTo(path), 1, 2, "GET"),
		"another content type":    slices.Replace(callTo(path), 9, 10, "text/html"),
		"no content type":         slices.Delete(callTo(path), 8, 10),
		"JSON":                    slices.Replace(callTo(path), 9, 10, "application/grpc+json"),
		"two paths":               append([]string{":path", health}, callTo(path)...),
		"a forged peer":           callTo(path, "x-forwarded-for", "127.0.0.1", "x-real-ip", "127.0.0.1"),
		"two keys, none of which": callTo(path, "authorization", "Bearer a", "authorization", "Bearer b"),
	} {
		if got := s.attack(t).ask(1, fields, message(0, body)); got["grpc-status"] == "0" {
			t.Errorf("%s is answered with %v", what, got)
		}
	}
	for _, n := range fine(root.namespaces().ListNamespaces(
		within(t, 20*time.Second), &kagziv1.ListNamespacesRequest{}))(t).Namespaces {
		if n.Namespace == "broken-in" {
			t.Error("a namespace was made without a key")
		}
	}
}

// TestUnauthenticatedCallsAreRefusedAtTheirHeadersUnderLoad: a call's data is buffered until it is
// complete, before its key can be checked.
func TestUnauthenticatedCallsAreRefusedAtTheirHeadersUnderLoad(t *testing.T) {
	s := New(t, openStore(t, freshURL(t, "sqlite")), patient)
	root := s.lock(t)
	list := func() error {
		_, err := root.namespaces().ListNamespaces(within(t, 20*time.Second), &kagziv1.ListNamespacesRequest{})
		return err
	}
	if err := list(); err != nil { // from here on the server knows its keys
		t.Fatal(err)
	}
	const path, calls = "/kagzi.v1.NamespaceService/CreateNamespace", 60
	a := s.attack(t)
	half := message(0, make([]byte, 4<<20))[:8<<10]
	for i := range calls {
		stream := uint32(2*i + 1)
		a.do(a.open(stream, callTo(path)))
		a.do(a.WriteData(stream, false, half))
	}
	refused := 0
	for refused < calls-16 {
		frame, err := a.ReadFrame()
		if err != nil {
			t.Fatalf("%d of %d unfinished calls without a key were refused (%v), want all but 16", refused, calls, err)
		}
		if f, ok := frame.(*http2.MetaHeadersFrame); ok {
			for _, field := range f.Fields {
				if field.Name == "grpc-status" && field.Value == fmt.Sprint(uint32(codes.Unauthenticated)) {
					refused++
				}
			}
		}
	}
	if err := list(); err != nil {
		t.Errorf("a call with a key meanwhile = %v", err)
	}
	a.Close()
	body, err := proto.Marshal(&kagziv1.CreateNamespaceRequest{Namespace: "broken-in"})
	if err != nil {
		t.Fatal(err)
	}
	for !t.Failed() { // until the server notices that they are gone, it is over the limit
		got := s.attack(t).ask(1, callTo(path), message(0, body))
		wantCode(t, path, got, codes.Unauthenticated)
		if !strings.Contains(got["grpc-message"], "too many") {
			break
		}
	}
}
