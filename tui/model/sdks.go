package model

import (
	"context"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/render"
)

// sdksMost limits the workers that are asked about.
const sdksMost = 64

// SDKs knows the languages of workers and the versions of their SDKs. It asks about each worker once.
type SDKs struct {
	base
	known map[string]string // raw text by worker id; empty while it is asked
}

// NewSDKs returns an SDKs that knows no worker yet.
func NewSDKs(l *Link) *SDKs {
	s := &SDKs{known: map[string]string{}}
	s.base = join(l, func(Change) {})
	return s
}

// Of returns the SDK of a worker, like "python 0.1.0"; empty while it is not known, and for a worker
// that does not say it. Changed is called when it has become known.
func (s *SDKs) Of(worker string) string {
	sdk, asked := s.known[worker]
	if asked || worker == "" || len(s.known) >= sdksMost || !s.link.Ready() {
		return sdk
	}
	s.known[worker] = ""
	ask(s.tasks, func(ctx context.Context) (*kagziv1.GetWorkerResponse, error) {
		return s.link.api.GetWorker(ctx, &kagziv1.GetWorkerRequest{WorkerId: worker})
	}, func(answer *kagziv1.GetWorkerResponse, err error) {
		if err != nil {
			return // the timeline says which worker it was without that, too
		}
		if s.known[worker] = render.SDK(answer.GetWorker()); s.known[worker] != "" {
			s.change()
		}
	})
	return ""
}
