package server

import (
	"cmp"
	"context"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/proto/query"
)

// ListAuditEvents returns a page of the audit events of a namespace, newest first. Without a
// namespace it returns those that belong to none: changes of keys, and calls refused without a
// valid key.
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
	q, err := queryOf(&query.Audit, request.Query, s.now())
	if err != nil {
		return nil, err
	}
	events := listing[engine.AuditEvent, *kagziv1.AuditEvent]{
		read: func(ctx context.Context, p engine.Page) ([]engine.AuditEvent, engine.PageInfo, error) {
			return s.store.ListAuditEvents(ctx, filter, p)
		},
		message: wire.AuditTo, place: func(e *engine.AuditEvent) engine.Cursor { return engine.Cursor{ID: e.ID} },
	}
	if q != nil {
		events.within = spanOf(q.Between("at"))
		filter.SubjectID = cmp.Or(filter.SubjectID, q.Only("subject_id"))
	}
	list, around, err := events.page(ctx, request, page, q)
	if err != nil {
		return nil, err
	}
	return &kagziv1.ListAuditEventsResponse{Events: list, Page: around}, nil
}
