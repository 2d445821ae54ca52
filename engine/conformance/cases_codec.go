package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/kagzi/kagzi/engine/conformance/program"
	"github.com/kagzi/kagzi/engine/conformance/subject"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	kagzi "github.com/kagzi/kagzi/sdk"
)

// codecKey is the key k1 of subjects that encrypt.
const codecKey = "6b61677a6920636f6e666f726d616e63652073756974652c206b6579206f6e65"

// secrets encrypts and decrypts as the SDK's codec does.
type secrets struct {
	c     *attempt
	codec kagzi.Codec
	start string // digest of the run's start
}

func newSecrets(c *attempt) *secrets {
	key, err := hex.DecodeString(codecKey)
	c.check(err)
	codec, err := kagzi.NewAESCodec(kagzi.AESOptions{Keys: map[string][]byte{"k1": key}, Current: "k1"})
	c.check(err)
	return &secrets{c: c, codec: codec}
}

func (s *secrets) seal(text string, info kagzi.PayloadInfo) *kagziv1.Payload {
	p, err := s.codec.Encode(kagzi.Payload{Data: []byte(text), Metadata: map[string]string{"content-type": "application/json"}}, info)
	s.c.check(err)
	return &kagziv1.Payload{Data: p.Data, Metadata: p.Metadata}
}

func (s *secrets) open(what string, p *kagziv1.Payload, info kagzi.PayloadInfo) string {
	metadata := map[string]string{}
	for k, v := range p.GetMetadata() {
		if k != "child_run_id" {
			metadata[k] = v
		}
	}
	s.c.want(metadata["encoding"] == "binary/encrypted", "%s is not encrypted: %s", what, p)
	plain, err := s.codec.Decode(kagzi.Payload{Data: p.GetData(), Metadata: metadata}, info)
	s.c.want(err == nil, "%s: %v", what, err)
	return string(plain.Data)
}

// begin starts a program whose input is encrypted.
func (s *secrets) begin(ops ...*program.Op) *going {
	return s.c.startWith(func(r *kagziv1.StartWorkflowRequest) {
		r.Input = s.seal(string(r.Input.GetData()),
			kagzi.PayloadInfo{Kind: kagzi.PayloadInput, WorkflowType: subject.Type})
		s.start = digest(subject.Type, "", r.Input.GetData())
	}, ops...)
}

// digest is that of a run's start (PROTOCOL.md, 23.6).
func digest(workflowType, externalID string, input []byte) string {
	var b bytes.Buffer
	for _, part := range []string{workflowType, externalID} {
		b.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		b.WriteString(part)
	}
	b.Write(input)
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:])
}

func (s *secrets) step(name string) kagzi.PayloadInfo {
	return kagzi.PayloadInfo{Kind: kagzi.PayloadStep, Start: s.start, Step: name}
}

// result decrypts what a program returned.
func (s *secrets) result(g *going) (out program.Result) {
	run := g.ends()
	s.c.want(run.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, "the run is %s: %s", run.GetStatus(), run.GetError())
	text := s.open("the output", run.GetOutput(), kagzi.PayloadInfo{Kind: kagzi.PayloadOutput, RunID: run.GetRunId()})
	s.c.check(json.Unmarshal([]byte(text), &out))
	return out
}

func codecCases() []fixed {
	with := func(id, name string, run func(c *attempt, s *secrets)) fixed {
		return fixed{id: id, name: name, when: encrypted, run: func(c *attempt) { run(c, newSecrets(c)) }}
	}
	return []fixed{
		with("23.6", "input, result of a step and output are bound to what they are", func(c *attempt, s *secrets) {
			g := s.begin(step("a-m"), returns("1"))
			g.traced(s.result(g), "a-m", `"did a-m"`)
			c.want(s.open("the result", g.row("a-m").GetOutput(), s.step("a-m")) == `"did a-m"`, "the result is another")
		}),
		with("23.6", "a repeated step is bound to its number", func(c *attempt, s *secrets) {
			g := s.begin(step("a-m"), step("a-m"))
			s.result(g)
			c.want(s.open("the result", g.row("a-m:2").GetOutput(), s.step("a-m:2")) == `"did a-m:2"`, "the result is another")
		}),
		with("23.6", "replay decrypts", func(_ *attempt, s *secrets) {
			g := s.begin(step("a-m"), step("n"))
			g.asked("n")
			g.suspend()
			g.give("n", "1")
			g.traced(s.result(g), "a-m", `"did a-m"`, "n", "1")
		}),
		with("23.6", "a signal is bound to its name and the run's start", func(c *attempt, s *secrets) {
			g := s.begin(wait("go"))
			_, err := c.host.runs.SignalWorkflow(c.ctx, &kagziv1.SignalWorkflowRequest{Namespace: namespace, RunId: g.id(), Name: "go",
				Payload: s.seal(`"mail"`, kagzi.PayloadInfo{Kind: kagzi.PayloadSignal, Start: s.start, Step: "go"})})
			c.check(err)
			g.traced(s.result(g), "go", `"mail"`)
		}),
		with("18.6", "a signal of another run cannot be decrypted", func(c *attempt, s *secrets) {
			g := s.begin(try(list(wait("go")), list(step("a-rest"))))
			_, err := c.host.runs.SignalWorkflow(c.ctx, &kagziv1.SignalWorkflowRequest{Namespace: namespace, RunId: g.id(), Name: "go",
				Payload: s.seal(`"mail"`, kagzi.PayloadInfo{Kind: kagzi.PayloadSignal, Start: strings.Repeat("0", 64), Step: "go"})})
			c.check(err)
			g.traced(s.result(g), "go", `{"code":"INVALID_ARGUMENT","type":""}`, "a-rest", `"did a-rest"`)
		}),
		with("23.7", "an input of another type fails the run for good", func(c *attempt, s *secrets) {
			g := c.startWith(func(r *kagziv1.StartWorkflowRequest) {
				r.Input = s.seal(`{"ops":[]}`, kagzi.PayloadInfo{Kind: kagzi.PayloadInput, WorkflowType: "other"})
			})
			c.want(g.fails().GetNonRetryable(), "the error is not final")
		}),
		with("23.7", "a plain input fails the run for good", func(c *attempt, s *secrets) {
			c.want(c.start(step("a-m")).fails().GetNonRetryable(), "the error is not final")
		}),
		with("19.5", "input and output of a child", func(c *attempt, s *secrets) {
			g := s.begin(child("kid", step("a-k"), returns(`"out"`)))
			g.traced(s.result(g), "kid", `"out"`)
			s.open("the child's input", c.get(g.row("kid").GetChildRunId()).GetInput(), kagzi.PayloadInfo{Kind: kagzi.PayloadInput, WorkflowType: subject.Type})
		}),
		with("19.5", "the output of a child that continued as new", func(_ *attempt, s *secrets) {
			g := s.begin(child("kid", &program.Op{Op: "continue", Program: &program.Program{Ops: list(returns(`"last"`))}}))
			g.traced(s.result(g), "kid", `"last"`)
		}),
		with("23.8", "own records are encrypted, a cancellation is not", func(c *attempt, s *secrets) {
			g := s.begin(&program.Op{Op: "now", Into: "t"}, &program.Op{Op: "random", Into: "v"}, wait("go"))
			g.parked()
			for _, name := range []string{"kagzi:now", "kagzi:seed"} {
				s.open(name, g.row(name).GetOutput(), s.step(name))
			}
			g.cancel(time.Minute)
			g.ends()
			c.want(sameJSON(g.row("kagzi:cancelled").GetOutput().GetData(), []byte(`{}`)), "it is %s", g.row("kagzi:cancelled").GetOutput())
		}),
		with("22.3", "a run that continues another tells where its signals are from", func(c *attempt, s *secrets) {
			g := s.begin(step("m"), &program.Op{Op: "continue", Program: &program.Program{Ops: list(wait("go"), step("a-n"))}})
			_, err := c.host.runs.SignalWorkflow(c.ctx, &kagziv1.SignalWorkflowRequest{Namespace: namespace, RunId: g.id(), Name: "go",
				Payload: s.seal(`"mail"`, kagzi.PayloadInfo{Kind: kagzi.PayloadSignal, Start: s.start, Step: "go"})})
			c.check(err)
			g.give("m", "1")
			g.ends()
			all, err := g.f.members(c.ctx)
			c.check(err)
			next := all[len(all)-1].run
			c.want(len(all) == 2 && next.GetStatus() == kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED, "the next run is %s: %s", next.GetStatus(), next.GetError())
			c.want(next.GetInput().GetMetadata()["signals-start"] == s.start, "its input has the metadata %v", next.GetInput().GetMetadata())
		}),
	}
}
