package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestAPayloadIsKeptAsItIsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		body, data string
		metadata   map[string]string
	}{
		"a number beyond float64":   {`{"input":{"json": 3544790567247868102}}`, `3544790567247868102`, nil},
		"a number with zeros":       {`{"input":{"json":1.0500e+00}}`, `1.0500e+00`, nil},
		"a huge number":             {`{"input":{"json":[1e999999, -0]}}`, `[1e999999, -0]`, nil},
		"an object with its spaces": {`{"input":{"json":{ "a" :	[ ] }}}`, `{ "a" :	[ ] }`, nil},
		"null":                      {`{"input":{"json":null}}`, `null`, nil},
		"escapes":                   {`{"input":{"json":"\u00e9\n\""}}`, `"\u00e9\n\""`, nil},
		"half a surrogate":          {`{"input":{"json":"\ud800"}}`, `"\ud800"`, nil},
		"base64":                    {`{"input":{"base64":"AP8="}}`, "\x00\xff", nil},
		"nothing":                   {`{"input":{"base64":""}}`, "", nil},
		"metadata": {`{"input":{"metadata":{"content-type":"text/plain"},"base64":"aGk="}}`, "hi",
			map[string]string{"content-type": "text/plain"}},
		"the field's other name":  {`{"workflow_type":"t","input":{"json":1}}`, `1`, nil},
		"names that are escaped":  {`{"\u0069nput":{"\u006ason":1}}`, `1`, nil},
		"payloads' names in JSON": {`{"input":{"json":{"input":{"data":1},"json":2}}}`, `{"input":{"data":1},"json":2}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got kagziv1.StartWorkflowRequest
			if err := decode([]byte(c.body), &got); err != nil {
				t.Fatal(err)
			}
			want := &kagziv1.Payload{Data: []byte(c.data), Metadata: c.metadata}
			if !proto.Equal(got.Input, want) {
				t.Errorf("payload = %q, want %q", got.Input, want)
			}
		})
	}
}

func TestPayloadsWithinListsAndMessagesAreRead(t *testing.T) {
	var batch kagziv1.StartWorkflowsRequest
	body := `{"requests":[{"input":{"json":[1,2]}},{"input":{"base64":"eA"}},{}],"requests":null}`
	if err := decode([]byte(body), &batch); err == nil {
		t.Fatal("a name that occurs twice is accepted")
	}
	if err := decode([]byte(strings.Replace(body, `,"requests":null`, "", 1)), &batch); err != nil {
		t.Fatal(err)
	}
	if got := string(batch.Requests[0].Input.Data) + string(batch.Requests[1].Input.Data); got != "[1,2]x" {
		t.Errorf("payloads = %q", got)
	}
	var override kagziv1.OverrideStepRequest
	err := decode([]byte(`{"output":{"json":true}}`), &override)
	if err != nil || string(override.GetOutput().Data) != "true" {
		t.Errorf("payload of a oneof = %v, %v", override.GetOutput(), err)
	}
}

func TestBadJSONIsRefusedWithItsPlace(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, c := range map[string]struct{ body, field, words string }{
		"nothing":                    {``, "body", "is empty"},
		"spaces":                     {" \n", "body", "is empty"},
		"half":                       {`{"input":`, "body", "is not JSON at byte"},
		"two values":                 {`{} {}`, "body", "is not JSON at byte 4"},
		"a comma too many":           {`{"version":"a",}`, "body", "is not JSON"},
		"a comment":                  {`{/**/}`, "body", "is not JSON"},
		"a list":                     {`[]`, "body", "want a JSON object"},
		"a number":                   {`5`, "body", "want a JSON object"},
		"bytes that are not UTF-8":   {"{\"version\":\"\xff\"}", "body", "not valid UTF-8"},
		"half a surrogate in a text": {`{"version":"\ud800"}`, "body", "unexpected EOF"},
		"an unknown field":           {`{"nonsense":1}`, "body", `unknown field "nonsense"`},
		"a field of another type":    {`{"version":5}`, "body", "version"},
		"a number out of range":      {`{"priority":1e400}`, "body", "priority"},
		"a name twice":               {`{"version":"a","version":"a"}`, "body", `the name "version" occurs twice`},
		"a name twice, once escaped": {`{"version":"a","v\u0065rsion":"a"}`, "body", "occurs twice"},
		"a field under two names":    {`{"workflowType":"a","workflow_type":"b"}`, "body", "duplicate field"},
		"a name twice in a payload":  {`{"input":{"json":{"a":[{"b":1,"b":2}]}}}`, "input.json.a", `"b" occurs twice`},
		"a tag twice":                {`{"tags":{"a":"1","a":"2"}}`, "tags", `"a" occurs twice`},
		"deep nesting":               {`{"input":{"json":` + deep(maxDepth) + `}}`, "input.json", "deeper than 100"},
		"endless nesting":            {`{"input":{"json":` + deep(1<<20) + `}}`, "body", "is not JSON"},
		"a payload that is text":     {`{"input":"x"}`, "input", "want a payload"},
		"a payload of bytes":         {`{"input":{"data":"eA=="}}`, "input.data", "want a payload"},
		"an empty payload":           {`{"input":{}}`, "input", "want a payload"},
		"both forms":                 {`{"input":{"json":1,"base64":""}}`, "input.base64", "not both"},
		"base64 that is a number":    {`{"input":{"base64":1}}`, "input.base64", "want a string"},
		"base64 that is none":        {`{"input":{"base64":"!"}}`, "body", "invalid"},
		"metadata that is a list":    {`{"input":{"json":1,"metadata":[]}}`, "body", "unexpected token"},
	} {
		t.Run(name, func(t *testing.T) {
			err := decode([]byte(c.body), &kagziv1.StartWorkflowRequest{})
			e, ok := errors.AsType[*engine.Error](err)
			if !ok || e.Kind != engine.KindInvalid || e.Field != c.field || !strings.Contains(e.Message, c.words) {
				t.Errorf("error = %v of the field %q, want %q of %q", err, e.Field, c.words, c.field)
			}
		})
	}
	almost := `{"input":{"json":` + deep(maxDepth-2) + `}}`
	if err := decode([]byte(almost), &kagziv1.StartWorkflowRequest{}); err != nil {
		t.Errorf("nesting of %d levels: %v", maxDepth, err)
	}
}

func TestAPayloadIsShownAsJSONOnlyIfItIs(t *testing.T) {
	for name, c := range map[string]struct {
		data     string
		metadata map[string]string
		want     string
	}{
		"JSON":                 {`{"a": 3544790567247868102}`, nil, `{"json":{"a":3544790567247868102}}`},
		"JSON by its type":     {`1`, map[string]string{"content-type": "application/json; charset=utf-8"}, `"json":1`},
		"text":                 {`hi`, nil, `{"base64":"aGk="}`},
		"nothing":              {``, nil, `{"base64":""}`},
		"a number as text":     {`1`, map[string]string{"content-type": "text/plain"}, `"base64":"MQ=="`},
		"what is encoded":      {`1`, map[string]string{"encoding": "gzip"}, `"base64":"MQ=="`},
		"bytes, not UTF-8":     {"\"\xff\"", nil, `{"base64":"Iv8i"}`},
		"a name twice":         {`{"a":1,"a":2}`, nil, `{"base64":"eyJhIjoxLCJhIjoyfQ=="}`},
		"lines":                {"{\n\"a\":\n1}", nil, `{"json":{"a":1}}`},
		"what looks like HTML": {`"</script>"`, nil, `{"json":"</script>"}`},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := encode(&kagziv1.Workflow{Input: &kagziv1.Payload{Data: []byte(c.data), Metadata: c.metadata}})
			if err != nil || !bytes.Contains(text, []byte(c.want)) || bytes.ContainsAny(text, "\n\r") {
				t.Errorf("%s, %v, want %s", text, err, c.want)
			}
		})
	}
}

// FuzzJSON looks for a body that is read in a way that is not read again, or that breaks the reader.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{}`, `{"input":{"json":[1.50,{"a":"\u00e9"}]},"tags":{"a":"b"},"priority":-5}`,
		`{"input":{"base64":"AA","metadata":{"encoding":"x"}},"startAt":"2026-11-20T12:00:00Z","startIn":"1.5s"}`,
		`{"timeouts":{"executionTimeoutMs":"3544790567247868102"}}`, `[[[`, `{"a":1,"a":2}`, "{\"a\":\"\xff\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var first, second kagziv1.StartWorkflowRequest
		if err := decode(body, &first); err != nil {
			if e, ok := errors.AsType[*engine.Error](err); !ok || e.Kind != engine.KindInvalid {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		text, err := encode(&first)
		if err != nil || !json.Valid(text) {
			t.Fatalf("cannot be written: %v %s", err, text)
		}
		if err := decode(text, &second); err != nil {
			t.Fatalf("cannot be read again: %v %s", err, text)
		}
		var one, two bytes.Buffer // spaces in a payload are not kept
		before, after := first.GetInput().GetData(), second.GetInput().GetData()
		if json.Compact(&one, before) == nil && json.Compact(&two, after) == nil && one.String() == two.String() {
			first.Input, second.Input = nil, nil
		}
		if !proto.Equal(&first, &second) {
			t.Fatalf("%v is read again as %v", &first, &second)
		}
	})
}
