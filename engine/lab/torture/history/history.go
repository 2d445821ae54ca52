// Package history holds what clients, workers and faults saw and did while a server was tortured:
// one event for each operation, with when it was begun and when its answer came. It is written down
// before anything is sent, so that it outlives whoever writes it.
package history

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Op is what was done.
type Op string

const (
	Start    Op = "start"    // of a run, by its Request; an answer gives the Run
	Observe  Op = "observe"  // a run was read: Status, and Value once it has ended
	Cancel   Op = "cancel"   // of a run, at once
	Claim    Op = "claim"    // a worker was handed a run, with a Token and the Steps that are recorded
	Begin    Op = "begin"    // of a step; Value is what was recorded before, if Status says COMPLETED
	Complete Op = "complete" // of a step, with Value
	Fail     Op = "fail"     // of a step's attempt; Status PENDING when it is to be run again
	Park     Op = "park"     // a sleep: the lease is given back
	Release  Op = "release"  // the run is handed back
	End      Op = "end"      // of a run, with Value
	EndBadly Op = "endbadly" // of a run, by an error; Status PENDING when it is to be run again

	// a call of the SDK for a start, by its Request, which it may have made again by itself: what came of it is Unknown
	Tried Op = "tried"

	Listed Op = "listed" // a run was shown in a list: Status and, once it has ended, Code, Message and Ended
	// the Steps of a run were shown in a list: those that are completed and ran code, with their values
	ListedSteps Op = "steps"

	Beat       Op = "beat"  // a worker was confirmed in what it holds, by a heartbeat or at its registration
	CodeBegins Op = "code"  // a step's own code runs, on its way to the result Value
	Fault      Op = "fault" // the fault that Step names was injected; Outcome OK when it did hit
)

// Outcome is what is known of an operation.
type Outcome string

const (
	OK      Outcome = "ok"      // it counted
	Refused Outcome = "refused" // it did not count
	Unknown Outcome = ""        // it may have counted, at any time after it was begun
)

// Event is one operation. Times are nanoseconds of the clock that all processes of this machine share and nobody sets.
type Event struct {
	Proc     string  `json:"proc"`
	Seq      int64   `json:"seq"` // of the process; a later line with the same number takes the place of an earlier one
	Op       Op      `json:"op"`
	Invoked  int64   `json:"invoked"`
	Returned int64   `json:"returned,omitempty"` // 0 while there is no answer
	Outcome  Outcome `json:"outcome,omitempty"`
	Code     string  `json:"code,omitempty"` // of a refusal: LEASE_LOST, ..
	Why      string  `json:"why,omitempty"`  // what an error says after which the operation may be repeated

	Run     string `json:"run,omitempty"`
	Request string `json:"request,omitempty"`
	Step    string `json:"step,omitempty"`
	Token   string `json:"token,omitempty"`
	Value   string `json:"value,omitempty"`   // a Digest
	Status  string `json:"status,omitempty"`  // as the answer has it, without its prefix
	Answer  string `json:"answer,omitempty"`  // an observed end, whole: for comparing with other observations of it
	Message string `json:"message,omitempty"` // of the error by which a run ends or ended; a Digest
	// when an observed run ended, by the servers' clock: microseconds since 1970
	Ended int64 `json:"ended,omitempty"`
	Held  bool  `json:"held,omitempty"` // the operation keeps the lease although it parks

	// of a claim or a list: the completed steps that ran code, with their values
	Steps map[string]string `json:"steps,omitempty"`
	Part  bool              `json:"part,omitempty"` // likewise: there are more steps, which have to be asked for
	// of a claim: nanoseconds that its last sleep ended early; negative when late
	Early int64 `json:"early,omitempty"`
	Woken bool  `json:"woken,omitempty"` // of a claim: a sleep has just ended
}

// hashed begins the digest of data that is not short.
const hashed = "sha256:"

// IsHash reports whether a digest is the hash of longer data.
func IsHash(digest string) bool { return strings.HasPrefix(digest, hashed) }

// Digest is the data itself while it is short, else its hash.
func Digest(data []byte) string {
	if len(data) <= 96 {
		return string(data)
	}
	sum := sha256.Sum256(data)
	return hashed + hex.EncodeToString(sum[:])
}
