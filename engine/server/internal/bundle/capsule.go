// Package bundle exports runs as capsules and imports them. A capsule is an exported run: a zip
// file with the run, its children and the runs that these continued as.
//
// export.go writes a capsule. import.go imports one: read.go unpacks it within limits, convert.go
// reads its messages, and resettle.go gives its runs new ids and ends what cannot continue.
package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/wire"
)

// The zip file of a capsule holds a manifest, and a directory for each run. Its files are the API's
// messages as JSON, with the field names of the proto files.
const (
	capsuleFormat  = "kagzi-capsule"
	capsuleVersion = 1
	// ManifestFile is the first file of a capsule.
	ManifestFile   = "manifest.json"
	capsuleRuns    = "runs/" // followed by the run's id
	maxCapsuleRuns = 10_000
)

// The files of a run. Steps, signals and audit are arrays.
const (
	capsuleRun     = "run.json"
	capsuleSteps   = "steps.json"
	capsuleSignals = "signals.json"
	capsuleAudit   = "audit.json"
)

// Manifest is the first file of a capsule. It lists the runs: the exported run first, children
// after their parents.
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

// ManifestRun is a run of a capsule.
type ManifestRun struct {
	RunID        string `json:"run_id"`
	WorkflowType string `json:"workflow_type"`
	Status       string `json:"status"`
	ParentRunID  string `json:"parent_run_id"`
	Directory    string `json:"directory"`
}

// toJSON returns a message as stable JSON for people and diffs. It resets the white space, which
// protojson randomizes.
func toJSON(m proto.Message) ([]byte, error) {
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Indent(&b, raw, "", "  ")
	return b.Bytes(), err
}

// redact replaces a payload by its size and its hash.
func redact(p *engine.Payload) {
	if p.Data == nil && len(p.Metadata) == 0 {
		return
	}
	sum := sha256.Sum256(p.Data)
	*p = engine.Payload{Metadata: map[string]string{
		wire.RedactedBytes: strconv.Itoa(len(p.Data)), wire.RedactedSHA256: hex.EncodeToString(sum[:]),
	}}
}
