package kagzi

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/google/uuid"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const (
	capsuleFormat   = "kagzi-capsule"
	capsuleVersion  = 1
	capsuleManifest = "manifest.json"

	maxCapsuleBytes    = 1 << 30 // of all entries, unpacked
	maxCapsuleManifest = 8 << 20 // of the manifest, unpacked
	maxCapsuleRuns     = 10_001  // a run and its children
	maxCapsuleEntries  = 1 + 8*maxCapsuleRuns
)

// Capsule is a run that was exported, with its children, open for reading. Nothing of it is written to disk, and what it
// holds is bounded: 1 GiB unpacked, 10,001 runs.
type Capsule struct {
	file     *os.File // nil when the capsule was not opened by its name
	entries  map[string]*zip.File
	manifest manifest
}

// manifest is manifest.json, as it is written.
type manifest struct {
	Format       string        `json:"format"`
	Version      int           `json:"version"`
	KagziVersion string        `json:"kagzi_version"`
	ExportedAt   time.Time     `json:"exported_at"`
	Namespace    string        `json:"namespace"`
	RootRunID    string        `json:"root_run_id"`
	Redacted     bool          `json:"redacted"`
	Runs         []manifestRun `json:"runs"`
}

type manifestRun struct {
	RunID        string `json:"run_id"`
	WorkflowType string `json:"workflow_type"`
	Status       string `json:"status"`
	ParentRunID  string `json:"parent_run_id"`
	Directory    string `json:"directory"`
}

// OpenCapsule opens a file that Run.Export, or "kagzi workflow export", has written. Close it after use.
func OpenCapsule(file string) (*Capsule, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("kagzi: capsule: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		var c *Capsule
		if c, err = readCapsule(f, info.Size()); err == nil {
			c.file = f
			return c, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("kagzi: capsule %q: %w", file, err), f.Close())
}

// Close closes the file.
func (c *Capsule) Close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// CapsuleRun is one of the runs of a capsule.
type CapsuleRun struct {
	RunID        string
	WorkflowType string
	Status       Status // as it stood at the export
	ParentRunID  string
}

// Runs are the capsule's runs: first the one that was exported, and each child after its parent.
func (c *Capsule) Runs() []CapsuleRun {
	runs := make([]CapsuleRun, len(c.manifest.Runs))
	for i, r := range c.manifest.Runs {
		runs[i] = CapsuleRun{r.RunID, r.WorkflowType, Status(strings.TrimPrefix(r.Status, statusPrefix)), r.ParentRunID}
	}
	return runs
}

// Redacted reports a capsule of whose payloads only the sizes and hashes are there.
func (c *Capsule) Redacted() bool { return c.manifest.Redacted }

// readCapsule reads the manifest and checks the frame: the names, the sizes, who is whose child.
func readCapsule(r io.ReaderAt, size int64) (*Capsule, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not a capsule: %w", err)
	}
	if len(z.File) > maxCapsuleEntries {
		return nil, fmt.Errorf("%d entries are more than the limit of %d", len(z.File), maxCapsuleEntries)
	}
	c := &Capsule{entries: make(map[string]*zip.File, len(z.File))}
	left := uint64(maxCapsuleBytes)
	for _, f := range z.File {
		if err := checkEntry(f.Name); err != nil {
			return nil, err
		}
		if c.entries[f.Name] != nil {
			return nil, fmt.Errorf("two entries are named %q", f.Name)
		}
		if f.UncompressedSize64 > left {
			return nil, fmt.Errorf("more than the limit of %d bytes unpacked", maxCapsuleBytes)
		}
		left -= f.UncompressedSize64
		c.entries[f.Name] = f
	}
	data, err := c.read(capsuleManifest, maxCapsuleManifest)
	if err != nil {
		return nil, fmt.Errorf("not a capsule: %w", err)
	}
	if err := json.Unmarshal(data, &c.manifest); err != nil {
		return nil, fmt.Errorf("not a capsule: %s: %w", capsuleManifest, err)
	}
	return c, c.manifest.check()
}

// checkEntry holds names to plain relative paths. Nothing is unpacked to disk here, but a file that tries is no capsule of ours.
func checkEntry(name string) error {
	name = strings.TrimSuffix(name, "/") // of a folder
	if name == "" || len(name) > 512 || path.IsAbs(name) || path.Clean(name) != name || strings.HasPrefix(name, "..") ||
		strings.ContainsAny(name, "\\:\x00") {
		return fmt.Errorf("an entry has the name %.100q, want a plain relative path", name)
	}
	return nil
}

func (m *manifest) check() error {
	switch {
	case m.Format != capsuleFormat:
		return fmt.Errorf("not a capsule: the manifest's format is %.40q, want %q", m.Format, capsuleFormat)
	case m.Version > capsuleVersion:
		return fmt.Errorf("version %d was written by a newer Kagzi (%.40q); this one reads version %d", m.Version, m.KagziVersion, capsuleVersion)
	case m.Version != capsuleVersion:
		return fmt.Errorf("the manifest's version is %d, want %d", m.Version, capsuleVersion)
	case len(m.Runs) == 0 || len(m.Runs) > maxCapsuleRuns:
		return fmt.Errorf("%d runs, want 1 to %d", len(m.Runs), maxCapsuleRuns)
	case m.Runs[0].RunID != m.RootRunID:
		return fmt.Errorf("the first run is %.40q, want root_run_id %.40q", m.Runs[0].RunID, m.RootRunID)
	}
	there, seen := make(map[string]bool, len(m.Runs)), make(map[string]bool, len(m.Runs))
	for _, r := range m.Runs {
		there[r.RunID] = true
	}
	for i, r := range m.Runs {
		switch {
		case uuid.Validate(r.RunID) != nil || len(r.RunID) != 36:
			return fmt.Errorf("run %d has the id %.40q, want a UUID", i, r.RunID)
		case seen[r.RunID]:
			return fmt.Errorf("run %s is there twice", r.RunID)
		case r.Directory != "runs/"+r.RunID:
			return fmt.Errorf("run %s has the directory %.100q, want runs/%s", r.RunID, r.Directory, r.RunID)
		case there[r.ParentRunID] && !seen[r.ParentRunID]: // one that is not there at all is the root's own
			return fmt.Errorf("run %s stands before its parent %.40q", r.RunID, r.ParentRunID)
		}
		seen[r.RunID] = true
	}
	return nil
}

// load reads one run and the latest attempt of each of its steps.
func (c *Capsule) load(runID string) (*runRecord, error) {
	i := 0
	for runID != "" && i < len(c.manifest.Runs) && c.manifest.Runs[i].RunID != runID {
		i++
	}
	if i == len(c.manifest.Runs) {
		return nil, fmt.Errorf("no run %.40q in the capsule", runID)
	}
	directory := c.manifest.Runs[i].Directory
	data, err := c.read(directory+"/run.json", maxCapsuleBytes)
	if err != nil {
		return nil, err
	}
	run := new(kagziv1.Workflow)
	if err := unmarshal.Unmarshal(data, run); err != nil {
		return nil, fmt.Errorf("%s/run.json: %w", directory, err)
	}
	if run.GetRunId() != c.manifest.Runs[i].RunID {
		return nil, fmt.Errorf("%s/run.json is about run %.40q", directory, run.GetRunId())
	}
	steps, err := readArray(c, directory+"/steps.json", func() *kagziv1.Step { return new(kagziv1.Step) })
	if err != nil {
		return nil, err
	}
	return newRecord(run, steps), nil
}

// unmarshal lets a newer server say more than this SDK knows.
var unmarshal = protojson.UnmarshalOptions{DiscardUnknown: true}

// readArray reads an entry that is a JSON array of messages.
func readArray[M proto.Message](c *Capsule, name string, empty func() M) ([]M, error) {
	data, err := c.read(name, maxCapsuleBytes)
	if err != nil {
		return nil, err
	}
	var all []M
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, fmt.Errorf("%s is no JSON array", name)
	}
	for d.More() {
		var one json.RawMessage
		if err := d.Decode(&one); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		m := empty()
		if err := unmarshal.Unmarshal(one, m); err != nil {
			return nil, fmt.Errorf("%s: item %d: %w", name, len(all), err)
		}
		all = append(all, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("%s breaks off", name)
	}
	return all, nil
}

// read unpacks one entry of at most limit bytes. What the entry's header says about its size is not trusted.
func (c *Capsule) read(name string, limit int64) ([]byte, error) {
	f := c.entries[name]
	if f == nil {
		return nil, fmt.Errorf("%s is missing", name)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than the limit of %d bytes", name, limit)
	}
	return data, nil
}
