package kagzi

import (
	"bytes"
	"context"
	"errors"
	"testing"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// refusing makes the fake server refuse a method.
func (d *fakeServer) refusing(method string, code codes.Code, detail *kagziv1.ErrorDetail) {
	d.answers[method] = func(proto.Message) (proto.Message, error) {
		st, err := status.New(code, detail.GetMessage()).WithDetails(detail)
		if err != nil {
			return nil, err
		}
		return nil, st.Err()
	}
}

func TestOnlyAClientWithACodecChecksARefusedRepeat(t *testing.T) {
	codec, err := NewAESCodec(AESOptions{Keys: map[string][]byte{"k": bytes.Repeat([]byte{7}, 32)}, Current: "k"})
	if err != nil {
		t.Fatal(err)
	}
	conflict := &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_CONFLICT, Message: "made before",
		SubjectId: "it"}
	for _, c := range []struct {
		subject, create, read string
		call                  func(ctx context.Context, c *Client, requestID string) error
	}{
		{"run", "StartWorkflow", "GetWorkflow", func(ctx context.Context, c *Client, id string) error {
			_, err := Start(ctx, c, "w", 1, StartOptions{RequestID: id})
			return err
		}},
		{"schedule", "CreateWorkflowSchedule", "GetWorkflowSchedule",
			func(ctx context.Context, c *Client, id string) error {
				_, err := CreateSchedule(ctx, c, "w", "@daily", 1, ScheduleOptions{RequestID: id})
				return err
			}},
	} {
		for _, o := range []struct {
			what      string
			codec     Codec
			requestID string
			refused   codes.Code
			reading   codes.Code
			want      ErrorCode
			calls     int
		}{
			{"without a codec", nil, "once", codes.FailedPrecondition, codes.OK, CodeConflict, 1},
			{"with an id of the SDK's own", codec, "", codes.FailedPrecondition, codes.OK, CodeConflict, 1},
			{"with a name that is taken", codec, "once", codes.AlreadyExists, codes.OK, CodeConflict, 1},
			{"for a run that is gone", codec, "once", codes.FailedPrecondition, codes.NotFound, CodeConflict, 2},
			{"for a run that must not be read", codec, "once", codes.FailedPrecondition, codes.PermissionDenied,
				CodeConflict, 2},
			{"and the read takes too long", codec, "once", codes.FailedPrecondition, codes.DeadlineExceeded,
				CodeTimeout, 2},
		} {
			d := newFakeServer(t)
			client := d.client(t)
			client.options.Codec = o.codec
			detail := proto.CloneOf(conflict)
			detail.Subject = c.subject
			d.refusing(c.create, o.refused, detail)
			d.answers[c.read] = func(proto.Message) (proto.Message, error) {
				return nil, status.Error(o.reading, "unread")
			}
			var e *Error
			if err := c.call(t.Context(), client, o.requestID); !errors.As(err, &e) || e.Code != o.want {
				t.Errorf("%s %s: %v, want %s", c.create, o.what, err, o.want)
			}
			if n := len(d.asked); n != o.calls {
				t.Errorf("%s %s: %d calls, want %d", c.create, o.what, n, o.calls)
			}
		}
	}
}
