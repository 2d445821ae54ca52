package engine

import "time"

// Lease is the right to write about a run. The current token wins: a write with another one changes nothing.
type Lease struct {
	Namespace string // empty where the caller has it from a worker, who is bound to one
	RunID     ID
	Token     Token
}

// ClaimSlot is one free slot of a worker to a claim, with the token that the lease shall have.
type ClaimSlot struct {
	WorkerID string
	Token    Token
}

// Offer is one capability or label of a worker.
type Offer struct{ Key, Value string }

// Meets says that a worker with these offers fulfils the requirements: each key is offered with that value; a
// requirement without a value is met by any.
func Meets(offers []Offer, requirements map[string]string) bool {
	for key, value := range requirements {
		met := false
		for _, o := range offers {
			if o.Key == key && (value == "" || o.Value == value) {
				met = true
				break
			}
		}
		if !met {
			return false
		}
	}
	return true
}

// Task is a claimed run with all that a worker needs to go on with it.
type Task struct {
	Run     Run // with its input
	Lease   Lease
	History []Step // the latest attempt of each step, in sequence order
	// NextSequence is where the rest of the history begins (HistoryParams.From); 0 when History is whole.
	NextSequence int64
	ClaimedAt    time.Time
}
