// Package history records what clients, workers and faults saw and did during a torture: one event
// for each operation, with the times of its begin and its answer. An event is written before
// anything is sent, so that it survives its process.
package history

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Op is an operation.
type Op string

const (
	Start    Op = "start"    // of a run, by its Request; an answer has the Run
	Observe  Op = "observe"  // a run was read: Status, and Value once it has ended
	Cancel   Op = "cancel"   // of a run, at once
	Claim    Op = "claim"    // a worker got a run, with a Token and the recorded Steps
	Begin    Op = "begin"    // of a step; Value is what was recorded before, if Status is COMPLETED
	Complete Op = "complete" // of a step, with Value
	Fail     Op = "fail"     // of a step's attempt; Status PENDING if it will be retried
	Park     Op = "park"     // a sleep: the lease is given back
	Release  Op = "release"  // the run is handed back
	End      Op = "end"      // of a run, with Value
	EndBadly Op = "endbadly" // of a run, by an error; Status PENDING if it will be retried

	// the SDK's call for a start, by its Request, which the SDK may have repeated by itself: its
	// outcome is Unknown
	Tried Op = "tried"

	Listed Op = "listed" // a list showed a run: Status and, once it has ended, Code, Message and Ended
	// a list showed the Steps of a run: those that are completed and ran code, with their values
	ListedSteps Op = "steps"

	Beat       Op = "beat"  // a worker's leases were confirmed, by a heartbeat or at its registration
	CodeBegins Op = "code"  // a step's own code runs, and will return Value
	Fault      Op = "fault" // the fault that Step names was injected; Outcome OK if it hit
)

// Outcome is what is known about the effect of an operation.
type Outcome string

const (
	OK      Outcome = "ok"      // it counted
	Refused Outcome = "refused" // it did not count
	Unknown Outcome = ""        // it may have counted, at any time after its begin
)

// Event is one operation. Times are nanoseconds of a clock that all processes of this machine share
// and nobody sets.
type Event struct {
	Proc     string  `json:"proc"`
	Seq      int64   `json:"seq"` // of the process; a later line with the same number replaces an earlier one
	Op       Op      `json:"op"`
	Invoked  int64   `json:"invoked"`
	Returned int64   `json:"returned,omitempty"` // 0: no answer yet
	Outcome  Outcome `json:"outcome,omitempty"`
	Code     string  `json:"code,omitempty"` // of a refusal: LEASE_LOST, …
	Why      string  `json:"why,omitempty"`  // message of an error after which the operation may be repeated

	Run     string `json:"run,omitempty"`
	Request string `json:"request,omitempty"`
	Step    string `json:"step,omitempty"`
	Token   string `json:"token,omitempty"`
	Value   string `json:"value,omitempty"`   // a Digest
	Status  string `json:"status,omitempty"`  // from the answer, without its prefix
	Answer  string `json:"answer,omitempty"`  // a complete observed end, for comparison with other observations
	Message string `json:"message,omitempty"` // of the error by which a run ends or ended; a Digest
	// when an observed run ended, by the servers' clock: microseconds since 1970
	Ended int64 `json:"ended,omitempty"`
	Held  bool  `json:"held,omitempty"` // the operation keeps the lease although it parks

	// of a claim or a list: the completed steps that ran code, with their values
	Steps map[string]string `json:"steps,omitempty"`
	Part  bool              `json:"part,omitempty"` // likewise: there are more steps, on further pages
	// of a claim: nanoseconds that its last sleep ended early; negative: late
	Early int64 `json:"early,omitempty"`
	Woken bool  `json:"woken,omitempty"` // of a claim: a sleep has just ended
}

// hashed is the prefix of the digest of long data.
const hashed = "sha256:"

// IsHash reports whether a digest is the hash of longer data.
func IsHash(digest string) bool { return strings.HasPrefix(digest, hashed) }

// Digest returns short data itself, and the hash of longer data.
func Digest(data []byte) string {
	if len(data) <= 96 {
		return string(data)
	}
	sum := sha256.Sum256(data)
	return hashed + hex.EncodeToString(sum[:])
}
