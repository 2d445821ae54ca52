package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestTheDefaultNamespaceExistsBeforeItsFirstUse(t *testing.T) {
	eachServer(t, patient, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		admin, namespaces := s.admin(), s.namespaces()
		got := fine(namespaces.GetNamespace(ctx, &kagziv1.GetNamespaceRequest{Namespace: "default"}))(t).Namespace
		if got.Namespace != "default" || !got.Enabled || got.Id != "" || got.CreatedAt != nil {
			t.Fatalf("GetNamespace = %v, want it enabled, without an id and times", got)
		}
		want := []string{"default"}
		for size := int32(1); size <= 5; size++ { // before, at and after each other namespace
			var forward, back []string
			for token := ""; ; {
				page := fine(namespaces.ListNamespaces(ctx, &kagziv1.ListNamespacesRequest{
					Page: &kagziv1.PageRequest{PageSize: size, PageToken: token, IncludeTotalCount: true}}))(t)
				if page.Page.TotalCount != int64(len(want)) || page.Page.HasMore != (page.Page.NextPageToken != "") {
					t.Fatalf("page = %v, want %d in all", page.Page, len(want))
				}
				for _, n := range page.Namespaces {
					forward = append(forward, n.Namespace)
				}
				if token = page.Page.NextPageToken; token == "" {
					break
				}
			}
			for p := (&kagziv1.PageRequest{PageSize: size, Last: true}); ; {
				page := fine(namespaces.ListNamespaces(ctx, &kagziv1.ListNamespacesRequest{Page: p}))(t)
				var names []string
				for _, n := range page.Namespaces {
					names = append(names, n.Namespace)
				}
				back = append(names, back...)
				if page.Page.PrevPageToken == "" {
					break
				}
				p = &kagziv1.PageRequest{PageSize: size, PageToken: page.Page.PrevPageToken}
			}
			if !slices.Equal(forward, want) || !slices.Equal(back, want) {
				t.Fatalf("in pages of %d: forward %q, back %q, want %q", size, forward, back, want)
			}
			for _, name := range []string{fmt.Sprint("a", size), fmt.Sprint("x", size)} {
				fine(namespaces.CreateNamespace(ctx, &kagziv1.CreateNamespaceRequest{Namespace: name}))(t)
				want = append(want, name)
			}
			slices.Sort(want)
		}
		if fine(namespaces.DisableNamespace(ctx,
			&kagziv1.DisableNamespaceRequest{Namespace: "default", Reason: "not yet"}))(t).Namespace.Enabled {
			t.Error("DisableNamespace left it enabled")
		}
		got = fine(namespaces.GetNamespace(ctx, &kagziv1.GetNamespaceRequest{Namespace: "default"}))(t).Namespace
		if got.Enabled || got.Id == "" || got.CreatedAt == nil {
			t.Errorf("GetNamespace = %v, want it disabled, with an id and times", got)
		}
		audit := fine(admin.ListAuditEvents(ctx, &kagziv1.ListAuditEventsRequest{Namespace: "default"}))(t).Events
		if len(audit) != 1 || audit[0].Method != "DisableNamespace" || audit[0].Reason != "not yet" {
			t.Errorf("ListAuditEvents = %v, want that it was disabled", audit)
		}
		list := fine(namespaces.ListNamespaces(ctx, &kagziv1.ListNamespacesRequest{}))(t).Namespaces
		if len(list) != len(want) {
			t.Errorf("%d namespaces, want %d: default is there once", len(list), len(want))
		}
	})
}

func TestANamespaceIsDeletedWhenItIsEmptyOrByForce(t *testing.T) {
	explicit := patient
	explicit.ExplicitNamespaces = true
	eachServer(t, explicit, func(t *testing.T, s *Server) {
		ctx := within(t, time.Minute)
		namespaces, workflows := s.namespaces(), s.workflows()
		gone := func(r *kagziv1.DeleteNamespaceRequest) (*kagziv1.DeleteNamespaceResponse, error) {
			r.Namespace, r.Reason = "old", "moved"
			return namespaces.DeleteNamespace(ctx, r)
		}
		start := func() (*kagziv1.StartWorkflowResponse, error) {
			return workflows.StartWorkflow(ctx, &kagziv1.StartWorkflowRequest{Namespace: "old", WorkflowType: "t",
				TaskQueue: "q"})
		}
		_, err := namespaces.DeleteNamespace(ctx, &kagziv1.DeleteNamespaceRequest{Namespace: "default", Force: true})
		refused(t, err, codes.InvalidArgument, "always exists")
		_, err = gone(&kagziv1.DeleteNamespaceRequest{})
		refused(t, err, codes.NotFound, "no namespace old")
		if strings.Contains(err.Error(), "create") {
			t.Errorf("a deletion is answered with the advice to create: %v", err)
		}
		create := &kagziv1.CreateNamespaceRequest{Namespace: "old"}
		fine(namespaces.CreateNamespace(ctx, create))(t)
		if !fine(gone(&kagziv1.DeleteNamespaceRequest{}))(t).Deleted {
			t.Fatal("an empty namespace was not deleted")
		}
		_, err = start()
		refused(t, err, codes.NotFound, "no namespace old")
		fine(namespaces.CreateNamespace(ctx, create))(t)
		run := fine(start())(t)
		_, err = gone(&kagziv1.DeleteNamespaceRequest{})
		refused(t, err, codes.FailedPrecondition, "it has 1 run; delete these first")
		answer := fine(gone(&kagziv1.DeleteNamespaceRequest{Force: true}))(t)
		if !answer.Deleted || answer.Removed.Runs != 1 {
			t.Errorf("DeleteNamespace by force = %v, want it deleted with 1 run", answer)
		}
		_, err = workflows.GetWorkflow(ctx, &kagziv1.GetWorkflowRequest{Namespace: "old", RunId: run.RunId})
		refused(t, err, codes.NotFound, "no ") // no namespace, or no run while the server has yet to hear of it
		_, err = start()
		refused(t, err, codes.NotFound, "no namespace old")
		var methods []string
		for _, e := range fine(s.admin().ListAuditEvents(ctx, &kagziv1.ListAuditEventsRequest{Namespace: "old"}))(t).Events {
			methods = append(methods, e.Method)
		}
		want := []string{"DeleteNamespace", "DeleteNamespace", "CreateNamespace", "DeleteNamespace", "CreateNamespace"}
		if !slices.Equal(methods, want) {
			t.Errorf("audit = %q, want %q", methods, want)
		}
	})
}

func refused(t *testing.T, err error, code codes.Code, says string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(err.Error(), says) {
		t.Errorf("error = %v, want %v with %q", err, code, says)
	}
}
