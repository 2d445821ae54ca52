package server

import (
	"context"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// ListAuditEvents is who changed what in a namespace, newest first. Without a namespace it is what is about none: keys, and who was refused
// for want of a valid one.
func (s *Server) ListAuditEvents(ctx context.Context, request *kagziv1.ListAuditEventsRequest) (*kagziv1.ListAuditEventsResponse, error) {
	filter := engine.AuditFilter{Namespace: request.Namespace, SubjectID: request.GetSubjectId()}
	if filter.Namespace != "" {
		if err := engine.CheckNamespace("namespace", filter.Namespace); err != nil {
			return nil, err
		}
	}
	if err := engine.CheckOptionalName("subject_id", filter.SubjectID); err != nil {
		return nil, err
	}
	page, err := pageOf(request, request.Page, belowIDs)
	if err != nil {
		return nil, err
	}
	events, info, err := s.store.ListAuditEvents(ctx, filter, page)
	if err != nil {
		return nil, err
	}
	list, around := pageOfItems(request, page, info, events, auditTo, func(e *engine.AuditEvent) engine.Cursor { return engine.Cursor{ID: e.ID} })
	return &kagziv1.ListAuditEventsResponse{Events: list, Page: around}, nil
}

func auditTo(e *engine.AuditEvent) *kagziv1.AuditEvent {
	return &kagziv1.AuditEvent{
		At: timeTo(e.At), Actor: e.Actor.Name, Peer: e.Actor.Peer, Method: e.Method, Namespace: e.Namespace,
		Subject: e.Subject, SubjectId: e.SubjectID, Outcome: e.Outcome, Reason: e.Reason, Detail: e.Detail,
	}
}
