package rest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	// commentEvery is how often a quiet stream of events gets a comment, so that proxies keep it.
	commentEvery = 15 * time.Second
	// firstWait is how long a stream may take to fail with a status of its own. After it the answer
	// begins, and an error is an event.
	firstWait = 250 * time.Millisecond
	chunkSize = 256 << 10 // bytes of an upload in one message
)

// received is a message of a stream, or its end.
type received struct {
	message proto.Message
	err     error // io.EOF: the stream is complete
}

// stream answers with the messages of a server's stream.
func (a *API) stream(w http.ResponseWriter, r *http.Request, one *route, request proto.Message, caller string) error {
	leave, err := a.gate.EnterStream(r, caller)
	if err != nil {
		return err
	}
	defer leave()
	if err := resume(request, r.Header.Get("Last-Event-ID")); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	messages, err := a.open(ctx, one, request)
	if err != nil {
		return err
	}
	setWriteDeadline(w, time.Time{})
	if isBytes(one.method.Output()) {
		return a.download(ctx, w, one, messages)
	}
	first := &received{}
	select {
	case *first = <-messages:
		if first.err != nil && first.err != io.EOF {
			return first.err
		}
	case <-time.After(firstWait):
		first = nil
	case <-ctx.Done():
		return ctx.Err()
	}
	a.events(ctx, w, messages, first)
	return nil
}

// open sends the request and returns the answers as they come.
func (a *API) open(ctx context.Context, one *route, request proto.Message) (<-chan received, error) {
	desc := &grpc.StreamDesc{StreamName: string(one.method.Name()), ServerStreams: true,
		ClientStreams: one.method.IsStreamingClient()}
	stream, err := a.server.NewStream(ctx, desc, one.full)
	if err == nil {
		err = stream.SendMsg(request)
	}
	if err == nil {
		err = stream.CloseSend()
	}
	if err != nil && err != io.EOF { // with EOF the stream has ended, and RecvMsg says why
		return nil, err
	}
	messages := make(chan received)
	go func() {
		for {
			m := one.output.New().Interface()
			err := stream.RecvMsg(m)
			select {
			case messages <- received{m, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return messages, nil
}

// events answers with server-sent events. An error is the event "problem", and the event "end" says
// that nothing more will come: a browser would connect again otherwise.
func (a *API) events(ctx context.Context, w http.ResponseWriter, messages <-chan received, first *received) {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Accel-Buffering", "no")
	out := eventWriter{w, http.NewResponseController(w)}
	quiet := time.NewTicker(commentEvery)
	defer quiet.Stop()
	if first == nil && !out.send(": open\n\n") {
		return
	}
	for {
		var next received
		if first != nil {
			next, first = *first, nil
		} else {
			select {
			case next = <-messages:
			case <-quiet.C:
				if !out.send(":\n\n") {
					return
				}
				continue
			case <-ctx.Done():
				return // the client has gone
			}
		}
		if next.err != nil {
			out.send(a.lastEvent(next.err))
			return
		}
		text, err := encode(next.message)
		if err != nil {
			out.send(a.lastEvent(err))
			return
		}
		if !out.send(eventID(next.message) + "data: " + string(text) + "\n\n") {
			return
		}
		quiet.Reset(commentEvery)
	}
}

// lastEvent returns the event that ends a stream. If the client should connect again, as when the
// server stops, it says when: not all clients at once.
func (a *API) lastEvent(err error) string {
	if errors.Is(err, io.EOF) {
		return "event: end\ndata: {}\n\n"
	}
	text, code, _ := problemOf(a.errors, err)
	retry := ""
	if code == http.StatusServiceUnavailable {
		retry = "retry: " + strconv.Itoa(1000+rand.IntN(4000)) + "\n"
	}
	return retry + "event: problem\ndata: " + string(text) + "\n\n"
}

// eventWriter writes events, each with a deadline of its own. It says whether the client is there.
type eventWriter struct {
	to      io.Writer
	control *http.ResponseController
}

func (e eventWriter) send(text string) bool {
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTime)) // a recorder in a test has none
	if _, err := io.WriteString(e.to, text); err != nil {
		return false
	}
	return e.control.Flush() == nil
}

// eventID returns the id of an event of the server, from which a client can go on. Other streams
// begin with what is there now, and have none.
func eventID(m proto.Message) string {
	event, ok := m.(*kagziv1.ServerEvent)
	if !ok {
		return ""
	}
	return "id: " + strconv.FormatInt(event.Sequence, 10) + "." +
		strconv.FormatInt(event.GetAt().AsTime().UnixNano(), 10) + "\n"
}

// resume makes a request go on after the event with an id.
func resume(request proto.Message, id string) error {
	r, ok := request.(*kagziv1.WatchEventsRequest)
	if !ok || id == "" {
		return nil
	}
	first, second, _ := strings.Cut(id, ".")
	after, err := strconv.ParseInt(first, 10, 64)
	at, atErr := strconv.ParseInt(second, 10, 64)
	if err != nil || atErr != nil || after < 0 || at < 0 {
		return engine.Invalid("Last-Event-ID", "is no id of an event of this server; leave it out")
	}
	r.After, r.AfterAt = after, timestamppb.New(time.Unix(0, at))
	return nil
}

// download answers with the bytes of a stream of a file.
func (a *API) download(ctx context.Context, w http.ResponseWriter, one *route, messages <-chan received) error {
	receive := func() received {
		select {
		case next := <-messages:
			return next
		case <-ctx.Done():
			return received{err: ctx.Err()}
		}
	}
	next := receive()
	if next.err != nil && next.err != io.EOF {
		return next.err
	}
	header := w.Header()
	name, kind := "kagzi.db", "application/vnd.sqlite3"
	if one.method.Output().Name() == "Capsule" {
		name, kind = "run.kagzi.zip", "application/zip"
	}
	header.Set("Content-Type", kind)
	header.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if sized, ok := next.message.(interface{ GetTotalBytes() int64 }); ok && sized.GetTotalBytes() > 0 {
		header.Set("Content-Length", strconv.FormatInt(sized.GetTotalBytes(), 10))
	}
	for ; next.err == nil; next = receive() {
		data := next.message.(interface{ GetData() []byte }).GetData()
		setWriteDeadline(w, time.Now().Add(writeTime+time.Duration(len(data)/slowest)*time.Second))
		if _, err := w.Write(data); err != nil {
			return nil // the client has gone
		}
	}
	if next.err != io.EOF {
		panic(http.ErrAbortHandler) // so that the client sees that the file is not whole
	}
	return nil
}

// upload sends a body as a stream of a file. Namespace and request id come before it.
func (a *API) upload(w http.ResponseWriter, r *http.Request, one *route) error {
	first := one.input.New()
	if err := bindQuery(first, one, r.URL.RawQuery); err != nil {
		return err
	}
	if err := bindKey(first, one, r.Header.Values(idempotencyKey)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stream, err := a.server.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, one.full)
	if err != nil {
		return err
	}
	message := first
	for chunk := make([]byte, chunkSize); ; {
		setReadDeadline(w, time.Now().Add(bodyTime+chunkSize/slowest*time.Second))
		n, err := io.ReadFull(r.Body, chunk)
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return bodyError(err)
		}
		if n > 0 || message == first {
			message.Set(message.Descriptor().Fields().ByName("data"), protoreflect.ValueOfBytes(bytes.Clone(chunk[:n])))
			if err := stream.SendMsg(message.Interface()); err != nil {
				break // RecvMsg says why
			}
			message = one.input.New()
		}
		if last {
			_ = stream.CloseSend() // RecvMsg says what went wrong
			break
		}
	}
	setWriteDeadline(w, time.Time{})
	answer := one.output.New().Interface()
	if err := stream.RecvMsg(answer); err != nil {
		return err
	}
	text, err := encode(answer)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	write(w, http.StatusOK, append(text, '\n'))
	return nil
}

var errStreams = &engine.Error{Kind: engine.KindUnavailable,
	Message: "too many open streams: a server has at most 1,000 and a key at most 100; close one and try again"}
