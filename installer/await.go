package installer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// awaitInterval is between looks at what a service manager does in its own time.
const awaitInterval = 250 * time.Millisecond

var errTooLong = errors.New("not done")

// await looks until done says so, but no longer than limit: then it is errTooLong.
func await(ctx context.Context, limit time.Duration, done func() (bool, error)) error {
	end, look := time.NewTimer(limit), time.NewTicker(awaitInterval)
	defer end.Stop()
	defer look.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-look.C:
		case <-end.C:
			return fmt.Errorf("%w within %s", errTooLong, limit)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
