package server

import (
	"context"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	contract "github.com/kagzi/kagzi/proto/wire"
)

// Direct calls a Server in the same process without a connection. A unary call runs in its caller's
// goroutine and has taken effect when it returns. A stream has its own goroutine, which ends with
// the stream's context.
type Direct struct{ server *Server }

var _ grpc.ClientConnInterface = Direct{}

// Direct returns a client connection to this server.
func (s *Server) Direct() Direct { return Direct{s} }

// services are the services that Direct can call.
var services = []*grpc.ServiceDesc{
	&kagziv1.WorkflowService_ServiceDesc, &kagziv1.WorkflowScheduleService_ServiceDesc,
	&kagziv1.WorkerService_ServiceDesc,
	&kagziv1.AdminService_ServiceDesc, &kagziv1.NamespaceService_ServiceDesc,
}

// handlerOf returns the implementation of a method's service.
func (d Direct) handlerOf(method string) any {
	if strings.HasPrefix(method, "/"+kagziv1.WorkerService_ServiceDesc.ServiceName+"/") {
		return d.server.workers
	}
	return d.server
}

// find returns the description of a method by its full name, as one of the two results; the other
// is nil.
func find(method string) (*grpc.MethodDesc, *grpc.StreamDesc) {
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	for _, desc := range services {
		if desc.ServiceName != service {
			continue
		}
		for i := range desc.Methods {
			if desc.Methods[i].MethodName == name {
				return &desc.Methods[i], nil
			}
		}
		for i := range desc.Streams {
			if desc.Streams[i].StreamName == name {
				return nil, &desc.Streams[i]
			}
		}
	}
	return nil, nil
}

func unknownMethod(method string) error {
	return status.Errorf(codes.Unimplemented, "unknown method %s", method)
}

// copyTo copies the message from into to, which may be one that its receiver decodes.
func copyTo(to, from any) error {
	if to, later := to.(*wire.Undecoded); later {
		raw, err := proto.Marshal(from.(proto.Message))
		to.Raw = mem.SliceBuffer(raw)
		return err
	}
	proto.Reset(to.(proto.Message))
	proto.Merge(to.(proto.Message), from.(proto.Message))
	return nil
}

// Authenticate checks the key of a call before its request is read, and returns the key's id; empty
// if no key is needed. The call itself checks the key again, with role and scope.
func (d Direct) Authenticate(ctx context.Context, method string) (key string, err error) {
	s := d.server
	select {
	case <-s.stopping:
		return "", s.errors.Status(wire.ErrStopping)
	default:
	}
	caller, err := s.guard.Authenticate(grpc.NewContextWithServerTransportStream(ctx, named(method)),
		s.guard.MethodOf(method))
	if err != nil {
		began, usage := s.options.Clock(), s.methods.Begin(method)
		err = s.errors.Status(err)
		s.logCall(ctx, method, began, err)
		usage.End(s.options.Clock().Sub(began), err)
		return "", err
	}
	if caller == nil {
		return "", nil
	}
	return caller.ID.String(), nil
}

// named tells the audit log the method of a call that has no connection of gRPC.
type named string

func (n named) Method() string             { return string(n) }
func (named) SetHeader(metadata.MD) error  { return nil }
func (named) SendHeader(metadata.MD) error { return nil }
func (named) SetTrailer(metadata.MD) error { return nil }

// Keyless reports whether calls need no key, or are not known to need one.
func (d Direct) Keyless(ctx context.Context) bool { return d.server.guard.Keyless(ctx) }

// arrived returns a context in which the name that a caller's agent gives itself has reached the
// server. Other metadata, such as keys, is that of the call which led to this one.
func arrived(ctx context.Context) context.Context {
	sent, _ := metadata.FromOutgoingContext(ctx)
	names := sent.Get(contract.Agent)
	if len(names) == 0 {
		return ctx
	}
	had, _ := metadata.FromIncomingContext(ctx)
	return metadata.NewIncomingContext(ctx, metadata.Join(had, metadata.MD{contract.Agent: names}))
}

// Invoke carries out one unary call.
func (d Direct) Invoke(ctx context.Context, method string, request, reply any, _ ...grpc.CallOption) error {
	desc, _ := find(method)
	if desc == nil {
		return unknownMethod(method)
	}
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	ctx = arrived(ctx)
	answer, err := desc.Handler(d.handlerOf(method), ctx, func(into any) error {
		return copyTo(into, request)
	}, d.server.unary)
	if err != nil {
		return err
	}
	return copyTo(reply, answer)
}

// NewStream opens a stream.
func (d Direct) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string,
	_ ...grpc.CallOption) (grpc.ClientStream, error) {
	_, desc := find(method)
	if desc == nil {
		return nil, unknownMethod(method)
	}
	ctx, cancel := context.WithCancel(arrived(ctx))
	s := &directStream{ctx: ctx, requests: make(chan any), answers: make(chan any), over: make(chan struct{})}
	info := &grpc.StreamServerInfo{FullMethod: method, IsClientStream: desc.ClientStreams,
		IsServerStream: desc.ServerStreams}
	go func() {
		s.err = d.server.stream(d.handlerOf(method), serverEnd{s}, info, desc.Handler)
		close(s.over)
		cancel()
	}()
	return s, nil
}

// directStream is a stream as its client sees it.
type directStream struct {
	ctx               context.Context
	requests, answers chan any
	over              chan struct{} // closed when the handler has returned err
	err               error
}

func (s *directStream) SendMsg(m any) error {
	select {
	case s.requests <- proto.Clone(m.(proto.Message)):
		return nil
	case <-s.over:
		return io.EOF
	case <-s.ctx.Done():
		select {
		case <-s.over: // its end has cancelled the context: RecvMsg has the reason
			return io.EOF
		default:
			return status.FromContextError(s.ctx.Err()).Err()
		}
	}
}

func (s *directStream) RecvMsg(into any) error {
	select {
	case m := <-s.answers:
		return copyTo(into, m)
	case <-s.over:
		if s.err != nil {
			return s.err
		}
		return io.EOF
	}
}

func (s *directStream) CloseSend() error             { close(s.requests); return nil }
func (s *directStream) Header() (metadata.MD, error) { return nil, nil }
func (s *directStream) Trailer() metadata.MD         { return nil }
func (s *directStream) Context() context.Context     { return s.ctx }

// serverEnd is a stream as its server sees it.
type serverEnd struct{ *directStream }

func (s serverEnd) SendMsg(m any) error {
	select {
	case s.answers <- proto.Clone(m.(proto.Message)):
		return nil
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

func (s serverEnd) RecvMsg(into any) error {
	select {
	case m, open := <-s.requests:
		if !open {
			return io.EOF
		}
		return copyTo(into, m)
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}

func (serverEnd) SetHeader(metadata.MD) error  { return nil }
func (serverEnd) SendHeader(metadata.MD) error { return nil }
func (serverEnd) SetTrailer(metadata.MD)       {}
