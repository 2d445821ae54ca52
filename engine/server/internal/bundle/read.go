package bundle

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// What a capsule may hold, unpacked. A file of it is read only as far as its limit, whatever it
// says of its size itself.
const (
	maxCapsuleBytes    = 1 << 30   // in all
	maxCapsuleIndex    = 16 << 20  // of the zip's own directory
	maxCapsuleManifest = 16 << 20  // 10,000 runs
	maxCapsuleRun      = 32 << 20  // a run with its input, output and error
	maxCapsuleList     = 256 << 20 // the steps, or the signals, of a run
	maxCapsuleItems    = 1_000_000 // steps and signals in all
)

// capsule is a capsule that is being read.
type capsule struct {
	files map[string]*zip.File
	left  int64 // of maxCapsuleBytes
	items int   // of maxCapsuleItems
}

// capsuleOf is a run of a capsule as its files tell it, with the ids that it has there.
type capsuleOf struct {
	directory string
	engine.ImportedRun
}

// readCapsule reads and validates the runs of a capsule, in the order of its manifest.
func readCapsule(ctx context.Context, file io.ReaderAt, size int64) ([]capsuleOf, error) {
	c, err := openCapsule(file, size)
	if err != nil {
		return nil, err
	}
	m, err := c.manifest()
	if err != nil {
		return nil, inFile(ManifestFile, err)
	}
	runs := make([]capsuleOf, len(m.Runs))
	for i, r := range m.Runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		runs[i].directory = r.Directory + "/"
		if err := c.readRun(r.RunID, &runs[i]); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// budget stops a reader that reads too much.
type budget struct {
	from io.ReaderAt
	left int
	off  bool
}

var errBudget = errors.New("the directory is too large")

func (b *budget) ReadAt(p []byte, at int64) (int, error) {
	if b.left -= len(p); b.left < 0 && !b.off {
		return 0, errBudget
	}
	return b.from.ReadAt(p, at)
}

func openCapsule(file io.ReaderAt, size int64) (*capsule, error) {
	index := &budget{from: file, left: maxCapsuleIndex}
	archive, err := zip.NewReader(index, size)
	if errors.Is(err, errBudget) {
		return nil, engine.TooLarge("data", "has a directory of more than %d bytes", maxCapsuleIndex)
	}
	if err != nil {
		return nil, engine.Invalid("data", "is not a zip file")
	}
	index.off = true
	c := &capsule{files: make(map[string]*zip.File, len(archive.File)), left: maxCapsuleBytes, items: maxCapsuleItems}
	for _, f := range archive.File {
		if c.files[f.Name] != nil {
			return nil, engine.Invalid("data", "has two files named %.100q", f.Name)
		}
		c.files[f.Name] = f
	}
	return c, nil
}

// open begins to read a file of at most limit bytes.
func (c *capsule) open(name string, limit int64) (io.Reader, error) {
	f := c.files[name]
	if f == nil {
		return nil, engine.Invalid("data", "is missing")
	}
	content, err := f.Open()
	if err != nil {
		return nil, errDamaged
	}
	return &bounded{capsule: c, from: content, left: limit}, nil
}

var (
	errDamaged = engine.Invalid("data", "is damaged")
	errTooLong = engine.TooLarge("data", "is longer than is allowed, unpacked")
)

// bounded reads a file as far as its own limit and that of the capsule allow.
type bounded struct {
	capsule *capsule
	from    io.Reader
	left    int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.left -= int64(n)
	b.capsule.left -= int64(n)
	if b.left < 0 || b.capsule.left < 0 {
		return 0, errTooLong
	}
	if err != nil && err != io.EOF {
		err = errDamaged
	}
	return n, err
}

func (c *capsule) read(name string, limit int64) ([]byte, error) {
	r, err := c.open(name, limit)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func (c *capsule) manifest() (*Manifest, error) {
	text, err := c.read(ManifestFile, maxCapsuleManifest)
	if err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, engine.Invalid("data", "is not the manifest of a capsule")
	}
	switch {
	case m.Format != capsuleFormat:
		return nil, engine.Invalid("format", "must be %q, got %.40q", capsuleFormat, m.Format)
	case m.Version != capsuleVersion:
		return nil, engine.Invalid("version", "is %d; this server reads version %d", m.Version, capsuleVersion)
	case m.Redacted:
		return nil,
			engine.Invalid("redacted",
				"is true: a capsule without its payloads can be read, but not be run; export it again with them")
	case len(m.Runs) == 0 || len(m.Runs) > maxCapsuleRuns:
		return nil, engine.Invalid("runs", "must be 1 to %d, got %d", maxCapsuleRuns, len(m.Runs))
	case m.Runs[0].RunID != m.RootRunID:
		return nil, engine.Invalid("root_run_id", "must be the first of the runs")
	}
	seen := map[string]bool{}
	for i, r := range m.Runs {
		id, err := engine.ParseID(r.RunID)
		switch {
		case err != nil || id.String() != r.RunID:
			return nil, engine.Invalid(fmt.Sprintf("runs[%d].run_id", i),
				"must be a UUID in lower case, got %.64q", r.RunID)
		case seen[r.RunID]:
			return nil, engine.Invalid(fmt.Sprintf("runs[%d].run_id", i), "is there twice")
		case r.Directory != capsuleRuns+r.RunID:
			return nil, engine.Invalid(fmt.Sprintf("runs[%d].directory", i), "must be %s%s", capsuleRuns, r.RunID)
		}
		seen[r.RunID] = true
	}
	return &m, nil
}

// readRun reads the files of one run.
func (c *capsule) readRun(id string, to *capsuleOf) error {
	text, err := c.read(to.directory+capsuleRun, maxCapsuleRun)
	if err != nil {
		return inFile(to.directory+capsuleRun, err)
	}
	var w kagziv1.Workflow
	if err := fromJSON(text, &w); err != nil {
		return inFile(to.directory+capsuleRun, err)
	}
	if w.RunId != id {
		return inFile(to.directory+capsuleRun, engine.Invalid("run_id", "must be that of the manifest"))
	}
	if to.Run, err = importedRunOf(&w); err != nil {
		return inFile(to.directory+capsuleRun, err)
	}
	if to.Steps, err = readList(c, to.directory+capsuleSteps, func() *kagziv1.Step {
		return &kagziv1.Step{}
	}, importedStepOf); err != nil {
		return err
	}
	if to.Signals, err = readList(c, to.directory+capsuleSignals, func() *kagziv1.Signal {
		return &kagziv1.Signal{}
	}, importedSignalOf); err != nil {
		return err
	}
	return nil
}

// readList reads a file that is a JSON array, one message after another.
func readList[M proto.Message, T any](c *capsule, name string, empty func() M,
	convert func(M) (T, error)) ([]T, error) {
	r, err := c.open(name, maxCapsuleList)
	if err != nil {
		return nil, inFile(name, err)
	}
	var list []T
	d := json.NewDecoder(r)
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, inFile(name, notJSON(err, "an array"))
	}
	for d.More() {
		place := fmt.Sprintf("%s[%d]", name, len(list))
		if c.items--; c.items < 0 {
			return nil, inFile(place, engine.TooLarge(
				"data", "is one too many: a capsule holds at most %d steps and signals", maxCapsuleItems))
		}
		var text json.RawMessage
		if err := d.Decode(&text); err != nil {
			return nil, inFile(place, notJSON(err, "JSON"))
		}
		m := empty()
		if err := fromJSON(text, m); err != nil {
			return nil, inFile(place, err)
		}
		item, err := convert(m)
		if err != nil {
			return nil, inFile(place, err)
		}
		list = append(list, item)
	}
	if _, err := d.Token(); err != nil {
		return nil, inFile(name, notJSON(err, "a whole array"))
	}
	if _, err := io.Copy(io.Discard, r); err != nil { // to the end, where the checksum is compared
		return nil, inFile(name, err)
	}
	return list, nil
}

// notJSON is why a text could not be read: the capsule's own limit, or what the text is not.
func notJSON(err error, what string) error {
	if engine.KindOf(err) != engine.KindInternal {
		return err
	}
	return engine.Invalid("data", "is not %s", what)
}

// fromJSON lets a newer server say more than this one knows.
func fromJSON(text []byte, m proto.Message) error {
	err := protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, m)
	if err != nil {
		// which protobuf puts there to keep texts from being compared
		reason := strings.ReplaceAll(err.Error(), "\u00a0", " ")
		return engine.Invalid("data", "is not the JSON of a %s: %.200q", m.ProtoReflect().Descriptor().Name(), reason)
	}
	return nil
}

// inFile is an error about the content of one of a capsule's files. The name is one that a manifest may hold.
func inFile(name string, err error) error {
	e, ok := errors.AsType[*engine.Error](err)
	if !ok {
		return err
	}
	inner := *e
	inner.Field, inner.Message = "data", "data: "+name+": "+strings.TrimPrefix(e.Message, "data: ")
	return &inner
}
