package filter

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestParse_and_Compile_make_one_request(t *testing.T) {
	f, err := Parse(
		`status = "FAILED" and type in ("a",'b') and created > -24h AND created <= 2026-11-20T11:00:00Z and tag.customer = "x" and tag."odd key"=y and queue = q and worker = w1 and schedule = s1 and parent = p1 and search = "ord"`)
	if err != nil {
		t.Fatal(err)
	}
	q, err := f.Compile("ns", now)
	if err != nil {
		t.Fatal(err)
	}
	want := &kagziv1.ListWorkflowsRequest{
		Namespace:     "ns",
		Statuses:      []kagziv1.WorkflowStatus{kagziv1.WorkflowStatus_WORKFLOW_STATUS_FAILED},
		WorkflowTypes: []string{"a", "b"},
		TaskQueues:    []string{"q"},
		CreatedAfter:  timestamppb.New(now.Add(-24 * time.Hour)),
		CreatedBefore: timestamppb.New(now.Add(-time.Hour + time.Microsecond)),
		Tags:          map[string]string{"customer": "x", "odd key": "y"},
		WorkerId:      new("w1"), ScheduleId: new("s1"), ParentRunId: new("p1"), Search: new("ord"),
	}
	if diff := cmp.Diff(want, q.Request, protocmp.Transform()); diff != "" {
		t.Fatal(diff)
	}
	if q.Keep != nil {
		t.Fatal("a search is exact on the server, so nothing is left to check")
	}
}

func TestCompile(t *testing.T) {
	runs := []*kagziv1.Workflow{{RunId: "01a", ExternalId: "order-1"}, {RunId: "01b", ExternalId: "order-10"},
		{RunId: "02", ExternalId: "01a"}}
	for text, want := range map[string][]string{
		`external_id = "order-1"`: {"01a"}, `id = "01"`: {"01a", "01b"}, `id = "01A"`: {"01a"}} {
		t.Run(text+" keeps what it means among what the prefix finds", func(t *testing.T) {
			f, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			q, err := f.Compile("ns", now)
			if err != nil {
				t.Fatal(err)
			}
			var kept []string
			for _, r := range runs {
				if q.Keep(r) {
					kept = append(kept, r.RunId)
				}
			}
			if diff := cmp.Diff(want, kept); diff != "" {
				t.Fatal(diff)
			}
		})
	}
	t.Run("two searches at once are refused", func(t *testing.T) {
		f, err := Parse(`id = a and external_id = b`)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Compile("ns", now); err == nil {
			t.Fatal("compiled")
		}
	})
	t.Run("conditions that come from elsewhere are checked as well", func(t *testing.T) {
		f := Filter{{Field: Queue, Op: Equal, Values: []string{"a"}}, {Field: Queue, Op: Equal, Values: []string{"b"}}}
		if _, err := f.Compile("ns", now); err == nil {
			t.Fatal("compiled")
		}
	})
	t.Run("the empty filter asks for everything", func(t *testing.T) {
		f, err := Parse("  \n ")
		if err != nil {
			t.Fatal(err)
		}
		q, err := f.Compile("ns", now)
		if diff := cmp.Diff(&kagziv1.ListWorkflowsRequest{Namespace: "ns"}, q.Request,
			protocmp.Transform()); diff != "" || err != nil {
			t.Fatal(diff, err)
		}
	})
}

func TestParse_errors_name_the_position_and_what_was_expected(t *testing.T) {
	for text, want := range map[string]struct {
		position int
		expected string
	}{
		`status =`:                        {9, "a status (PENDING,"},
		`status = "DONE"`:                 {10, "a status (PENDING,"},
		`stat = "FAILED"`:                 {1, "a field (status,"},
		`status > FAILED`:                 {8, `"=" or "in"`},
		`created = -1h`:                   {9, `">", ">=", "<" or "<="`},
		`created > yesterday`:             {11, "a time"},
		`type in "a"`:                     {9, `"(" after in`},
		`type in ("a"`:                    {13, `"," or ")"`},
		`type in ()`:                      {10, "a value"},
		`type = "a" or type = "b"`:        {12, `"and" or the end`},
		`type = "a" and`:                  {15, "a field"},
		`type = "a`:                       {10, "the closing"},
		`type = "\q"`:                     {9, "a valid escape"},
		`tag = x`:                         {1, "a field"},
		`tag. = x`:                        {6, "a tag's key"},
		`tag.a in (x)`:                    {7, `"=" after tag`},
		`type = "é" and § = 1`:            {16, "a field, an operator or a value"},
		`type = a and type = b`:           {14, "each condition once"},
		`created > -1h and created > -2h`: {19, "each condition once"},
		"type = \"\xff\"":                 {9, "UTF-8"},
		`created > -999999w`:              {11, "a time"},
		`"status" = FAILED`:               {1, "a field"},
		`status "=" FAILED`:               {8, `"=" or "in"`},
		`type "in" (a)`:                   {6, `"=" or "in"`},
		`type = a, b`:                     {9, `"and" or the end`},
	} {
		_, err := Parse(text)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("Parse(%q) = %v, want a syntax error", text, err)
			continue
		}
		if syntax.Position() != want.position || !strings.Contains(syntax.Expected, want.expected) {
			t.Errorf("Parse(%q): position %d, expected %q; want %d, %q", text, syntax.Position(), syntax.Expected,
				want.position, want.expected)
		}
	}
}

func TestParse_of_the_printed_form_is_the_same_filter(t *testing.T) {
	for _, f := range []Filter{
		nil,
		{{Field: Status, Op: In, Values: []string{"FAILED", "TIMED_OUT"}},
			{Field: Created, Op: GreaterOrEqual, Values: []string{"-24h"}},
			{Field: Created, Op: Less, Values: []string{"2026-11-20"}}},
		{{Field: Tag, Key: `a"b\ c`, Op: Equal, Values: []string{"x\n\x00\u202e\xff'\""}},
			{Field: Tag, Key: "a.b", Op: Equal, Values: []string{""}}},
		{{Field: Type, Op: In, Values: []string{"注文"}}},
	} {
		got, err := Parse(f.String())
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if diff := cmp.Diff(f, got); diff != "" {
			t.Fatalf("%s: %s", f, diff)
		}
	}
}

// Most programs write an unset time as 0001-01-01. Read as now, it would make `created <` match
// every run.
func TestTheFirstMomentOfTheYear1IsNotNow(t *testing.T) {
	var first time.Time
	for _, text := range []string{"0001-01-01", "0001-01-01T00:00:00Z"} {
		if got, err := ParseTime(text, now); err != nil || !got.Equal(first) {
			t.Errorf("ParseTime(%q) = %v, %v, want %v", text, got, err, first)
		}
		f, err := Parse("created < " + text)
		if err != nil {
			t.Fatal(err)
		}
		if q, err := f.Compile("ns", now); err != nil || !q.Request.CreatedBefore.AsTime().Equal(first) {
			t.Errorf("created < %s asks for runs before %v, %v, want %v", text, q.Request.GetCreatedBefore().AsTime(),
				err, first)
		}
		if _, q := compileShort(t, "until:"+text); !q.Request.CreatedBefore.AsTime().Equal(first) {
			t.Errorf("until:%s asks for runs before %v, want %v", text, q.Request.CreatedBefore.AsTime(), first)
		}
	}
}

// The server refuses times before 1970. Scripts that continue from a saved time start with
// 1970-01-01.
func TestFromTheBeginningOf1970OnIsNotAskedForFromBefore(t *testing.T) {
	epoch := time.Unix(0, 0)
	f, err := Parse("created >= 1970-01-01")
	if err != nil {
		t.Fatal(err)
	}
	if q, err := f.Compile("ns", now); err != nil || !q.Request.CreatedAfter.AsTime().Equal(epoch) {
		t.Errorf("created >= 1970-01-01 asks for runs after %v, %v, want %v", q.Request.GetCreatedAfter().AsTime(),
			err, epoch)
	}
	if _, q := compileShort(t, "since:1970-01-01"); !q.Request.CreatedAfter.AsTime().Equal(epoch) {
		t.Errorf("since:1970-01-01 asks for runs after %v, want %v", q.Request.CreatedAfter.AsTime(), epoch)
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "-7d": -168 * time.Hour, "2w": 336 * time.Hour, "+1h30m": 90 * time.Minute,
		"36600d": 36600 * 24 * time.Hour, "-5228w": -36596 * 24 * time.Hour} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "--1d", "1.5d", "99999999w", "36601d", "5229w", "-20000w", "31000w",
		"36600w", "1y", "-"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`status = "FAILED" and type in ("a","b") and created > -24h and tag.customer = "x"`,
		`tag."k" = 'v'`, `type = "\u00e9\xff"`, "created>=2026-11-20"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := Parse(text)
		if err != nil {
			_ = err.Error()
			return
		}
		again, err := Parse(parsed.String())
		if err != nil {
			t.Fatalf("%q printed as %q: %v", text, parsed, err)
		}
		if diff := cmp.Diff(parsed, again); diff != "" {
			t.Fatalf("%q printed as %q: %s", text, parsed, diff)
		}
		if _, err := parsed.Compile("default", now); err != nil {
			_ = err.Error()
		}
	})
}

func TestPlaceIsWhereAFilterAsksForAField(t *testing.T) {
	for _, c := range []struct {
		text  string
		field Field
		want  int
	}{
		{`queue = "type" and type in ("a", "b")`, Type, 19}, {`type = a`, Type, 0}, {`type = a`, Queue, -1},
		{``, Type, -1},
		{`type = a and`, Queue, -1}, {`type = "`, Type, -1}, {`type a`, Type, -1},
	} {
		if got := Place(c.text, c.field); got != c.want {
			t.Errorf("place of %s in %q = %d, want %d", c.field, c.text, got, c.want)
		}
	}
}
