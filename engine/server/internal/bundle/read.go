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

// Limits of an unpacked capsule, in bytes or items. A file is read only up to its limit, whatever
// size it declares.
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
	left  int64 // bytes left of maxCapsuleBytes
	items int   // items read, at most maxCapsuleItems
}

// capsuleOf is a run of a capsule as it was exported, with its old ids.
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

// budget limits how much is read through a reader.
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

// open opens a file for reading at most limit bytes.
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
	errTooLong = engine.TooLarge("data", "is longer than allowed after unpacking")
)

// bounded reads a file up to its own limit and that of the capsule.
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
				"is true: a capsule without payloads cannot be imported; export it again with payloads")
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
			return nil, engine.Invalid(fmt.Sprintf("runs[%d].run_id", i), "appears twice")
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

// readList reads a file with a JSON array, one message after another.
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
				"data", "has too many items: a capsule may hold at most %d steps and signals", maxCapsuleItems))
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
	if _, err := io.Copy(io.Discard, r); err != nil { // the checksum is checked at the end
		return nil, inFile(name, err)
	}
	return list, nil
}

// notJSON returns the error for text that could not be decoded: that of a limit, or that it is not
// JSON.
func notJSON(err error, what string) error {
	if engine.KindOf(err) != engine.KindInternal {
		return err
	}
	return engine.Invalid("data", "is not %s", what)
}

// fromJSON decodes a message. It ignores unknown fields, which a newer server may have written.
func fromJSON(text []byte, m proto.Message) error {
	err := protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, m)
	if err != nil {
		// protobuf adds these to keep programs from comparing the text
		reason := strings.ReplaceAll(err.Error(), "\u00a0", " ")
		return engine.Invalid("data", "is not the JSON of a %s: %.200q", m.ProtoReflect().Descriptor().Name(), reason)
	}
	return nil
}

// inFile returns err with the name of a capsule's file as its field.
func inFile(name string, err error) error {
	e, ok := errors.AsType[*engine.Error](err)
	if !ok {
		return err
	}
	inner := *e
	inner.Field, inner.Message = "data", "data: "+name+": "+strings.TrimPrefix(e.Message, "data: ")
	return &inner
}
