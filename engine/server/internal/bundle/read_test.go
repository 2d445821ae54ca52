package bundle

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestATimerIsImportedAsItWasAskedFor(t *testing.T) {
	asked := servertest.Began.Add(123_456 * time.Microsecond)
	for _, c := range []struct {
		wake time.Time
		want time.Duration
	}{{asked.Add(time.Hour), time.Hour}, {asked.Add(time.Millisecond), time.Millisecond},
		{servertest.Began.Add(time.Hour), 0}, {time.Time{}, 0}} {
		if got := askedFor(&engine.Step{StartedAt: asked, WakeAt: c.wake}); got != c.want {
			t.Errorf("a timer until %s has the length %s, want %s", c.wake, got, c.want)
		}
	}
}

func TestFailuresOfTheRunAreImportedUnlessTheCapsuleIsOlder(t *testing.T) {
	for _, c := range []struct {
		attempts         int32
		retries          *int32
		stored, failures int
		refused          string
	}{
		{attempts: 3, retries: proto.Int32(2), stored: 5, failures: 2},
		{attempts: 1, retries: proto.Int32(0), stored: 1},
		{attempts: 4, stored: 4}, // it does not tell what failed
		{attempts: 2, retries: proto.Int32(-1), refused: "step_retries"},
		{attempts: 0, retries: proto.Int32(3), refused: "attempts"},
		{attempts: 0, refused: "attempts"},
	} {
		run, err := importedRunOf(&kagziv1.Workflow{RunId: servertest.SomeID(1).String(), TaskQueue: "q",
			WorkflowType: "t", Status: kagziv1.WorkflowStatus_WORKFLOW_STATUS_PENDING, Attempts: c.attempts,
			StepRetries: c.retries, CreatedAt: timestamppb.New(servertest.Began)})
		if c.refused != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.refused) {
				t.Errorf("%+v: %v, want %s refused", c, err, c.refused)
			}
			continue
		}
		if err != nil || run.Attempts != c.stored || run.Failures != c.failures {
			t.Errorf("%+v became %d attempts and %d failures, %v", c, run.Attempts, run.Failures, err)
		}
	}
}

func TestACapsuleThatUnpacksToTooMuchIsRefused(t *testing.T) {
	file := servertest.Packed(t, map[string][]byte{
		"a": make([]byte, 1000), "b": []byte("[" + strings.Repeat("{}, ", 99) + "{}]")})
	open := func() *capsule {
		c, err := openCapsule(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if _, err := open().read("a", 1000); err != nil {
		t.Errorf("a file at its limit: %v", err)
	}
	if _, err := open().read("a", 999); engine.KindOf(err) != engine.KindTooLarge {
		t.Errorf("a file over its limit: %v", err)
	}
	c := open()
	c.left = 1999
	if _, err := c.read("a", 1000); err != nil {
		t.Error(err)
	}
	if _, err := c.read("a", 1000); engine.KindOf(err) != engine.KindTooLarge {
		t.Errorf("more than a capsule may hold in all: %v", err)
	}
	read := func(c *capsule) error {
		_, err := readList(c, "b", func() *kagziv1.Step { return &kagziv1.Step{} }, func(*kagziv1.Step) (int, error) {
			return 0, nil
		})
		return err
	}
	c = open()
	c.items = 100
	if err := read(c); err != nil {
		t.Error(err)
	}
	if err := read(c); engine.KindOf(err) != engine.KindTooLarge || !strings.Contains(err.Error(), "b[0]") {
		t.Errorf("more items than a capsule may hold in all: %v", err)
	}
	c = open()
	c.left = 50
	if err := read(c); engine.KindOf(err) != engine.KindTooLarge {
		t.Errorf("a list that unpacks to too much: %v", err)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateHeader(&zip.FileHeader{Name: "long", Method: zip.Store})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 2*maxCapsuleIndex)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	c, err = openCapsule(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err == nil {
		_, err = c.read("long", 2*maxCapsuleIndex)
	}
	if err != nil {
		t.Errorf("a long file with a short directory: %v", err)
	}
	if _, err := openCapsule(bytes.NewReader(make([]byte, 1<<20)), 1<<20); engine.KindOf(err) != engine.KindInvalid {
		t.Errorf("zeros: %v", err)
	}
}

func TestACapsuleWhoseDirectoryIsTooLargeIsRefusedBeforeItIsRead(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := range maxCapsuleIndex / (32 << 10) { // each name is all but as long as a name can be
		name := fmt.Sprintf("%08d%s", i, strings.Repeat("n", 60_000))
		if _, err := z.CreateHeader(&zip.FileHeader{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := openCapsule(bytes.NewReader(b.Bytes()), int64(b.Len())); engine.KindOf(err) != engine.KindTooLarge {
		t.Errorf("a directory of %d bytes: %v", b.Len()/2, err)
	}
}
