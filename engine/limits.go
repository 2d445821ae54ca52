package engine

import "time"

// Limits, checked before anything reaches the database (spec: Limits). A value at its limit is accepted.
const (
	MaxName       = 255 // bytes of names and ids, of [A-Za-z0-9._:/-]
	MaxWorkerID   = 64  // bytes, of [A-Za-z0-9_-]
	MaxRequestID  = 64  // bytes
	MaxLabels     = 32  // labels, tags, requirements, capabilities
	MaxLabelKey   = 63
	MaxLabelValue = 255

	MaxPayload  = 2 << 20  // bytes of one payload, its metadata included
	MaxRunBytes = 64 << 20 // all that a run records, its input included
	MaxSteps    = 10_000
	MaxSignals  = 10_000    // of one run, that nothing has consumed
	MaxNote     = 255       // bytes of a run's note
	MaxReason   = 1024      // bytes of the reason for a change
	MaxCapsule  = 256 << 20 // bytes of an imported file
	MaxError    = 16 << 10  // bytes of a failure's message and stack each; longer is cut with CutMark

	MaxPage     = 1000
	DefaultPage = 50

	MaxBatch      = 1000
	MaxBatchBytes = 4 << 20
	MaxMessage    = 8 << 20 // bytes of one message on the wire
	HistoryBytes  = 1 << 20 // of history that travels with a task

	MinDelay = time.Millisecond
	MaxDelay = 10 * 365 * 24 * time.Hour

	MaxPriority         = 100
	MaxRetryAttempts    = 10_000
	MaxTypes            = 256 // of one worker
	MaxQueues           = 64
	MaxNonRetryable     = 64
	MaxMetadata         = 16 << 10
	MaxConcurrent       = 100_000
	DefaultConcurrent   = 100
	MaxPollWait         = time.Minute
	StarvationAfter     = time.Minute // a run that has been due for so long goes before all priorities
	MaxConcurrencyLimit = 1_000_000

	MaxKeys          = 1000 // that are not revoked
	MaxKeyNamespaces = 256
	MaxKeyGlobs      = 64 // queues and types each

	MaxCatchup     = 100_000
	DefaultCatchup = 100
	OnTime         = 10 * time.Second // a tick that is later than this was missed
)

// CutMark ends an error text that was cut to MaxError.
const CutMark = "… (cut)"
