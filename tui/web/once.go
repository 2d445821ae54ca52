package web

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/tui/model"
)

const (
	mostDeeds = 1000             // that are remembered
	deedFor   = 10 * time.Minute // how long at least, unless there are more
)

// once lets the form with one request id act once: a double click and a reload get the outcome of the
// first. Between servers the API's own request ids do the same.
type once struct {
	mu    sync.Mutex
	deeds map[string]*deed // by request id
	order []string
}

// deed is an action that was asked for, and its outcome.
type deed struct {
	owner  [sha256.Size]byte // whose it is
	title  string            // "Cancel the run order-7"
	back   string            // the page it came from
	at     time.Time
	over   chan struct{}  // closed at the end
	result []model.Result // after the end
	err    error          // after the end: nothing was done

	mu            sync.Mutex
	matched, done int64 // of a bulk action, so far
	refused       int64
	last          string // the last failure of a bulk action
}

func ownerOf(cookie string) [sha256.Size]byte { return sha256.Sum256([]byte(cookie)) }

// begin returns the deed of a request id; first reports that the caller is to do it.
func (o *once) begin(id uuid.UUID, d *deed) (known *deed, first bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := id.String()
	if known = o.deeds[key]; known != nil {
		if known.owner != d.owner {
			return nil, false, errForm
		}
		if !known.failed() {
			return known, false, nil
		}
		o.deeds[key] = d // nothing was done, so it may be tried again
		return d, true, nil
	}
	for len(o.order) > 0 {
		oldest := o.deeds[o.order[0]]
		if len(o.order) < mostDeeds && d.at.Sub(oldest.at) < deedFor || !oldest.ended() {
			break
		}
		delete(o.deeds, o.order[0])
		o.order = o.order[1:]
	}
	if len(o.order) >= mostDeeds {
		return nil, false, status.Error(codes.ResourceExhausted, "too many actions are running: try again later")
	}
	o.deeds[key] = d
	o.order = append(o.order, key)
	return d, true, nil
}

// find returns a deed of an owner; nil if it is not known here.
func (o *once) find(key string, owner [sha256.Size]byte) *deed {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d := o.deeds[key]; d != nil && d.owner == owner {
		return d
	}
	return nil
}

// failed reports whether a deed is over and has done nothing.
func (d *deed) failed() bool {
	return d.ended() && (d.err != nil || len(d.result) > 0 && !slices.ContainsFunc(d.result,
		func(r model.Result) bool { return r.Err == nil }))
}

func (d *deed) ended() bool {
	select {
	case <-d.over:
		return true
	default:
		return false
	}
}

// doOnce does what a form asks for, unless it was done. It goes on when the browser goes away, and
// returns when it is over or ctx ends.
func (p *page) doOnce(title, back string, most time.Duration, do func(context.Context, *deed)) (string, *deed, error) {
	id, err := uuid.Parse(p.r.PostForm.Get("request"))
	if err != nil {
		return "", nil, status.Error(codes.InvalidArgument, "the form has no request id: reload the page")
	}
	d, first, err := p.once.begin(id, &deed{owner: ownerOf(p.cookie), title: title, back: back, at: time.Now(),
		over: make(chan struct{})})
	if err != nil {
		return "", nil, err
	}
	if first {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), most)
		go func() {
			defer close(d.over)
			defer cancel()
			do(ctx, d)
		}()
	}
	select {
	case <-d.over:
	case <-p.ctx.Done():
	case <-time.After(callTime):
	}
	return id.String(), d, nil
}
