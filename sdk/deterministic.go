package kagzi

import (
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Now returns the time by the server's clock, in UTC. It is recorded, so replays see the same; each call is one durable write.
func Now(ctx Context) time.Time {
	b := ctx.workflow()
	return record(b, "kagzi:now", func() time.Time { return b.e.now().UTC() })
}

// Random returns the branch's source of random numbers. Its seed is recorded at the first use, so replays draw the
// same numbers. It must not be shared between goroutines.
func Random(ctx Context) *rand.Rand {
	b := ctx.workflow()
	b.seed("Random")
	return b.random
}

// NewUUID returns a random UUID (version 4) that is the same in every replay.
func NewUUID(ctx Context) uuid.UUID {
	b := ctx.workflow()
	b.seed("NewUUID")
	var id uuid.UUID
	_, _ = b.uuids.Read(id[:]) // never fails
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// seed is recorded and not derived from the run's id: a run that is retried under a new id keeps the results of its
// steps, and has to keep what its code drew beside them.
func (b *branch) seed(what string) {
	b.enterOutsideSteps(what)
	if b.random != nil {
		return
	}
	s := record(b, "kagzi:seed", func() []byte {
		s := make([]byte, 64)
		_, _ = crand.Read(s) // never fails
		return s
	})
	var seeds [2][32]byte
	copy(seeds[0][:], s)
	copy(seeds[1][:], s[min(32, len(s)):])
	b.random, b.uuids = rand.New(rand.NewChaCha8(seeds[0])), rand.NewChaCha8(seeds[1])
}

// record is a step whose value the SDK makes itself, on the spot. A cancellation does not end it, so that it is recorded like what cleans up, whatever its
// Context: code that has looked at that, and begins with the time, has to find it ended in every replay too.
func record[T any](b *branch, name string, value func() T) T {
	if path := b.path(); path != "" {
		name += "/" + path
	}
	e := b.e
	name, recorded := b.claim(e.grace, name, kagziv1.StepKind_STEP_KIND_FUNCTION)
	defer b.release(name)
	info := e.payloadInfo(PayloadStep, name)
	if recorded.GetStatus() == kagziv1.StepStatus_STEP_STATUS_COMPLETED {
		v, err := decode[T](e.w.options.Codec, recorded.GetOutput(), info)
		if err != nil {
			e.failAndExit(unreadableResult(name, err))
		}
		return *v
	}
	if e.replay != nil {
		b.halt()
	}
	v, now := value(), time.Now()
	p, err := encode(e.w.options.Codec, v, info)
	if err != nil {
		e.failAndExit(fmt.Errorf("step %s: %w", name, err))
	}
	e.post(completeStep(e, name, p, now))
	return v
}
