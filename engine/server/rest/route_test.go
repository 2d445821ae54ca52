package rest

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/kagzi/kagzi/proto/routes"
)

func routesOf(t testing.TB) table {
	t.Helper()
	all, err := newTable()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryMethodHasARouteOfItsOwn(t *testing.T) {
	routed, shapes := map[string]bool{}, map[string]string{}
	for _, r := range routesOf(t) {
		routed[r.full] = true
		shape := r.verb + " " + r.action
		for _, s := range r.segments {
			shape += "/" + s.text
		}
		if other := shapes[shape]; other != "" {
			t.Errorf("%s and %s have the same route", r.full, other)
		}
		shapes[shape] = r.full
	}
	protoregistry.GlobalFiles.RangeFilesByPackage("kagzi.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				name := "/" + string(service.FullName()) + "/" + string(service.Methods().Get(j).Name())
				if name != "/kagzi.v1.WorkerService/Session" && !routed[name] { // that is a stream in both directions
					t.Errorf("%s has no route", name)
				}
				delete(routed, name)
			}
		}
		return true
	})
	if len(routed) > 0 {
		t.Errorf("routes of no method: %v", routed)
	}
}

func TestAPathNamesOneMethodWhateverItsIDsHold(t *testing.T) {
	all := routesOf(t)
	for _, c := range []struct{ verb, path, method, values string }{
		{"GET", "/v1/workflows", "ListWorkflows", ""},
		{"POST", "/v1/workflows", "StartWorkflow", ""},
		{"POST", "/v1/workflows:batch", "StartWorkflows", ""},
		{"GET", "/v1/workflows/7", "GetWorkflow", "7"},
		{"HEAD", "/v1/workflows/7", "GetWorkflow", "7"},
		{"POST", "/v1/workflows/7:cancel", "CancelWorkflow", "7"},
		{"GET", "/v1/workflows/7:watch", "WatchWorkflow", "7"},
		{"GET", "/v1/schedules/user:1", "GetWorkflowSchedule", "user:1"},
		{"GET", "/v1/schedules/a%2Fb", "GetWorkflowSchedule", "a/b"},
		{"GET", "/v1/schedules/a%2fb/runs", "ListScheduleRuns", "a/b"},
		{"GET", "/v1/schedules/order:pause", "GetWorkflowSchedule", "order:pause"},
		{"POST", "/v1/schedules/order:pause", "PauseWorkflowSchedule", "order"},
		{"POST", "/v1/schedules/order:pause:pause", "PauseWorkflowSchedule", "order:pause"},
		{"POST", "/v1/schedules/order%3Apause:pause", "PauseWorkflowSchedule", "order:pause"},
		{"DELETE", "/v1/schedules/%C3%A9%20%25", "DeleteWorkflowSchedule", "é %"},
		{"GET", "/v1/schedules/..", "GetWorkflowSchedule", ".."},
		{"GET", "/v1/schedules/%2e%2e%2fkeys", "GetWorkflowSchedule", "../keys"},
		{"POST", "/v1/workflows/7/steps:begin", "BeginStep", "7"},
		{"POST", "/v1/workflows/7:startChild", "StartChild", "7"},

		{"POST", "/v1/workflows/7%3Acancel", "", "GET"}, // the colon belongs to the id
		{"POST", "/v1/workflows/7:nonsense", "", ""},
		{"POST", "/v1/workflows/:cancel", "", ""},
		{"PUT", "/v1/workflows/7", "", "GET"},
		{"GET", "/v1/workflows/7:cancel", "GetWorkflow", "7:cancel"},
		{"HEAD", "/v1/workflows/7:watch", "GetWorkflow", "7:watch"},
		{"DELETE", "/v1/workflows", "", "GET POST"},
		{"GET", "/v1/workflows/", "", ""},
		{"GET", "/v1//workflows", "", ""},
		{"GET", "/v1/workflows/../keys", "", ""},
		{"GET", "/v1/workflows/a/b", "", ""},
		{"GET", "/v1/WORKFLOWS", "", ""},
		{"GET", "/v1/", "", ""},
		{"GET", "/", "", ""},
	} {
		t.Run(c.verb+" "+c.path, func(t *testing.T) {
			r, values, allowed := all.find(c.verb, c.path)
			if r == nil {
				if got := strings.Join(allowed, " "); c.method != "" || got != c.values {
					t.Errorf("no route, takes %q, want %q and %q", got, c.method, c.values)
				}
				return
			}
			if got := strings.Join(values, " "); string(r.method.Name()) != c.method || got != c.values {
				t.Errorf("%s of %q, want %s of %q", r.method.Name(), got, c.method, c.values)
			}
		})
	}
}

func TestARunsIDIsInThePathAndNoOthersNameIs(t *testing.T) {
	for _, r := range routes.All {
		if strings.Contains(r.Path, "external") && strings.Contains(r.Path, "{") {
			t.Errorf("%s has an external id in its path", r.Method)
		}
		if slices.Contains(strings.Split(r.Path, "/"), "{step_name}") {
			t.Errorf("%s has a step's name in its path", r.Method)
		}
	}
}
