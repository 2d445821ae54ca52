package engine

import (
	"maps"
	"time"
)

// MetaChildRunID is the metadata key under which a CHILD step's output or failure names the run
// that it comes from.
const MetaChildRunID = "child_run_id"

// MetaCancelledWithParent is the metadata key of a CHILD step's failure that says that the child was
// cancelled because its parent is being cancelled. The parent's code then sees its own cancellation.
const MetaCancelledWithParent = "cancelled_with_parent"

// Payload is a user's data. Kagzi returns it byte for byte and never interprets it.
type Payload struct {
	Data     []byte
	Metadata map[string]string // hints for readers, such as content-type
}

// Size returns how many bytes the payload counts against the limits: data and metadata.
func (p Payload) Size() int {
	n := len(p.Data)
	for k, v := range p.Metadata {
		n += len(k) + len(v)
	}
	return n
}

// ChildOutput returns what a CHILD step that started the run first records of the output of the run
// ended. If first continued as another run, MetaChildRunID names that run, because readers of the
// output have to know it. A MetaChildRunID that the child set itself is removed.
func ChildOutput(output Payload, first, ended ID) Payload {
	if _, taken := output.Metadata[MetaChildRunID]; !taken && ended == first {
		return output
	}
	metadata := maps.Clone(output.Metadata) // the child's payload shares the original
	if metadata == nil {
		metadata = map[string]string{}
	}
	if delete(metadata, MetaChildRunID); ended != first {
		metadata[MetaChildRunID] = ended.String()
	}
	output.Metadata = metadata
	return output
}

// Equal says whether both hold the same data and metadata; nil and empty are the same.
func (p Payload) Equal(q Payload) bool {
	if string(p.Data) != string(q.Data) || len(p.Metadata) != len(q.Metadata) {
		return false
	}
	for k, v := range p.Metadata {
		if w, ok := q.Metadata[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// Limits, checked before anything reaches the database. A value at its limit is accepted. A limit
// without a unit counts entries.
const (
	MaxName       = 255 // bytes of names and ids, of [A-Za-z0-9._:/-]
	MaxWorkerID   = 64  // bytes, of [A-Za-z0-9_-]
	MaxNamespace  = 63  // bytes, of [a-z0-9-]
	MaxRequestID  = 64  // bytes
	MaxLabels     = 32  // labels, tags, requirements, a payload's metadata
	MaxLabelKey   = 63  // bytes
	MaxLabelValue = 255 // bytes

	MaxCapabilities = 1024 // of one worker; their keys and values are as long as those of labels

	MaxPayload  = 2 << 20   // bytes of one payload, its metadata included
	MaxMetadata = 16 << 10  // bytes of one payload's metadata
	MaxRunBytes = 64 << 20  // bytes of all that a run records, its input included
	MaxSteps    = 10_000    // of one run
	MaxSignals  = 10_000    // of one run, not consumed yet
	MaxNote     = 255       // bytes of a run's note
	MaxReason   = 1024      // bytes of the reason for a change
	MaxCapsule  = 256 << 20 // bytes of an imported file
	MaxError    = 16 << 10  // bytes of a failure's message and stack each; longer is cut with CutMark

	MaxPage     = 1000 // of a list
	DefaultPage = 50

	MaxBatch      = 1000    // starts in one call, tasks of one poll, ends of runs in one message
	MaxBatchBytes = 4 << 20 // bytes of the starts in one call
	MaxMessage    = 8 << 20 // bytes of one message on the wire
	HistoryBytes  = 1 << 20 // approximate bytes of history in a task

	MinDelay = time.Millisecond
	MaxDelay = 10 * 365 * 24 * time.Hour

	MaxPriority         = 100 // and its negative
	MaxRetryAttempts    = 10_000
	MaxNonRetryable     = 64          // of one retry policy
	MaxTypes            = 256         // of one worker
	MaxQueues           = 64          // of one worker
	MaxConcurrent       = 100_000     // runs that one worker holds at a time
	DefaultConcurrent   = 100         // of a worker that sets none
	MaxPollWait         = time.Minute // of one long poll
	ClaimByAgeEvery     = 8           // one of so many claimed runs is the one that has been due longest
	MaxConcurrencyLimit = 1_000_000   // runs at a time of a queue, a type or a concurrency key

	MaxKeys          = 1000 // that are not revoked
	MaxKeyNamespaces = 256  // of one key
	MaxKeyGlobs      = 64   // of one key, queues and types each

	MaxCatchup     = 100_000          // missed ticks that a schedule replays
	MaxJitter      = 24 * time.Hour   // of a schedule
	MaxBackfill    = 1000             // ticks of one BackfillSchedule
	DefaultCatchup = 100              // of a schedule that sets none
	OnTime         = 10 * time.Second // the newest due tick of a schedule is missed if it is older than this
)

// CutMark ends an error text that was cut to MaxError.
const CutMark = "… (cut)"
