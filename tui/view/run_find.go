package view

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
	"github.com/kagzi/kagzi/tui/model"
)

const (
	leastPrefix = 8                // characters of a run id that are enough to look for it
	findTimeout = 10 * time.Second // for all calls that it takes
	findMost    = 1000             // runs that begin alike
)

// runFinder finds the run that a person means. When the server cannot be asked it tries again as soon as it can.
type runFinder struct {
	app   *App
	ref   string
	found func(id string)
	err   error // there is no such run, or more than one

	ctx   context.Context
	close func() // ends it and waits for what is under way
	group sync.WaitGroup
	drop  context.CancelFunc // of the call that is under way
	over  bool
	shown bool
}

func newRunFinder(a *App, ref string, found func(id string)) *runFinder {
	f := &runFinder{app: a, ref: ref, found: found}
	ctx, cancel := context.WithCancel(a.ctx)
	f.ctx = ctx
	leave := a.link.Subscribe(func(c model.Change) {
		if c.Back && f.shown {
			f.start()
		}
	})
	f.close = func() {
		leave()
		cancel()
		f.group.Wait()
	}
	return f
}

// start looks for the run, unless it has been found or the server cannot be asked now.
func (f *runFinder) start() {
	f.shown = true
	if f.over || f.drop != nil || !f.app.link.Ready() {
		return
	}
	ctx, cancel := context.WithTimeout(f.ctx, findTimeout)
	f.drop = cancel
	api, namespace := f.app.link.API(), f.app.link.Namespace()
	f.group.Go(func() {
		id, err := findRun(ctx, api, namespace, f.ref)
		f.app.post(func() {
			if ctx.Err() == context.Canceled {
				return
			}
			cancel()
			f.drop, f.err = nil, err
			if err == nil {
				f.over = true
				f.found(id)
			}
		})
	})
}

// stop asks no more until start.
func (f *runFinder) stop() {
	f.shown = false
	if f.drop != nil {
		f.drop()
		f.drop = nil
	}
}

// findRun is the id of the run with an external id, or of the only one whose run id begins so. The short form of an id, which has its
// end too, is known as well.
func findRun(ctx context.Context, api tui.API, namespace, ref string) (string, error) {
	answer, err := api.GetWorkflowByExternalId(ctx, &kagziv1.GetWorkflowByExternalIdRequest{Namespace: namespace, ExternalId: ref})
	switch status.Code(err) {
	case codes.OK:
		return answer.GetWorkflow().GetRunId(), nil
	case codes.NotFound, codes.InvalidArgument: // what cannot be an external id may still be the beginning of an id
	default:
		return "", err
	}
	head, tail, _ := strings.Cut(strings.ToLower(ref), "…")
	if len(head) < leastPrefix || isRunID(head) || strings.Trim(head, "0123456789abcdef-") != "" {
		return "", status.Errorf(codes.NotFound, "no such run in %q, by id or external id: %q", namespace, ref)
	}
	list, err := api.ListWorkflows(ctx, &kagziv1.ListWorkflowsRequest{Namespace: namespace, Search: &head, Page: &kagziv1.PageRequest{PageSize: findMost}})
	if err != nil {
		return "", err
	}
	var ids []string
	for _, r := range list.GetWorkflows() {
		if strings.HasPrefix(r.GetRunId(), head) && strings.HasSuffix(r.GetRunId(), tail) {
			ids = append(ids, r.GetRunId())
		}
	}
	switch {
	case len(ids) == 0:
		return "", status.Errorf(codes.NotFound, "no such run in %q, by external id or by the beginning of an id: %q", namespace, ref)
	case len(ids) > 1:
		return "", status.Errorf(codes.FailedPrecondition, "%s runs have an id that begins with %q: give more of it, up to %s or %s", manyOf(len(ids)), ref, ids[0], ids[1])
	}
	return ids[0], nil
}

func manyOf(n int) string {
	if n >= findMost {
		return fmt.Sprintf("%d or more", findMost)
	}
	return fmt.Sprint(n)
}

// isRunID says whether text has the form of a run id.
func isRunID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range []byte(text) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if dash != (c == '-') || !dash && !hex {
			return false
		}
	}
	return true
}
