// Package program describes what the conformance suite lets a subject do: programs of calls, and the
// answers of the gate to the bodies of steps. proto/CONFORMANCE.md is the text for authors of SDKs.
package program

import "encoding/json"

// Program is the input of a run of the subject's workflow.
type Program struct {
	Ops []*Op `json:"ops"`
}

// Op is one instruction. Which fields it uses depends on Op.
type Op struct {
	Op           string          `json:"op"`
	Name         string          `json:"name,omitempty"`
	MS           int64           `json:"ms,omitempty"`
	At           string          `json:"at,omitempty"`
	LimitMS      *int64          `json:"limit_ms,omitempty"`
	TimeoutMS    int64           `json:"timeout_ms,omitempty"`
	Retry        *Retry          `json:"retry,omitempty"`
	Send         []string        `json:"send,omitempty"`
	Read         string          `json:"read,omitempty"`
	Into         string          `json:"into,omitempty"`
	Program      *Program        `json:"program,omitempty"`
	ExternalID   string          `json:"external_id,omitempty"`
	Close        string          `json:"close,omitempty"`
	Wait         *bool           `json:"wait,omitempty"`
	Type         string          `json:"type,omitempty"`
	Names        []string        `json:"names,omitempty"`
	Bodies       [][]*Op         `json:"bodies,omitempty"`
	Children     []string        `json:"children,omitempty"`
	Rest         string          `json:"rest,omitempty"`
	Width        int             `json:"width,omitempty"`
	Times        int             `json:"times,omitempty"`
	Ops          []*Op           `json:"ops,omitempty"`
	List         string          `json:"list,omitempty"`
	Var          string          `json:"var,omitempty"`
	Prefix       string          `json:"prefix,omitempty"`
	Text         string          `json:"text,omitempty"`
	ID           string          `json:"id,omitempty"`
	Then         []*Op           `json:"then,omitempty"`
	Else         []*Op           `json:"else,omitempty"`
	Cases        [][]*Op         `json:"cases,omitempty"`
	Catch        []*Op           `json:"catch,omitempty"`
	Cancelled    []*Op           `json:"cancelled,omitempty"`
	Message      string          `json:"message,omitempty"`
	NonRetryable bool            `json:"non_retryable,omitempty"`
	RetryAfterMS int64           `json:"retry_after_ms,omitempty"`
	Value        json.RawMessage `json:"value,omitempty"`
}

// Retry is the retry policy of a step. What is 0 has the SDK's default.
type Retry struct {
	Attempts     int      `json:"attempts,omitempty"`
	InitialMS    int64    `json:"initial_ms,omitempty"`
	MaxMS        int64    `json:"max_ms,omitempty"`
	Coefficient  float64  `json:"coefficient,omitempty"`
	Jitter       float64  `json:"jitter,omitempty"`
	NonRetryable []string `json:"non_retryable,omitempty"`
}

// Result is the output of a program.
type Result struct {
	Trace []Entry                    `json:"trace"`
	Vars  map[string]json.RawMessage `json:"vars"`
	Value json.RawMessage            `json:"value"`
}

// Entry says what one call returned to the code: its label, and the result or a Failure.
type Entry [2]json.RawMessage

// Failure is the result of a call that failed.
type Failure struct {
	Code string `json:"code"`
	Type string `json:"type"`
}

// Question is what the body of a step asks the gate.
type Question struct {
	Key     string                     `json:"key"`
	Attempt int                        `json:"attempt"`
	Vars    map[string]json.RawMessage `json:"vars,omitempty"`
}

// Answer is what the body of a step has to do.
type Answer struct {
	Do           string          `json:"do"`
	Value        json.RawMessage `json:"value,omitempty"`
	Message      string          `json:"message,omitempty"`
	Type         string          `json:"type,omitempty"`
	NonRetryable bool            `json:"non_retryable,omitempty"`
	RetryAfterMS int64           `json:"retry_after_ms,omitempty"`
	Text         string          `json:"text,omitempty"`
	Program      *Program        `json:"program,omitempty"`
}

// Each calls f for every op of a list, children's programs and branches included.
func Each(ops []*Op, f func(*Op)) {
	for i := range ops {
		o := ops[i]
		f(o)
		for _, list := range o.lists() {
			Each(*list, f)
		}
	}
}

// lists returns the lists of ops within an op.
func (o *Op) lists() []*[]*Op {
	var all []*[]*Op
	for i := range o.Bodies {
		all = append(all, &o.Bodies[i])
	}
	for i := range o.Cases {
		all = append(all, &o.Cases[i])
	}
	all = append(all, &o.Ops, &o.Then, &o.Else, &o.Catch, &o.Cancelled)
	if o.Program != nil {
		all = append(all, &o.Program.Ops)
	}
	return all
}

// Lists returns all lists of ops in a program, the outer before the inner.
func (p *Program) Lists() []*[]*Op {
	all := []*[]*Op{&p.Ops}
	for i := 0; i < len(all); i++ {
		for j := range *all[i] {
			all = append(all, (*all[i])[j].lists()...)
		}
	}
	return all
}

// Clone returns a program that shares nothing with p.
func (p *Program) Clone() *Program {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // plain data
	}
	var c Program
	if err := json.Unmarshal(data, &c); err != nil {
		panic(err)
	}
	return &c
}
