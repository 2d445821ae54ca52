package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kagzi/kagzi/engine/server/internal/servertest"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// TestAFloodInOneNamespaceDoesNotAffectOthers adds ten times the limit to one namespace. The excess
// is refused with RetryAfter, no call for another namespace is refused, and calls that stop the
// flood are not limited.
func TestAFloodInOneNamespaceDoesNotAffectOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, conn := serveWith(t, taking{}, Options{DrainTimeout: time.Second, NamespaceRate: 100})
		defer s.workers.Close()
		defer conn.Close()
		api := kagziv1.NewWorkflowServiceClient(conn)
		start := func(namespace string) error {
			_, err := api.StartWorkflow(t.Context(),
				&kagziv1.StartWorkflowRequest{Namespace: namespace, TaskQueue: "q", WorkflowType: "w"})
			return err
		}
		taken, refused := 0, 0
		for range 200 { // in two seconds
			for range 10 {
				switch err := start("loud"); status.Code(err) {
				case codes.OK:
					taken++
				case codes.ResourceExhausted:
					refused++
					if refused == 1 {
						wantQuota(t, err)
					}
				default:
					t.Fatal(err)
				}
			}
			if err := start("calm"); err != nil {
				t.Fatalf("a start in a namespace that keeps to its quota: %v", err)
			}
			time.Sleep(10*time.Millisecond + 100*time.Microsecond)
		}
		if taken < 300 || taken > 310 || taken+refused != 2000 {
			t.Errorf(
				"%d of the loud one were taken and %d refused, want 100 in each of two seconds and a second's more",
				taken, refused)
		}
		for what, call := range map[string]func() error{
			"a batch": func() error {
				_, err := api.StartWorkflows(t.Context(),
					&kagziv1.StartWorkflowsRequest{Requests: []*kagziv1.StartWorkflowRequest{
						{Namespace: "calm", TaskQueue: "q", WorkflowType: "w"},
						{Namespace: "loud", TaskQueue: "q", WorkflowType: "w"}}})
				return err
			},
			"a signal": func() error {
				_, err := api.SignalWorkflow(t.Context(),
					&kagziv1.SignalWorkflowRequest{Namespace: "loud", RunId: servertest.AnID, Name: "s"})
				return err
			},
			"a tick by hand": func() error {
				_, err := kagziv1.NewWorkflowScheduleServiceClient(conn).TriggerWorkflowSchedule(
					t.Context(), &kagziv1.TriggerWorkflowScheduleRequest{
						Namespace: "loud", ScheduleId: servertest.AnID})
				return err
			},
		} {
			start("loud") // so that it is ahead again
			if err := call(); status.Code(err) != codes.ResourceExhausted {
				t.Errorf("%s is answered with %v, want RESOURCE_EXHAUSTED", what, err)
			}
		}
		if _, err := api.CancelWorkflow(t.Context(),
			&kagziv1.CancelWorkflowRequest{Namespace: "loud", RunId: servertest.AnID}); status.Code(
			err) == codes.ResourceExhausted {
			t.Errorf("a cancellation is held up by the flood: %v", err)
		}
	})
}

func wantQuota(t *testing.T, err error) {
	t.Helper()
	var detail *kagziv1.ErrorDetail
	for _, d := range status.Convert(err).Details() {
		if own, ok := d.(*kagziv1.ErrorDetail); ok {
			detail = own
		}
	}
	if detail.GetRetryAfterMs() < 1 || detail.GetRetryAfterMs() > 20 || detail.GetNonRetryable() ||
		detail.GetSubjectId() != "loud" || !strings.Contains(err.Error(), "100 runs and signals per second") {
		t.Error(errors.Join(err, fmt.Errorf("has the detail %v, want when to come again, and of which namespace",
			detail)))
	}
}
