package watch

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

const (
	defaultWatchInterval = 100 * time.Millisecond
	minWatchInterval     = 50 * time.Millisecond
	maxWatchInterval     = 10 * time.Second
	// watchSilence is the longest time without a message, so that watchers can detect a dead
	// connection.
	watchSilence = 5 * time.Second
)

// Watch sends the changes in a namespace: the first change at once, later ones together after an
// interval.
func (s *Service) Watch(request *kagziv1.WatchRequest, stream kagziv1.AdminService_WatchServer) error {
	namespace, err := wire.NamespaceOf(request.Namespace)
	if err != nil {
		return err
	}
	interval, err := watchIntervalOf(request)
	if err != nil {
		return err
	}
	w, leave := s.hub.watch(namespace, interval)
	defer leave()
	send := func(e *kagziv1.WatchEvent) error {
		e.At = timestamppb.New(s.store.Now())
		return stream.Send(e)
	}
	if err := send(&kagziv1.WatchEvent{}); err != nil {
		return err
	}
	silence, pause := time.NewTimer(watchSilence), time.NewTimer(0)
	defer silence.Stop()
	defer pause.Stop()
	wake := w.wake // nil during the pause after a change
	for {
		event := &kagziv1.WatchEvent{}
		select {
		case <-wake:
			told := w.take()
			event, wake = told.event(), nil
			pause.Reset(interval)
		case <-pause.C:
			wake = w.wake
			continue
		case <-silence.C:
		case <-s.stopping:
			return wire.ErrStopping
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
		if err := send(event); err != nil {
			return err
		}
		silence.Reset(watchSilence)
	}
}

func watchIntervalOf(request *kagziv1.WatchRequest) (time.Duration, error) {
	if request.Interval == nil {
		return defaultWatchInterval, nil
	}
	interval, err := wire.DurationOf("interval", request.Interval)
	if err == nil && (interval < minWatchInterval || interval > maxWatchInterval) {
		err = engine.Invalid("interval", "must be between %s and %s, got %s", minWatchInterval,
			maxWatchInterval, interval)
	}
	return interval, err
}
