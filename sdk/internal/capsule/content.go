// Package capsule reads the zip file of an exported run.
package capsule

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/google/uuid"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const (
	Format       = "kagzi-capsule"
	version      = 1
	ManifestName = "manifest.json"

	MaxBytes    = 1 << 30 // of all entries, unpacked
	MaxManifest = 8 << 20 // of the manifest, unpacked
	MaxRuns     = 10_001  // a run and its children
	maxEntries  = 1 + 8*MaxRuns
)

// Content is an opened capsule with a valid manifest.
type Content struct {
	entries  map[string]*zip.File
	Manifest Manifest
}

// Manifest is the content of manifest.json.
type Manifest struct {
	Format       string        `json:"format"`
	Version      int           `json:"version"`
	KagziVersion string        `json:"kagzi_version"`
	ExportedAt   time.Time     `json:"exported_at"`
	Namespace    string        `json:"namespace"`
	RootRunID    string        `json:"root_run_id"`
	Redacted     bool          `json:"redacted"`
	Runs         []ManifestRun `json:"runs"`
}

type ManifestRun struct {
	RunID        string `json:"run_id"`
	WorkflowType string `json:"workflow_type"`
	Status       string `json:"status"`
	ParentRunID  string `json:"parent_run_id"`
	Directory    string `json:"directory"`
}

// Read reads the manifest and checks names, sizes, and that each run comes after its parent.
func Read(r io.ReaderAt, size int64) (*Content, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		head := make([]byte, 2)
		if _, err := r.ReadAt(head, 0); err == nil && (string(head) == "\xff\xfe" || string(head) == "\xfe\xff") {
			return nil, errors.New("not a capsule but UTF-16 text: PowerShell's > rewrites what a program prints; " +
				"export it again with: kagzi workflow export ID --file FILE.zip")
		}
		return nil, fmt.Errorf("not a capsule: %w", err)
	}
	if len(z.File) > maxEntries {
		return nil, fmt.Errorf("%d entries are more than the limit of %d", len(z.File), maxEntries)
	}
	c := &Content{entries: make(map[string]*zip.File, len(z.File))}
	left := uint64(MaxBytes)
	for _, f := range z.File {
		if err := checkEntry(f.Name); err != nil {
			return nil, err
		}
		if c.entries[f.Name] != nil {
			return nil, fmt.Errorf("two entries are named %q", f.Name)
		}
		if f.UncompressedSize64 > left {
			return nil, fmt.Errorf("more than the limit of %d bytes unpacked", MaxBytes)
		}
		left -= f.UncompressedSize64
		c.entries[f.Name] = f
	}
	data, err := c.read(ManifestName, MaxManifest)
	if err != nil {
		return nil, fmt.Errorf("not a capsule: %w", err)
	}
	if err := json.Unmarshal(data, &c.Manifest); err != nil {
		return nil, fmt.Errorf("not a capsule: %s: %w", ManifestName, err)
	}
	return c, c.Manifest.check()
}

// checkEntry accepts only plain relative paths. Nothing is unpacked to disk, but a valid capsule
// has no others.
func checkEntry(name string) error {
	name = strings.TrimSuffix(name, "/") // a folder ends with it
	if name == "" || len(name) > 512 || path.IsAbs(name) || path.Clean(name) != name || strings.HasPrefix(name, "..") ||
		strings.ContainsAny(name, "\\:\x00") {
		return fmt.Errorf("an entry has the name %.100q, want a plain relative path", name)
	}
	return nil
}

func (m *Manifest) check() error {
	switch {
	case m.Format != Format:
		return fmt.Errorf("not a capsule: the manifest's format is %.40q, want %q", m.Format, Format)
	case m.Version > version:
		return fmt.Errorf("version %d was written by a newer Kagzi (%.40q); this one reads version %d", m.Version,
			m.KagziVersion, version)
	case m.Version != version:
		return fmt.Errorf("the manifest's version is %d, want %d", m.Version, version)
	case len(m.Runs) == 0 || len(m.Runs) > MaxRuns:
		return fmt.Errorf("%d runs, want 1 to %d", len(m.Runs), MaxRuns)
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
			return fmt.Errorf("run %s is listed twice", r.RunID)
		case r.Directory != "runs/"+r.RunID:
			return fmt.Errorf("run %s has the directory %.100q, want runs/%s", r.RunID, r.Directory, r.RunID)
		case there[r.ParentRunID] && !seen[r.ParentRunID]: // the parent of the exported run is not in the capsule
			return fmt.Errorf("run %s is listed before its parent %.40q", r.RunID, r.ParentRunID)
		}
		seen[r.RunID] = true
	}
	return nil
}

// Load returns a run and all attempts of its steps; "" selects the exported run.
func (c *Content) Load(runID string) (run *kagziv1.Workflow, steps []*kagziv1.Step, err error) {
	i := 0
	for runID != "" && i < len(c.Manifest.Runs) && c.Manifest.Runs[i].RunID != runID {
		i++
	}
	if i == len(c.Manifest.Runs) {
		return nil, nil, fmt.Errorf("no run %.40q in the capsule", runID)
	}
	directory := c.Manifest.Runs[i].Directory
	data, err := c.read(directory+"/run.json", MaxBytes)
	if err != nil {
		return nil, nil, err
	}
	run = new(kagziv1.Workflow)
	if err := unmarshal.Unmarshal(data, run); err != nil {
		return nil, nil, fmt.Errorf("%s/run.json: %w", directory, err)
	}
	if run.GetRunId() != c.Manifest.Runs[i].RunID {
		return nil, nil, fmt.Errorf("%s/run.json is about run %.40q", directory, run.GetRunId())
	}
	steps, err = readArray(c, directory+"/steps.json", func() *kagziv1.Step { return new(kagziv1.Step) })
	return run, steps, err
}

// unmarshal ignores fields of newer servers.
var unmarshal = protojson.UnmarshalOptions{DiscardUnknown: true}

// readArray reads an entry that is a JSON array of messages.
func readArray[M proto.Message](c *Content, name string, empty func() M) ([]M, error) {
	data, err := c.read(name, MaxBytes)
	if err != nil {
		return nil, err
	}
	var all []M
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, fmt.Errorf("%s is not a JSON array", name)
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
		return nil, fmt.Errorf("%s is truncated", name)
	}
	return all, nil
}

// read unpacks one entry of at most limit bytes. It does not trust the size in the entry's header.
func (c *Content) read(name string, limit int64) ([]byte, error) {
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
