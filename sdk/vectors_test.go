package kagzi

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/sdk/internal/convert"
	"github.com/kagzi/kagzi/sdk/internal/session"
)

// vectorsOf reads a file of proto/vectors, which the tests of every SDK use.
func vectorsOf[T any](t *testing.T, file string) (v T) {
	t.Helper()
	data, err := os.ReadFile("../proto/vectors/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVectorsOfPayloads(t *testing.T) {
	v := vectorsOf[struct {
		Groups         [][]string
		Empty, Invalid []string
	}](t, "payloads.json")
	if len(v.Groups) < 20 || len(v.Empty) < 3 || len(v.Invalid) < 8 {
		t.Fatal("the file has fewer vectors than it had")
	}
	for _, group := range v.Groups {
		for _, text := range group {
			if _, err := decodeJSON[any]([]byte(text)); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	for _, text := range v.Empty {
		if got, err := decodeJSON[map[string]int]([]byte(text)); err != nil || *got != nil {
			t.Errorf("%q is read as %v, %v; want no value", text, got, err)
		}
	}
	for _, text := range v.Invalid {
		_, err := decodeJSON[any]([]byte(text))
		if final := (nonRetryable{}); !errors.As(err, &final) {
			t.Errorf("%s is read with error %v, want one that is not retried", text, err)
		}
	}
}

func TestVectorsOfCodec(t *testing.T) {
	v := vectorsOf[struct {
		Payloads []struct {
			Name, Key, Context, Kind, Start, Step, Plain, Data string
			KeyID                                              string            `json:"key_id"`
			WorkflowType                                       string            `json:"workflow_type"`
			ExternalID                                         string            `json:"external_id"`
			RunID                                              string            `json:"run_id"`
			AssociatedData                                     string            `json:"associated_data"`
			Metadata                                           map[string]string `json:"metadata"`
			StoredMetadata                                     map[string]string `json:"stored_metadata"`
		}
		Starts []struct {
			WorkflowType string `json:"workflow_type"`
			ExternalID   string `json:"external_id"`
			Input, Start string
		}
	}](t, "codec.json")
	if len(v.Payloads) < 9 || len(v.Starts) < 4 {
		t.Fatal("the file has fewer vectors than it had")
	}
	for _, c := range v.Payloads {
		t.Run(strings.ReplaceAll(c.Name, " ", "_"), func(t *testing.T) {
			secret, _ := hex.DecodeString(c.Key)
			codec := testAES(t, AESOptions{Keys: map[string][]byte{c.KeyID: secret}, Current: c.KeyID,
				Context: c.Context})
			info := PayloadInfo{Kind: PayloadKind(c.Kind), WorkflowType: c.WorkflowType, ExternalID: c.ExternalID,
				RunID: c.RunID, Start: c.Start, Step: c.Step}
			if got := hex.EncodeToString(codec.(*aesCodec).binding(c.StoredMetadata, info)); got != c.AssociatedData {
				t.Errorf("associated data %s, want %s", got, c.AssociatedData)
			}
			data, err := base64.StdEncoding.DecodeString(c.Data)
			if err != nil {
				t.Fatal(err)
			}
			plain, err := codec.Decode(Payload{Data: data, Metadata: c.StoredMetadata}, info)
			if err != nil || string(plain.Data) != c.Plain || !maps.Equal(plain.Metadata, c.Metadata) {
				t.Errorf("decoded %q %v, %v; want %q %v", plain.Data, plain.Metadata, err, c.Plain, c.Metadata)
			}
			again, err := codec.Encode(plain, info)
			if err != nil || !maps.Equal(again.Metadata, c.StoredMetadata) || len(again.Data) != len(data) {
				t.Errorf("encoded %v, %d bytes, %v; want %v, %d bytes", again.Metadata, len(again.Data), err,
					c.StoredMetadata, len(data))
			}
		})
	}
	for _, c := range v.Starts {
		if got := startDigest(c.WorkflowType, c.ExternalID, []byte(c.Input)); got != c.Start {
			t.Errorf("start of %s %s is %s, want %s", c.WorkflowType, c.ExternalID, got, c.Start)
		}
	}
}

// nameEvent is what the code does at one point of a sequence of names.
type nameEvent struct {
	In, Claim, As, Done, Fork, Wait string
	Clash, End                      bool
}

func TestVectorsOfNames(t *testing.T) {
	v := vectorsOf[struct {
		Valid, Invalid, Order []string
		Sequences             []struct {
			Name string
			Do   []nameEvent
		}
	}](t, "names.json")
	if len(v.Valid) < 8 || len(v.Invalid) < 16 || len(v.Sequences) < 18 {
		t.Fatal("the file has fewer vectors than it had")
	}
	refused := func(name string) bool { return isOwn(name) || checkName("step", name) != nil }
	for _, name := range v.Valid {
		if refused(name) {
			t.Errorf("%.40q is refused", name)
		}
	}
	for _, name := range v.Invalid {
		if !refused(name) {
			t.Errorf("%.40q is accepted", name)
		}
	}
	for _, s := range v.Sequences {
		t.Run(strings.ReplaceAll(s.Name, " ", "_"), func(t *testing.T) { playNames(t, s.Do) })
	}
	paths := slices.Clone(v.Order)
	slices.Reverse(paths)
	slices.SortFunc(paths, func(a, b string) int {
		return slices.Compare(branchAt(a).ordinals(), branchAt(b).ordinals())
	})
	if !slices.Equal(paths, v.Order) {
		t.Errorf("branches in order: %v, want %v", paths, v.Order)
	}
}

// branchAt makes a branch with a path.
func branchAt(path string) *branch {
	b := &branch{}
	for at := range strings.SplitSeq(path, ".") {
		if at != "" {
			n := 0
			for _, digit := range at {
				n = 10*n + int(digit-'0')
			}
			b = &branch{parent: b, ordinal: n}
		}
	}
	return b
}

// playNames does what a sequence says and compares the names.
func playNames(t *testing.T, do []nameEvent) {
	w := NewWorker(WorkerOptions{Profile: NoProfile})
	e := newExecution(w, &kagziv1.Task{})
	defer e.endLife(errFinished)
	e.names, e.watch.branches = map[string]*nameUse{}, map[*branch]struct{}{}
	e.busy, e.coding = 1, 1 // so that the run is never idle
	branches := map[string]*branch{"": {e: e}}
	for i, d := range do {
		b := branches[d.In]
		switch {
		case d.Claim != "":
			e.mu.Lock()
			got, _, err := b.claim(d.Claim, kagziv1.StepKind_STEP_KIND_FUNCTION, "")
			e.mu.Unlock()
			if own := (*coded)(nil); d.Clash != (errors.As(err, &own) && own.kind == "step_name_clash") || got != d.As {
				t.Fatalf("claim %d of %s in branch %q: %q, %v; want %q, clash %t", i, d.Claim, d.In, got, err, d.As, d.Clash)
			}
		case d.Done != "":
			b.release(d.Done)
		case d.Fork != "":
			child, err := b.forkLocked()
			if err != nil || child.path() != d.Fork {
				t.Fatalf("fork %d: %v, %v; want %s", i, child.path(), err, d.Fork)
			}
			branches[d.Fork] = child
		case d.End:
			b.finish()
		case d.Wait != "":
			branches[d.Wait].join(b)
		}
	}
}

func TestVectorsOfErrors(t *testing.T) {
	v := vectorsOf[struct {
		Codes []struct {
			Code, GRPC string
			Final      bool `json:"non_retryable"`
			Repeatable bool
			EndsLease  bool `json:"ends_lease"`
		}
		Texts []struct {
			Limit     int
			Text, Cut [][]any
		}
	}](t, "errors.json")
	if len(v.Codes) < 13 || len(v.Texts) < 6 {
		t.Fatal("the file has fewer vectors than it had")
	}
	for _, c := range v.Codes {
		d := &kagziv1.ErrorDetail{Code: ErrorCode(c.Code).wire(), NonRetryable: c.Final}
		if session.Repeatable(d) != c.Repeatable || session.LeaseGone(d) != c.EndsLease {
			t.Errorf("%s: repeatable %t, ends the lease %t", c.Code, session.Repeatable(d), session.LeaseGone(d))
		}
		name, _ := json.Marshal(c.GRPC)
		got := convert.StatusOfCode(d.Code)
		if want := got; want.UnmarshalJSON(name) != nil || want != got {
			t.Errorf("%s is sent as %v, want %s", c.Code, got, c.GRPC)
		}
	}
	join := func(pieces [][]any) string {
		var b bytes.Buffer
		for _, p := range pieces {
			b.WriteString(strings.Repeat(p[0].(string), int(p[1].(float64))))
		}
		return b.String()
	}
	for i, c := range v.Texts {
		if got := convert.CleanText(join(c.Text), c.Limit); got != join(c.Cut) {
			t.Errorf("text %d is cut to %d bytes %.20q…, want %d", i, len(got), got, len(join(c.Cut)))
		}
	}
}
