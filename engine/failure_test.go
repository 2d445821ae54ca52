package engine

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestCleanMakesAFailureStorable(t *testing.T) {
	f := Failure{
		Code: FailureCrashed, Type: "a\x00b\xff", Message: "x\x00y\xffz", Stack: strings.Repeat("s", MaxError+1),
		RetryAfterMS: -5,
		Subject:      "\x00", SubjectID: strings.Repeat("i", MaxName+1),
		Metadata: map[string]string{"k\x00": "v\xff"},
	}.Clean()
	if f.Code != FailureUnspecified {
		t.Errorf("code = %d: only Kagzi itself may say that a worker crashed", f.Code)
	}
	if f.Type != "a\uFFFDb\uFFFD" || f.Message != "x\uFFFDy\uFFFDz" {
		t.Errorf("type %q, message %q, want the wrong bytes replaced", f.Type, f.Message)
	}
	if len(f.Stack) != MaxError || !strings.HasSuffix(f.Stack, CutMark) {
		t.Errorf("stack has %d bytes and ends %q, want %d and the mark", len(f.Stack),
			f.Stack[len(f.Stack)-12:], MaxError)
	}
	if f.Subject != "\uFFFD" || len(f.SubjectID) != MaxName || !strings.HasSuffix(f.SubjectID, CutMark) {
		t.Errorf("subject %q, subject id %q, want them valid and cut", f.Subject, f.SubjectID)
	}
	if f.RetryAfterMS != 0 {
		t.Errorf("retry after %d ms, want 0", f.RetryAfterMS)
	}
	if want := map[string]string{"k\uFFFD": "v\uFFFD"}; !maps.Equal(f.Metadata, want) {
		t.Errorf("metadata %q, want %q", f.Metadata, want)
	}
	for _, code := range []FailureCode{FailureUnspecified, FailureTimeout, FailureCancelled} {
		if got := (Failure{Code: code}).Clean().Code; got != code {
			t.Errorf("code %d becomes %d", code, got)
		}
	}
	if got := (Failure{RetryAfterMS: math.MaxInt64}).Clean().RetryAfterMS; got != MaxDelay.Milliseconds() {
		t.Errorf("retry after %d ms, want ten years at most", got)
	}
}

func TestALongTextIsCutAtTheEndOfARune(t *testing.T) {
	for _, unit := range []string{"a", "é", "€", "😀", "e\u0301"} {
		for offset := range 5 {
			text := strings.Repeat("x", offset) + strings.Repeat(unit, MaxError+1)
			got := Failure{Message: text}.Clean().Message
			if !utf8.ValidString(got) || len(got) > MaxError || len(got) < MaxError-8 ||
				!strings.HasSuffix(got, CutMark) {
				t.Errorf("text of %q: %d bytes, valid %v, ends %q", unit, len(got), utf8.ValidString(got),
					got[len(got)-12:])
			}
			if kept := strings.TrimSuffix(got, CutMark); !strings.HasPrefix(text, kept) {
				t.Errorf("text of %q: what is left is not its beginning", unit)
			}
		}
	}
	exact := strings.Repeat("m", MaxError)
	if got := (Failure{Message: exact}).Clean().Message; got != exact {
		t.Error("a text at its limit is cut")
	}
}

func TestCleaningTwiceChangesNothing(t *testing.T) {
	many := map[string]string{}
	for i := range 100 {
		many[fmt.Sprintf("key%d", i)+strings.Repeat("k", i)] = strings.Repeat("é", 200)
	}
	f := Failure{Code: 8, Type: strings.Repeat("€", 200), Message: strings.Repeat("\xff", MaxError), Metadata: many}
	once := f.Clean()
	if twice := once.Clean(); !once.Equal(twice) {
		t.Errorf("cleaned twice: %+v, once: %+v", twice, once)
	}
	if again := f.Clean(); !once.Equal(again) {
		t.Error("the same failure is cleaned differently the second time")
	}
	if n := len(once.Metadata); n > MaxLabels {
		t.Errorf("%d entries of metadata are left, want at most %d", n, MaxLabels)
	}
}

func TestFailuresOfKagziNameTheLimit(t *testing.T) {
	at := time.Date(2026, 11, 20, 7, 55, 0, 0, time.FixedZone("CET", 3600))
	for got, want := range map[string]string{
		DeadlineFailure(
			at).Message: "Workflow execution timeout exceeded (the run's deadline passed at 2026-11-20T06:55:00Z)",
		CrashedFailure().Message:      "Workflow crashed and exhausted all retry attempts (10 workers in a row were lost while they held this run, without a step recorded in between)",
		StepTimedOutFailure().Message: "Step execution timed out (start_to_close_timeout exceeded)",
	} {
		if got != want {
			t.Errorf("message = %q, want %q", got, want)
		}
	}
}
