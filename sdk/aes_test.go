package kagzi

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/xaes"
	"google.golang.org/protobuf/proto"
)

func key(b byte) []byte { return bytes.Repeat([]byte{b}, xaes.KeySize) }

func testAES(t *testing.T, o AESOptions) Codec {
	t.Helper()
	if o.Keys == nil {
		o.Keys, o.Current = map[string][]byte{"k1": key(1)}, "k1"
	}
	c, err := NewAESCodec(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sealed(t *testing.T, c Codec, text string, info PayloadInfo) Payload {
	t.Helper()
	p, err := c.Encode(Payload{Data: []byte(text), Metadata: maps.Clone(jsonMetadata)}, info)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAESCodec(t *testing.T) {
	step := PayloadInfo{Kind: PayloadStep, Start: "s1", Step: "charge"}

	t.Run("decrypts what it encrypted and shows only the key id", func(t *testing.T) {
		c := testAES(t, AESOptions{})
		p := sealed(t, c, `"secret"`, step)
		if bytes.Contains(p.Data, []byte("secret")) {
			t.Fatalf("the ciphertext holds the plaintext: %q", p.Data)
		}
		equal(t, p.Metadata, map[string]string{"content-type": "application/json", "encoding": "binary/encrypted",
			"encryption": "XAES-256-GCM", "encryption-key": "k1"})
		back, err := c.Decode(p, step)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, back, Payload{Data: []byte(`"secret"`), Metadata: jsonMetadata})
		again := sealed(t, c, `"secret"`, step)
		equal(t, bytes.Equal(p.Data, again.Data), false)
	})

	t.Run("keeps the encoding of what is inside", func(t *testing.T) {
		c := testAES(t, AESOptions{})
		inside := Payload{Data: []byte("zip"), Metadata: map[string]string{"encoding": "gzip"}}
		p, err := c.Encode(inside, step)
		if err != nil {
			t.Fatal(err)
		}
		back, err := c.Decode(p, step)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, back, inside)
	})

	infos := map[string]PayloadInfo{
		"an input":                      {Kind: PayloadInput, WorkflowType: "order", ExternalID: "o-1"},
		"another type's input":          {Kind: PayloadInput, WorkflowType: "refund", ExternalID: "o-1"},
		"another external id's input":   {Kind: PayloadInput, WorkflowType: "order", ExternalID: "o-2"},
		"an input with shifted borders": {Kind: PayloadInput, WorkflowType: "ordero", ExternalID: "-1"},
		"an output":                     {Kind: PayloadOutput, RunID: "r-1"},
		"another run's output":          {Kind: PayloadOutput, RunID: "r-2"},
		"a step":                        step,
		"another step":                  {Kind: PayloadStep, Start: "s1", Step: "refund"},
		"another run's step":            {Kind: PayloadStep, Start: "s2", Step: "charge"},
		"a signal":                      {Kind: PayloadSignal, Start: "s1", Step: "charge"},
		"another run's signal":          {Kind: PayloadSignal, Start: "s2", Step: "charge"},
	}
	names := slices.Sorted(maps.Keys(infos))
	for _, made := range names {
		t.Run("nothing but itself is read as "+made, func(t *testing.T) {
			c := testAES(t, AESOptions{})
			p := sealed(t, c, made, infos[made])
			for _, read := range names {
				back, err := c.Decode(p, infos[read])
				if fits := read == made; fits != (err == nil) || fits && string(back.Data) != made || !fits &&
					back.Data != nil {
					t.Errorf("read as %s: %q, %v", read, back.Data, err)
				}
			}
		})
	}

	t.Run("any byte that is changed, cut off or put on is noticed", func(t *testing.T) {
		c := testAES(t, AESOptions{})
		p := sealed(t, c, `{"total":7}`, step)
		refused := func(what string, data []byte) {
			t.Helper()
			var permanent nonRetryable
			if back, err := c.Decode(Payload{Data: data, Metadata: p.Metadata}, step); back.Data != nil ||
				!errors.As(err, &permanent) {
				t.Errorf("%s: %q, %v", what, back.Data, err)
			}
		}
		for i := range p.Data {
			changed := bytes.Clone(p.Data)
			changed[i] ^= 1
			refused(fmt.Sprint("byte ", i, " changed"), changed)
			refused(fmt.Sprint("cut after ", i), p.Data[:i])
		}
		refused("one more byte", append(bytes.Clone(p.Data), 0))
	})

	t.Run("metadata that is changed is noticed", func(t *testing.T) {
		c := testAES(t, AESOptions{})
		for _, name := range []string{"content-type", "encoding", "encryption", "encryption-key",
			"encrypted-encoding", "later"} {
			p := sealed(t, c, "1", step)
			p.Metadata[name] = "other"
			if _, err := c.Decode(p, step); err == nil {
				t.Errorf("%s was changed, and nobody noticed", name)
			}
		}
	})

	t.Run("an old key still decrypts; a missing one is an error", func(t *testing.T) {
		old := testAES(t, AESOptions{})
		rotated := testAES(t, AESOptions{Keys: map[string][]byte{"k1": key(1), "k2": key(2)}, Current: "k2"})
		without := testAES(t, AESOptions{Keys: map[string][]byte{"k2": key(2)}, Current: "k2"})
		before, after := sealed(t, old, "before", step), sealed(t, rotated, "after", step)
		equal(t, []string{before.Metadata["encryption-key"], after.Metadata["encryption-key"]}, []string{"k1", "k2"})
		for _, p := range []Payload{before, after} {
			if _, err := rotated.Decode(p, step); err != nil {
				t.Error(err)
			}
		}
		_, err := without.Decode(before, step)
		var permanent nonRetryable
		equal(t, fmt.Sprint(err), `the payload is encrypted by key "k1", which the codec does not have`)
		equal(t, errors.As(err, &permanent), false) // another worker may have it
	})

	t.Run("another key of the same id opens nothing", func(t *testing.T) {
		p := sealed(t, testAES(t, AESOptions{}), "1", step)
		_, err := testAES(t, AESOptions{Keys: map[string][]byte{"k1": key(9)}, Current: "k1"}).Decode(p, step)
		equal(t, errors.Is(err, errAlien), true)
	})

	t.Run("another context opens nothing", func(t *testing.T) {
		p := sealed(t, testAES(t, AESOptions{Context: "prod"}), "1", step)
		_, err := testAES(t, AESOptions{Context: "test"}).Decode(p, step)
		equal(t, errors.Is(err, errAlien), true)
	})

	for name, plain := range map[string]Payload{
		"a plain payload": {Data: []byte("1"), Metadata: jsonMetadata}, "no payload": {}} {
		t.Run(name+" is taken only where that is allowed", func(t *testing.T) {
			_, err := testAES(t, AESOptions{}).Decode(plain, step)
			equal(t, errors.Is(err, errPlain), true)
			back, err := testAES(t, AESOptions{AllowPlain: true}).Decode(plain, step)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, back, plain)
		})
	}

	for want, o := range map[string]AESOptions{
		`kagzi: AES codec: Current is "", want the id of one of the keys`: {},
		`kagzi: AES codec: Current is "b", want the id of one of the keys`: {
			Keys: map[string][]byte{"a": key(1)}, Current: "b"},
		`kagzi: AES codec: key a has 16 bytes, want 32`: {
			Keys: map[string][]byte{"a": make([]byte, 16)}, Current: "a"},
		"kagzi: AES codec: key name \"a\\x1b\": only letters, digits and . _ : / - are allowed": {
			Keys: map[string][]byte{"a\x1b": key(1)}, Current: "a"},
	} {
		t.Run("options are refused: "+want, func(t *testing.T) {
			_, err := NewAESCodec(o)
			equal(t, fmt.Sprint(err), want)
		})
	}
}

// exchange runs a workflow of two steps with AES, lets tamper change what is stored after the first
// step, and returns the run.
func exchange(t *testing.T, f *fake, tamper func(r, other *fakeRun)) *fakeRun {
	t.Helper()
	w := testWorker(f)
	w.options.Codec = testAES(t, AESOptions{})
	Handle(w, "w", func(ctx Context, in string) (string, error) {
		a, err := Step(ctx, "a", constant("a of "+in))
		if err != nil {
			return "", err
		}
		if _, err := Step(ctx, "b", constant("b of "+in)); err != nil {
			return "", err
		}
		signal, err := WaitSignal[string](ctx, "go", 0)
		return a + ", " + signal, err
	})
	running(t, w)
	c := testClient(t, f)
	c.options.Codec = w.options.Codec
	var runs []*Run
	for _, in := range []string{"one", "two"} {
		run, err := Start(t.Context(), c, "w", in, StartOptions{ExternalID: in})
		if err != nil {
			t.Fatal(err)
		}
		f.awaitParked(t, run.ID())
		runs = append(runs, run)
	}
	f.mu.Lock()
	r, other := f.runs[runs[0].ID()], f.runs[runs[1].ID()]
	tamper(r, other)
	f.mu.Unlock()
	for _, run := range []*Run{runs[0], c.Run(runs[1].ID())} { // known, and to be read first
		if err := Signal(t.Context(), run, "go", "go of "+run.ID(), SignalOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := Result[string](t.Context(), runs[1]); err != nil || out != "a of two, go of "+runs[1].ID() {
		t.Errorf("the other run = %q, %v", out, err)
	}
	return f.await(t, runs[0].ID())
}

func TestEncryptedRuns(t *testing.T) {
	t.Run("complete, and the server sees only ciphertext", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			r := exchange(t, f, func(*fakeRun, *fakeRun) {})
			equal(t, r.Status, kagziv1.WorkflowStatus_WORKFLOW_STATUS_COMPLETED)
			stored, err := proto.Marshal(&r.Workflow)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range r.steps {
				more, err := proto.Marshal(s)
				if err != nil {
					t.Fatal(err)
				}
				stored = append(stored, more...)
			}
			for _, secret := range []string{"a of one", "b of one", "go of run", `"one"`} {
				if bytes.Contains(stored, []byte(secret)) {
					t.Errorf("the server has read %q", secret)
				}
			}
		})
	})

	alien := "recorded result of step a: codec: " + errAlien.Error()
	for _, c := range []struct {
		name, want string
		tamper     func(r, other *fakeRun)
	}{
		{"the result of another step", alien, func(r, _ *fakeRun) { r.steps[0].Output = r.steps[1].Output }},
		{"the same step's result of another run", alien, func(r, other *fakeRun) {
			r.steps[0].Output = other.steps[0].Output
		}},
		{"the word that it takes the signals of another run", "input of workflow type w: codec: " + errAlien.Error(),
			func(r, _ *fakeRun) { r.Input.Metadata[metaSignals] = "another" }},
		{"another run's input", "input of workflow type w: codec: " + errAlien.Error(), func(r, other *fakeRun) {
			r.Input = other.Input
		}},
		{"a result in the clear", "recorded result of step a: codec: " + errPlain.Error(), func(r, _ *fakeRun) {
			r.steps[0].Output = jsonPayload(`"x"`)
		}},
		{"no result", "recorded result of step a: codec: " + errPlain.Error(), func(r, _ *fakeRun) {
			r.steps[0].Output = nil
		}},
	} {
		t.Run("fail rather than take "+c.name, func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				r := exchange(t, f, c.tamper)
				equal(t, r.Status, kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED)
				equal(t, r.Error.GetMessage(), c.want)
			})
		})
	}

	t.Run(
		"receive signals bound to their first run or to themselves", func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				w.options.Codec = testAES(t, AESOptions{})
				Handle(w, "w", func(ctx Context, in string) (string, error) {
					for range 2 {
						word, err := WaitSignal[string](ctx, "go", 0)
						if err != nil {
							return "", err
						}
						in += " " + word
					}
					return in, nil
				})
				running(t, w)
				c := testClient(t, f)
				c.options.Codec = w.options.Codec
				info := inputInfo("w", "x")
				info.signals = "first"
				input, err := encode(c.options.Codec, "in", info)
				if err != nil {
					t.Fatal(err)
				}
				started, err := c.workflows.StartWorkflow(t.Context(), &kagziv1.StartWorkflowRequest{
					Namespace: "default", TaskQueue: "default", WorkflowType: "w", ExternalId: "x", Input: input,
					RequestId: uuid.NewString(),
				})
				if err != nil {
					t.Fatal(err)
				}
				// a handle of a client that knows nothing of the run before
				plain := &Run{c: c, id: started.GetRunId(), start: startDigest("w", "x", input.GetData())}
				for word, run := range map[string]*Run{"go": plain, "gone": c.Run(started.GetRunId())} {
					if err := Signal(t.Context(), run, "go", word, SignalOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				if out, err := Result[string](t.Context(), plain); err != nil || out != "in go gone" &&
					out != "in gone go" {
					t.Errorf("the run = %q, %v", out, err)
				}

				f.mu.Lock()
				f.runs[started.GetRunId()].Input.Metadata[metaSignals] = "another"
				f.mu.Unlock()
				err = Signal(t.Context(), c.Run(started.GetRunId()), "go", "stolen", SignalOptions{})
				if want := "input of run " + started.GetRunId() +
					", which says what its signals are bound to: codec: " +
					errAlien.Error(); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("a signal whose run names the signals of another: %v, want %q", err, want)
				}
			})
		})

	t.Run("tell their code of a signal that was meant for another run", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			r := exchange(t, f, func(r, other *fakeRun) {
				r.signals = append(r.signals, &kagziv1.Signal{Name: "go", SignalId: "replayed",
					Payload: toProto(sealed(t, testAES(t, AESOptions{}), `"go"`, PayloadInfo{Kind: PayloadSignal,
						Start: startDigest("w", "two", other.Input.GetData()), Step: "go"}))})
				for _, s := range r.steps {
					if s.Kind == kagziv1.StepKind_STEP_KIND_SIGNAL {
						f.consume(r, s)
					}
				}
			})
			if !strings.Contains(r.Error.GetMessage(), "signal go: codec: "+errAlien.Error()) {
				t.Errorf("the run ended with %v", r.Error)
			}
		})
	})
}

func toProto(p Payload) *kagziv1.Payload { return &kagziv1.Payload{Data: p.Data, Metadata: p.Metadata} }
