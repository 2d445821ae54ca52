package server

import (
	"context"
	"net/http"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/auth"
	"github.com/kagzi/kagzi/engine/server/internal/hook"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Delivery is a verified delivery to a hook.
type Delivery struct {
	hook  engine.Hook
	about hook.About
}

// VerifyDelivery checks the signature of a request to the hook with this id. An unknown hook and a wrong
// signature get the same error after the same work: a read of the hook, and two HMACs of the body.
func (d Direct) VerifyDelivery(ctx context.Context, id string, header http.Header, body []byte) (*Delivery, error) {
	s := d.server
	select {
	case <-s.stopping:
		return nil, s.errors.Status(wire.ErrStopping)
	default:
	}
	parsed, _ := engine.ParseID(id) // what is no id is the id of no hook
	h, err := s.store.GetHookByID(ctx, parsed)
	known := err == nil
	switch {
	case engine.KindOf(err) == engine.KindNotFound:
		h = hook.Decoy()
	case err != nil:
		return nil, s.errors.Status(err)
	}
	request := &hook.Delivery{Header: header, Body: body}
	ok, age := hook.Verify(&h, request, s.now())
	switch {
	case !ok || !known:
		var about *engine.Hook
		if known {
			about = &h
		}
		return nil, s.errors.Status(s.guard.RefuseDelivery(ctx, about))
	case age != 0:
		return nil, s.errors.Status(engine.Invalid("Stripe-Signature",
			"is of a time %s away from the server's clock, at most %s are allowed; check both clocks, or send the event again",
			age.Abs().Round(time.Second), hook.MaxAge))
	}
	about, err := hook.Describe(&h, request)
	if err != nil {
		return nil, s.errors.Status(err)
	}
	return &Delivery{h, about}, nil
}

// Start starts the run of a delivery, with the rights of the hook: those of a client's key for its
// namespace. A repeated delivery returns the run that the first one started: as long as that run is
// kept and, for an equal body, as long after that as the server knows request ids of deleted runs.
// The run's tags say which hook, event and delivery it is of.
func (d Direct) Start(ctx context.Context, of *Delivery, input *kagziv1.Payload) (*kagziv1.StartWorkflowResponse,
	error) {
	h, about := &of.hook, &of.about
	request := &kagziv1.StartWorkflowRequest{Namespace: h.Namespace, TaskQueue: h.Queue, WorkflowType: h.Type,
		RequestId: about.Request, Input: input, Tags: map[string]string{"hook": h.Name}}
	if about.Event != "" {
		request.Tags["event"] = about.Event
	}
	if about.ID != "" {
		request.Tags["delivery"] = about.ID
		request.ExternalId = h.Name + ":" + about.ID
		request.ExternalIdReuse = kagziv1.ExternalIdReuse_EXTERNAL_ID_REUSE_NEVER
	}
	engine.Failpoint("hook.verified")
	answer := &kagziv1.StartWorkflowResponse{}
	err := d.Invoke(auth.WithHook(ctx, h), startMethod, request, answer)
	if run, repeated := wire.StartedBefore(err); repeated {
		// the same body under another id, or the same id with another body
		return &kagziv1.StartWorkflowResponse{RunId: run, AlreadyExists: true}, nil
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}
