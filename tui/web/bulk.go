package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	g "maragu.dev/gomponents"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/filter"
	"github.com/kagzi/kagzi/tui/internal/format"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
	h "github.com/kagzi/kagzi/tui/web/internal/markup"
)

// bulkTime limits an action on all runs that match a filter.
const bulkTime = time.Hour

// bulkKind is an action on all runs that match a filter.
type bulkKind struct {
	name, title string
	action      kagziv1.BulkAction
	fits        []kagziv1.WorkflowStatus // if the filter names none
	said        string
}

var (
	openStatuses = []kagziv1.WorkflowStatus{kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING,
		kagziv1.WorkflowStatus_WORKFLOW_STATUS_RUNNING, kagziv1.WorkflowStatus_WORKFLOW_STATUS_SLEEPING}
	failedStatuses = []kagziv1.WorkflowStatus{kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED,
		kagziv1.WorkflowStatus_WORKFLOW_STATUS_TIMED_OUT}
)

var bulkKinds = []bulkKind{
	{"cancel", "Cancel", kagziv1.BulkAction_BULK_ACTION_CANCEL, openStatuses, model.CancelText(tui.DefaultGrace)},
	{"terminate", "Terminate", kagziv1.BulkAction_BULK_ACTION_TERMINATE, openStatuses, model.TerminateText},
	{"retry", "Retry", kagziv1.BulkAction_BULK_ACTION_RETRY, failedStatuses, model.RetryText(model.RetryOptions{})},
}

// bulk is an action that is asked about.
type bulk struct {
	kind   bulkKind
	filter string
	asOf   time.Time
	count  int64
	reason string
}

// bulkOf reads a bulk action from a query or a form.
func (p *page) bulkOf(values url.Values) (*bulk, *kagziv1.ListWorkflowsRequest, error) {
	if p.ReadOnly || !p.may(operators) {
		return nil, nil, status.Error(codes.PermissionDenied,
			"an action on all runs that match needs the role operator")
	}
	i := slices.IndexFunc(bulkKinds, func(k bulkKind) bool { return k.name == values.Get("do") })
	b := &bulk{kind: bulkKinds[max(i, 0)], filter: values.Get("q"), asOf: p.now,
		reason: strings.TrimSpace(values.Get("reason"))}
	if at := values.Get("asof"); at != "" {
		asOf, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			return nil, nil, invalid("asof: want a time")
		}
		b.asOf = asOf
	}
	if n := values.Get("count"); n != "" {
		count, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			return nil, nil, invalid("count: want a number")
		}
		b.count = count
	}
	short, err := filter.ParseShort(b.filter)
	if err != nil {
		return nil, nil, invalid("%s", err)
	}
	q, err := short.Compile(p.ns, b.asOf)
	if err != nil {
		return nil, nil, invalid("%s", err)
	}
	if q.Keep != nil && short.Long != "" {
		q = filter.Query{Request: &kagziv1.ListWorkflowsRequest{Namespace: p.ns, Query: short.Long}}
	}
	if len(q.Request.Statuses) == 0 { // as on the command line
		q.Request.Statuses = b.kind.fits
	}
	if q.Keep != nil {
		return nil, nil, invalid("the server cannot select runs by %q: mark them in the list, or leave that out",
			short.Local())
	}
	// Only runs of that time: those that start meanwhile are not meant.
	if before := q.Request.GetCreatedBefore(); before == nil || before.AsTime().After(b.asOf) {
		q.Request.CreatedBefore = timestamppb.New(b.asOf)
	}
	return b, q.Request, nil
}

// countOf counts the runs that a bulk action is about.
func (p *page) countOf(ctx context.Context, r *kagziv1.ListWorkflowsRequest) (int64, error) {
	r.Page = &kagziv1.PageRequest{PageSize: 1, IncludeTotalCount: true}
	answer, err := p.API.ListWorkflows(ctx, r)
	return answer.GetPage().GetTotalCount(), err
}

// askBulk shows how many runs an action would be about.
func (p *page) askBulk() error {
	b, request, err := p.bulkOf(p.r.URL.Query())
	if err != nil {
		return err
	}
	b.asOf = p.now
	if b.count, err = p.countOf(p.ctx, request); err != nil {
		return err
	}
	return p.showBulk(b, request)
}

func (p *page) showBulk(b *bulk, request *kagziv1.ListWorkflowsRequest) error {
	shown := b.filter
	if shown == "" {
		shown = "every run of the namespace"
	}
	chips := h.Nav(h.Class("chips"), h.Aria("label", "Actions"), g.Map(bulkKinds, func(k bulkKind) g.Node {
		return h.A(h.Href(p.at("bulk", "do", k.name, "q", b.filter)), g.If(k.name == b.kind.name, h.Aria("current",
			"true")),
			h.Text(k.title))
	}))
	back := p.at("runs", "q", b.filter)
	return p.write(http.StatusOK, p.document(b.kind.title+" runs", "Runs", h.Form(h.Class("question"), h.Method("post"),
		h.Action(p.at("bulk")), p.hidden(),
		h.Input(h.Type("hidden"), h.Name("request"), h.Value(uuid.Must(uuid.NewV7()).String())),
		h.Input(h.Type("hidden"), h.Name("do"), h.Value(b.kind.name)), h.Input(h.Type("hidden"), h.Name("q"),
			h.Value(clean(b.filter))),
		h.Input(h.Type("hidden"), h.Name("asof"), h.Value(b.asOf.UTC().Format(time.RFC3339Nano))),
		h.Input(h.Type("hidden"), h.Name("count"), h.Value(strconv.FormatInt(b.count, 10))),
		h.H1(h.Text(b.kind.title+" "+several(int(b.count), "run", "runs")+"?")), chips,
		facts([]render.Pair{{Label: "Filter", Lines: []string{render.Truncate(render.Safe(shown), 300)}},
			{Label: "Runs", Lines: []string{format.Number(b.count)}},
			{Label: "As of", Lines: []string{b.asOf.UTC().Format("2006-01-02 15:04:05 UTC")}}}, nil),
		h.Ul(h.Class("consequences"), h.Li(h.Text(b.kind.said)),
			h.Li(h.Text("Runs to which it does not apply, such as ended ones, are left as they are "+
				"and counted as failed.")),
			h.Li(h.Text("Runs that started after that time are left out. If more than this number match "+
				"when it starts, "+
				"nothing is done."))),
		h.Div(h.Class("fields"), reasonField.node(&question{values: url.Values{"reason": {b.reason}}})),
		h.H2(h.Text("The same on the command line")),
		h.Pre(h.Class("command"), h.TabIndex("0"), text(p.scope().BulkLine(b.kind.name, filter.Of(request),
			b.reason, b.count))),
		h.Div(h.Class("choices"), h.Button(h.Type("submit"), h.Name("preview"), h.Value("1"),
			h.Text("Update the command")),
			h.A(h.Class("button primary"), h.ID("leave"), h.Href(back), h.Text("Leave as is")),
			g.If(b.count > 0, h.Button(h.Class("danger"), h.Type("submit"), h.Name("act"), h.Value("1"),
				h.Text(b.kind.title+" "+several(int(b.count), "run", "runs"))))))))
}

// performBulk does a bulk action, if no more runs match than were shown.
func (p *page) performBulk() error {
	b, request, err := p.bulkOf(p.r.PostForm)
	if err != nil {
		return err
	}
	if p.r.PostForm.Has("preview") {
		return p.showBulk(b, request)
	}
	title := fmt.Sprintf("%s %s that match %q", b.kind.title, several(int(b.count), "run", "runs"), b.filter)
	key, _, err := p.doOnce(title, p.at("runs", "q", b.filter), bulkTime, func(ctx context.Context, d *deed) {
		d.err = p.bulk(ctx, b, request, d)
	})
	if err != nil {
		return err
	}
	http.Redirect(p.w, p.r, p.at("done/"+key), http.StatusSeeOther)
	return nil
}

// bulk counts again, and then acts on no more runs than were shown.
func (p *page) bulk(ctx context.Context, b *bulk, request *kagziv1.ListWorkflowsRequest, d *deed) error {
	now, err := p.countOf(ctx, request)
	if err != nil {
		return err
	}
	if now > b.count {
		return status.Errorf(codes.FailedPrecondition, "%d runs match now, and %d were shown: look at the list again",
			now, b.count)
	}
	request.Page = nil
	order := &kagziv1.BulkWorkflowsRequest{Action: b.kind.action, Filter: request, Reason: b.reason, Limit: b.count}
	if b.kind.name == "cancel" {
		order.Grace = tui.Grace(tui.DefaultGrace)
	}
	stream, err := p.API.BulkWorkflows(ctx, order)
	if err != nil {
		return err
	}
	for {
		step, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		d.mu.Lock()
		d.matched, d.done, d.refused = step.GetMatched(), step.GetDone(), step.GetFailed()
		if step.GetLastError() != nil {
			d.last = step.GetLastRunId() + ": " + render.ErrorLine(step.GetLastError())
		}
		d.mu.Unlock()
	}
}
