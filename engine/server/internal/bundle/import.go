package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// Importer imports capsules. It unpacks one capsule at a time, so that several large ones do not
// fill the memory.
type Importer struct {
	store    Importing
	stopping <-chan struct{}
	one      chan struct{} // semaphore of capacity one
}

// Importing is the part of a store that an Importer needs.
type Importing interface {
	ImportRuns(context.Context, engine.ImportRunsParams) (engine.Started, error)
	Now() time.Time
}

// NewImporter returns an Importer that refuses capsules once stopping is closed.
func NewImporter(store Importing, stopping <-chan struct{}) *Importer {
	return &Importer{store: store, stopping: stopping, one: make(chan struct{}, 1)}
}

// Import makes the runs of a capsule under new ids, all or none. Open runs are imported paused.
// first is the stream's first message. p says who imports it and where; Import sets p.Runs.
func (i *Importer) Import(ctx context.Context, first *kagziv1.Capsule, stream Stream,
	p *engine.ImportRunsParams) (engine.Started, error) {
	file, size, err := receiveCapsule(first, stream)
	if err != nil {
		return engine.Started{}, err
	}
	defer discard(file)
	return i.importFile(ctx, file, size, p)
}

// Stream receives a capsule in parts; its end is io.EOF.
type Stream interface {
	Recv() (*kagziv1.Capsule, error)
}

func (i *Importer) importFile(ctx context.Context, file io.ReaderAt, size int64,
	p *engine.ImportRunsParams) (engine.Started, error) {
	select {
	case i.one <- struct{}{}:
		defer func() { <-i.one }()
	case <-i.stopping:
		return engine.Started{}, wire.ErrStopping
	case <-ctx.Done():
		return engine.Started{}, ctx.Err()
	}
	p.Now = i.store.Now()
	p.AuditID = engine.NewID(p.Now)
	runs, err := readCapsule(ctx, file, size)
	if err != nil {
		return engine.Started{}, err
	}
	if p.Runs, err = resettle(runs, p.Namespace, p.Now); err != nil {
		return engine.Started{}, err
	}
	return i.store.ImportRuns(ctx, *p)
}

// receiveCapsule writes the stream to a temporary file, because a zip is read from its end.
func receiveCapsule(first *kagziv1.Capsule, stream Stream) (*os.File, int64, error) {
	file, err := os.CreateTemp("", "kagzi-capsule-*")
	if err != nil {
		return nil, 0, fmt.Errorf("keep a capsule: %w", err)
	}
	size := int64(0)
	for part := first; err == nil; part, err = stream.Recv() {
		if size += int64(len(part.Data)); size > engine.MaxCapsule {
			err = engine.TooLarge("data", "is longer than the %d bytes that are allowed", engine.MaxCapsule)
			break
		}
		if _, err = file.Write(part.Data); err != nil {
			err = fmt.Errorf("keep a capsule: %w", err)
			break
		}
	}
	if !errors.Is(err, io.EOF) {
		discard(file)
		return nil, 0, err
	}
	return file, size, nil
}

// discard deletes a temporary file. If that fails, the operating system has to clean up.
func discard(file *os.File) {
	file.Close()
	os.Remove(file.Name())
}
