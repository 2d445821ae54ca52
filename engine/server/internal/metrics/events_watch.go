package metrics

import (
	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/async"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// defaultTail is how many past events WatchEvents sends by default.
const defaultTail = 200

// Watch sends the latest events and then new ones. A slow reader misses some, and can tell by the
// gap in their sequence. If this server has no event with request.After, or another one, the
// sequence is from before its start and is ignored.
func (e *Events) Watch(request *kagziv1.WatchEventsRequest, stream kagziv1.AdminService_WatchEventsServer,
	stopping <-chan struct{}) error {
	after, tail := request.After, int(request.Tail)
	switch {
	case after < 0:
		return engine.Invalid("after", "must not be negative, got %d", after)
	case tail < 0 || tail > keptEvents:
		return engine.Invalid("tail", "must be between 0 (which means %d) and %d, got %d", defaultTail,
			keptEvents, tail)
	case tail == 0:
		tail = defaultTail
	}
	if _, err := wire.TimeOf("after_at", request.AfterAt); err != nil {
		return err
	}
	wake, leave := e.follow()
	defer leave()
	if after > e.newest() || request.AfterAt != nil && !e.mayBe(after, request.AfterAt) {
		after = 0
	}
	for {
		events := e.Past(after, tail)
		for _, event := range events {
			if err := stream.Send(event); err != nil {
				return err
			}
			after = event.Sequence
		}
		tail = keptEvents // from now on, all events
		if len(events) > 0 {
			continue
		}
		if err := async.Await(stream.Context(), stopping, wake); err != nil {
			return err
		}
	}
}
