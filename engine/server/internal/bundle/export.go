package bundle

import (
	"archive/zip"
	"bufio"
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
)

const (
	ChunkBytes  = 64 << 10 // bytes of a capsule in one message
	capsulePage = 100      // steps per read, with their payloads
)

// Reader is the part of a store that an export reads.
type Reader interface {
	GetRun(ctx context.Context, namespace string, id engine.ID) (engine.Run, error)
	ListRuns(context.Context, engine.RunFilter, engine.Page) ([]engine.Run, engine.PageInfo, error)
	ListSteps(ctx context.Context, namespace string, run engine.ID, f engine.StepFilter, page engine.Page) (
		[]engine.Step, engine.PageInfo, error)
	ListSignals(ctx context.Context, namespace string, run engine.ID, page engine.Page) ([]engine.Signal,
		engine.PageInfo, error)
	ListAuditEvents(context.Context, engine.AuditFilter, engine.Page) ([]engine.AuditEvent, engine.PageInfo, error)
}

// ExportParams says what to export.
type ExportParams struct {
	Namespace string
	Run       engine.ID
	Redact    bool      // replace payloads by their sizes and hashes
	At        time.Time // of the export
	Version   string    // of the program
}

// Export writes a capsule of a run, its children and the runs that these continued as. Each part is
// in the state of its own reading: no transaction stays open while the caller reads. All runs are
// found before anything is written.
func Export(ctx context.Context, store Reader, p ExportParams, to io.Writer) error {
	x := export{ctx: ctx, store: store, namespace: p.Namespace, redacted: p.Redact, at: p.At, most: maxCapsuleRuns}
	if err := x.gather(p.Run); err != nil {
		return err
	}
	out := bufio.NewWriterSize(to, ChunkBytes)
	x.zip = zip.NewWriter(out)
	if err := x.write(p.Version); err != nil {
		return err
	}
	if err := x.zip.Close(); err != nil {
		return err
	}
	return out.Flush()
}

// export is the state of one export.
type export struct {
	ctx       context.Context // of the call
	store     Reader
	namespace string
	redacted  bool
	at        time.Time
	most      int // limit of runs
	runs      []ManifestRun
	ids       []engine.ID
	zip       *zip.Writer
}

// gather finds the runs of the capsule: each before its children and the run it continued as.
func (x *export) gather(root engine.ID) error {
	run, err := x.store.GetRun(x.ctx, x.namespace, root)
	if err != nil {
		return err
	}
	seen := map[engine.ID]bool{root: true}
	runs := []engine.Run{run}
	for i := 0; i < len(runs); i++ {
		next, err := x.children(runs[i].ID)
		if err != nil {
			return err
		}
		if id := runs[i].ContinuedAs; !id.IsZero() && !seen[id] {
			run, err := x.store.GetRun(x.ctx, x.namespace, id)
			switch {
			case err == nil:
				next = append(next, run)
			case engine.KindOf(err) != engine.KindNotFound: // runs deleted by retention are left out
				return err
			}
		}
		for _, run := range next {
			if seen[run.ID] {
				continue
			}
			if len(runs) == x.most {
				return engine.TooLarge("run_id", "has more than %d runs below it, too many for one capsule", x.most)
			}
			seen[run.ID] = true
			run.Input, run.Output = engine.Payload{}, engine.Payload{}
			runs = append(runs, run)
		}
	}
	for i := range runs {
		r := &runs[i]
		x.ids = append(x.ids, r.ID)
		x.runs = append(x.runs, ManifestRun{
			RunID: r.ID.String(), WorkflowType: r.Type, Status: r.Status.String(), ParentRunID: r.ParentRunID.String(),
			Directory: capsuleRuns + r.ID.String(),
		})
	}
	return nil
}

// children returns a run's children in the order in which they were started.
func (x *export) children(parent engine.ID) ([]engine.Run, error) {
	var all []engine.Run
	page := engine.Page{Limit: engine.MaxPage}
	for {
		runs, info, err := x.store.ListRuns(x.ctx, engine.RunFilter{Namespace: x.namespace, ParentRunID: parent}, page)
		if err != nil {
			return nil, err
		}
		all = append(all, runs...)
		if !info.HasNext || len(all) > x.most { // more than the limit: gather refuses them
			slices.Reverse(all)
			return all, nil
		}
		page.After = &engine.Cursor{ID: runs[len(runs)-1].ID}
	}
}

func (x *export) write(version string) error {
	text, err := json.MarshalIndent(Manifest{
		Format: capsuleFormat, Version: capsuleVersion, KagziVersion: version, ExportedAt: x.at, Namespace: x.namespace,
		RootRunID: x.runs[0].RunID, Redacted: x.redacted, Runs: x.runs,
	}, "", "  ")
	if err != nil {
		return err
	}
	entry, err := x.entry(ManifestFile)
	if err != nil {
		return err
	}
	if _, err := entry.Write(text); err != nil {
		return err
	}
	for i, run := range x.runs {
		err := x.writeRun(run.Directory+"/", x.ids[i])
		if engine.KindOf(err) == engine.KindNotFound {
			return errDeletedMeanwhile
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errDeletedMeanwhile ends an export if retention deleted a run that is already in the manifest.
// Another export leaves that run out.
var errDeletedMeanwhile = &engine.Error{Kind: engine.KindUnavailable,
	Message: "retention deleted a run while it was exported; try again"}

func (x *export) entry(name string) (io.Writer, error) {
	return x.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: x.at})
}

func (x *export) writeRun(directory string, id engine.ID) error {
	run, err := x.store.GetRun(x.ctx, x.namespace, id)
	if err != nil {
		return err
	}
	if x.redacted {
		redact(&run.Input)
		redact(&run.Output)
	}
	text, err := toJSON(wire.RunTo(&run))
	if err != nil {
		return err
	}
	entry, err := x.entry(directory + capsuleRun)
	if err != nil {
		return err
	}
	if _, err := entry.Write(text); err != nil {
		return err
	}
	if err := writeArray(x, directory+capsuleSteps, x.stepsOf(id)); err != nil {
		return err
	}
	if err := writeArray(x, directory+capsuleSignals, x.signalsOf(id)); err != nil {
		return err
	}
	return writeArray(x, directory+capsuleAudit, x.auditOf(id))
}

// reader reads one page of a list: the items after a cursor, the cursor of the last one, and
// whether there are more.
type reader func(after *engine.Cursor) (messages []proto.Message, last engine.Cursor, more bool, err error)

// writeArray writes a list as a JSON array, with at most one page in memory.
func writeArray(x *export, name string, read reader) error {
	entry, err := x.entry(name)
	if err != nil {
		return err
	}
	before := "[\n"
	var after *engine.Cursor
	for more := true; more; {
		var messages []proto.Message
		var last engine.Cursor
		if messages, last, more, err = read(after); err != nil {
			return err
		}
		after = &last
		for _, m := range messages {
			text, err := toJSON(m)
			if err != nil {
				return err
			}
			if _, err := entry.Write(append([]byte(before), text...)); err != nil {
				return err
			}
			before = ",\n"
		}
	}
	if before == "[\n" {
		_, err = io.WriteString(entry, "[]\n")
		return err
	}
	_, err = io.WriteString(entry, "\n]\n")
	return err
}

func (x *export) stepsOf(id engine.ID) reader {
	return func(after *engine.Cursor) ([]proto.Message, engine.Cursor, bool, error) {
		steps, info, err := x.store.ListSteps(x.ctx, x.namespace, id, engine.StepFilter{},
			engine.Page{Limit: capsulePage, After: after})
		var last engine.Cursor
		messages := make([]proto.Message, len(steps))
		for i := range steps {
			last = wire.StepCursor(&steps[i])
			if x.redacted {
				redact(&steps[i].Input)
				redact(&steps[i].Output)
			}
			messages[i] = wire.StepWithPlaceTo(x.namespace, &steps[i])
		}
		return messages, last, info.HasNext && len(steps) > 0, err
	}
}

func (x *export) signalsOf(id engine.ID) reader {
	return func(after *engine.Cursor) ([]proto.Message, engine.Cursor, bool, error) {
		signals, info, err := x.store.ListSignals(x.ctx, x.namespace, id, engine.Page{Limit: capsulePage, After: after})
		var last engine.Cursor
		messages := make([]proto.Message, len(signals))
		for i := range signals {
			last = engine.Cursor{Number: signals[i].Sequence}
			if x.redacted {
				redact(&signals[i].Payload)
			}
			messages[i] = wire.SignalTo(&signals[i])
		}
		return messages, last, info.HasNext && len(signals) > 0, err
	}
}

func (x *export) auditOf(id engine.ID) reader {
	return func(after *engine.Cursor) ([]proto.Message, engine.Cursor, bool, error) {
		filter := engine.AuditFilter{Namespace: x.namespace, SubjectID: id.String()}
		events, info, err := x.store.ListAuditEvents(x.ctx, filter, engine.Page{Limit: engine.MaxPage, After: after})
		var last engine.Cursor
		messages := make([]proto.Message, len(events))
		for i := range events {
			last = engine.Cursor{ID: events[i].ID}
			messages[i] = wire.AuditTo(&events[i])
		}
		return messages, last, info.HasNext && len(events) > 0, err
	}
}
