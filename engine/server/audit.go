package server

import (
	"context"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// ListAuditEvents is who changed what in a namespace, newest first. Without a namespace it is what
// is about none: keys, and who was refused for want of a valid one.
func (s *Server) ListAuditEvents(ctx context.Context,
	request *kagziv1.ListAuditEventsRequest) (*kagziv1.ListAuditEventsResponse, error) {
	filter := engine.AuditFilter{Namespace: request.Namespace, SubjectID: request.GetSubjectId()}
	if filter.Namespace != "" {
		if err := engine.CheckNamespace("namespace", filter.Namespace); err != nil {
			return nil, err
		}
	}
	if err := engine.CheckOptionalName("subject_id", filter.SubjectID); err != nil {
		return nil, err
	}
	page, err := wire.PageOf(request, request.Page, wire.BelowIDs)
	if err != nil {
		return nil, err
	}
	events, info, err := s.store.ListAuditEvents(ctx, filter, page)
	if err != nil {
		return nil, err
	}
	list, around := wire.PageOfItems(request, page, info, events, wire.AuditTo,
		func(e *engine.AuditEvent) engine.Cursor { return engine.Cursor{ID: e.ID} })
	return &kagziv1.ListAuditEventsResponse{Events: list, Page: around}, nil
}
