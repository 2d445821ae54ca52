package server

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// The id of a run that continued as new works as long as a run of its chain exists. If retention has
// deleted the first run of a chain, a call of WorkflowService about it goes to the newest run.

// ofRun is a request about one run.
type ofRun interface {
	GetNamespace() string
	GetRunId() string
}

// ofChain returns the request for the newest run of the chain that a deleted run began; nil if the
// call did not fail because of that.
func (s *Server) ofChain(ctx context.Context, method string, request any, err error) (proto.Message, error) {
	var failed *engine.Error
	r, about := request.(ofRun)
	if !about || !errors.As(err, &failed) || failed.Kind != engine.KindNotFound || failed.Subject != "run" ||
		!strings.HasPrefix(method, "/"+kagziv1.WorkflowService_ServiceDesc.ServiceName+"/") {
		return nil, nil
	}
	namespace, id, err := wire.RunOf(r)
	if err != nil || failed.SubjectID != id.String() {
		return nil, nil
	}
	latest, err := s.store.LatestOfChain(ctx, namespace, id)
	if err != nil || latest.IsZero() {
		return nil, err
	}
	again := proto.Clone(request.(proto.Message))
	m := again.ProtoReflect()
	m.Set(m.Descriptor().Fields().ByName("run_id"), protoreflect.ValueOfString(latest.String()))
	return again, nil
}

// onChain calls handle with the request, and again with that for the newest run of the chain.
func (s *Server) onChain(ctx context.Context, method string, request any, handle func(request any) error) error {
	err := handle(request)
	if err == nil {
		return nil
	}
	again, chainErr := s.ofChain(ctx, method, request, err)
	switch {
	case chainErr != nil:
		return chainErr
	case again == nil:
		return err
	}
	return handle(again)
}
