package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"google.golang.org/protobuf/types/known/durationpb"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui"
)

// sent returns what a browser sends of the question on a page, with other values in some fields.
func sent(t *testing.T, page string, pairs ...string) []string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	values := url.Values{}
	for n := range root.Descendants() {
		at := map[string]string{}
		for _, a := range n.Attr {
			at[a.Key] = a.Val
		}
		_, checked := at["checked"]
		switch {
		case at["name"] == "" || n.Type != html.ElementNode:
		case n.Data == "input" && (at["type"] != "checkbox" || checked):
			values.Add(at["name"], at["value"])
		case n.Data == "textarea":
			text := ""
			for c := range n.ChildNodes() {
				text += c.Data
			}
			values.Add(at["name"], strings.ReplaceAll(text, "\n", "\r\n"))
		case n.Data == "select":
			chosen := ""
			for c := range n.ChildNodes() {
				if _, selected := attribute(c, "selected"); selected || chosen == "" {
					chosen, _ = attribute(c, "value")
				}
			}
			values.Add(at["name"], chosen)
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	var list []string
	for name, all := range values {
		for _, value := range all {
			list = append(list, name, value)
		}
	}
	return list
}

func attribute(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

func TestAFormOfAScheduleThatWasChangedMeanwhileIsRefused(t *testing.T) {
	w := newShop()
	b, api := visit(t, w, nil), tui.Over(w.conn)
	made, err := api.CreateWorkflowSchedule(t.Context(), &kagziv1.CreateWorkflowScheduleRequest{WorkflowType: "order",
		CronExpr: "0 9 * * *", Name: "daily", Input: &kagziv1.Payload{Data: []byte("{\n \"a\": 1\n}")},
		RetryPolicy: &kagziv1.RetryPolicy{MaximumAttempts: 5}})
	if err != nil {
		t.Fatal(err)
	}
	id := made.GetSchedule().GetScheduleId()
	page := b.get("/n/default/act?do=edit-schedule&id=" + id)
	if answer := b.post("/n/default/act", sent(t, page, "act", "1")...); answer.Code != http.StatusBadRequest ||
		!strings.Contains(answer.Body.String(), "change a field first") {
		t.Errorf("a form that nobody changed = %d", answer.Code)
	}
	if _, err := api.UpdateWorkflowSchedule(t.Context(), &kagziv1.UpdateWorkflowScheduleRequest{ScheduleId: id,
		CronExpr: new("0 10 * * *"), TaskQueue: new("other")}); err != nil {
		t.Fatal(err)
	}
	answer := b.post("/n/default/act", sent(t, page, "queue", "mine", "retry-attempts", "7", "act", "1")...)
	page = answer.Body.String()
	if answer.Code != http.StatusConflict {
		t.Fatalf("a form that is out of date = %d %s", answer.Code, page)
	}
	shows(t, page, "It was changed since this form was opened: ", "When is now &#34;0 10 * * *&#34;, not &#34;0 9 * * *&#34;",
		"Queue is now &#34;other&#34;", `value="0 10 * * *"`, `value="mine"`)
	schedule := func() *kagziv1.WorkflowSchedule {
		got, err := api.GetWorkflowSchedule(t.Context(), &kagziv1.GetWorkflowScheduleRequest{ScheduleId: id})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetSchedule()
	}
	if s := schedule(); s.GetTaskQueue() != "other" {
		t.Errorf("the form that was refused has changed the queue to %q", s.GetTaskQueue())
	}
	answer = b.post("/n/default/act", sent(t, page, "act", "1")...)
	if answer.Code != http.StatusSeeOther {
		t.Fatalf("the form, sent again, = %d %s", answer.Code, answer.Body)
	}
	if s := schedule(); s.GetTaskQueue() != "mine" || s.GetCronExpr() != "0 10 * * *" || s.GetName() != "daily" ||
		s.GetRetryPolicy().GetMaximumAttempts() != 7 || string(s.GetInput().GetData()) != "{\n \"a\": 1\n}" {
		t.Errorf("the schedule is %v", s)
	}
}

func TestNamespacesAreCreatedChangedAndDeleted(t *testing.T) {
	w := newShop()
	b, api := visit(t, w, nil), tui.Over(w.conn)
	page := b.get("/n/default/act?do=create-namespace")
	answer := b.post("/n/default/act", sent(t, page, "name", "payments", "title", "Payments", "retention", "30d",
		"keep", "completed=3d, failed=90d", "failures", "ops", "preview", "1")...)
	shows(t, answer.Body.String(), "kagzi namespace create payments --display-name Payments --retention 720h0m0s "+
		"--keep completed=72h0m0s --keep failed=2160h0m0s --failure-queue ops")
	b.post("/n/default/act", sent(t, answer.Body.String(), "act", "1")...)
	namespace := func() (*kagziv1.Namespace, error) {
		got, err := api.GetNamespace(t.Context(), &kagziv1.GetNamespaceRequest{Namespace: "payments"})
		return got.GetNamespace(), err
	}
	if n, err := namespace(); err != nil || n.GetRetention().AsDuration().Hours() != 720 || len(n.GetKeep()) != 2 ||
		n.GetDisplayName() != "Payments" || n.GetFailureTaskQueue() != "ops" {
		t.Fatalf("the namespace is %v, %v", n, err)
	}
	shows(t, b.get("/admin/namespaces"), "/n/payments/act?do=edit-namespace&amp;id=payments",
		"/n/payments/act?do=delete-namespace&amp;id=payments")

	edit := b.get("/n/payments/act?do=edit-namespace&id=payments")
	shows(t, edit, `value="completed=3d, failed=90d"`, `value="30d"`)
	if _, err := api.UpdateNamespace(t.Context(), &kagziv1.UpdateNamespaceRequest{Namespace: "payments",
		Retention: durationpb.New(3600e9)}); err != nil {
		t.Fatal(err)
	}
	answer = b.post("/n/payments/act", sent(t, edit, "description", "cards", "act", "1")...)
	if answer.Code != http.StatusConflict {
		t.Fatalf("a form that is out of date = %d", answer.Code)
	}
	shows(t, answer.Body.String(), "Keep runs for is now &#34;1h&#34;, not &#34;30d&#34;")
	b.post("/n/payments/act", sent(t, answer.Body.String(), "keep", "failed=90d", "act", "1")...)
	if n, err := namespace(); err != nil || n.GetDescription() != "cards" || n.GetRetention().AsDuration().Hours() != 1 ||
		len(n.GetKeep()) != 1 {
		t.Errorf("the namespace is %v, %v", n, err)
	}

	if _, err := api.StartWorkflow(t.Context(), &kagziv1.StartWorkflowRequest{Namespace: "payments",
		WorkflowType: "charge"}); err != nil {
		t.Fatal(err)
	}
	page = b.get("/n/payments/act?do=delete-namespace&id=payments")
	b.post("/n/payments/act", sent(t, page, "act", "1")...)
	if _, err := namespace(); err != nil {
		t.Fatalf("a namespace with a run was deleted: %v", err)
	}
	page = b.get("/n/payments/act?do=delete-namespace&id=payments&force=yes")
	shows(t, page, "payments has 1 runs (1 open)", "kagzi namespace delete payments --yes --force")
	b.post("/n/payments/act", sent(t, page, "act", "1")...)
	if n, err := namespace(); err == nil {
		t.Errorf("the namespace is still there: %v", n)
	}
	if page := b.get("/admin/namespaces"); strings.Contains(page, "do=delete-namespace&amp;id=default") {
		t.Error("the page offers to delete the namespace default")
	}
}

func TestAWorkersKeyNamesItsWorkers(t *testing.T) {
	w := newShop()
	b := visit(t, w, nil)
	page := b.get("/n/default/act?do=create-key")
	answer := b.post("/n/default/act", sent(t, page, "name", "box", "role", "worker", "workers", "box-1, box-2*",
		"preview", "1")...)
	shows(t, answer.Body.String(), "kagzi key create box --role worker --namespace default --worker-id &#39;box-1,box-2*&#39;")
	answer = b.post("/n/default/act", sent(t, page, "name", "box", "role", "viewer", "workers", "box-1", "preview", "1")...)
	shows(t, answer.Body.String(), "only the key of a worker is limited to them")
}

func TestHooksAreCreatedRotatedAndDeleted(t *testing.T) {
	w := newShop()
	b := visit(t, w, nil)
	shows(t, b.get("/n/default/hooks"), "There are none.")
	page := b.get("/n/default/act?do=create-hook")
	answer := b.post("/n/default/act", sent(t, page, "name", "gh", "type", "build", "queue", "ci", "act", "1")...)
	done := b.get(answer.Header().Get("Location"))
	shows(t, done, "The secret of the hook gh:", "Deliveries go to", "http://127.0.0.1:50052/hooks/")
	page = b.get("/n/default/hooks")
	shows(t, page, "gh", "github", "build", "do=rotate-hook&amp;id=gh", "do=delete-hook&amp;id=gh")
	const given = "whsec_0123456789abcdef"
	page = b.get("/n/default/act?do=rotate-hook&id=gh")
	answer = b.post("/n/default/act", sent(t, page, "overlap", "1h", "secret", given, "preview", "1")...)
	shows(t, answer.Body.String(), "kagzi hook rotate gh --overlap 1h0m0s --secret-file=-")
	if strings.Contains(answer.Body.String(), given) {
		t.Error("the page shows a secret that was typed")
	}
	answer = b.post("/n/default/act", sent(t, page, "overlap", "1h", "secret", given, "act", "1")...)
	if to := answer.Header().Get("Location"); !strings.HasPrefix(to, "/n/default/hooks?done=") {
		t.Errorf("the answer is %d to %q", answer.Code, to)
	}
	page = b.get("/n/default/act?do=delete-hook&id=gh")
	b.post("/n/default/act", sent(t, page, "act", "1")...)
	shows(t, b.get("/n/default/hooks"), "There are none.")
}

func TestABackfillStartsTheTicksOfATime(t *testing.T) {
	w := newShop()
	b, api := visit(t, w, nil), tui.Over(w.conn)
	made, err := api.CreateWorkflowSchedule(t.Context(), &kagziv1.CreateWorkflowScheduleRequest{WorkflowType: "order",
		CronExpr: "@hourly"})
	if err != nil {
		t.Fatal(err)
	}
	id := made.GetSchedule().GetScheduleId()
	page := b.get("/n/default/act?do=backfill&id=" + id)
	answer := b.post("/n/default/act", sent(t, page, "from", "+1h", "act", "1")...)
	if answer.Code != http.StatusBadRequest {
		t.Errorf("a backfill of what is ahead = %d", answer.Code)
	}
	b.post("/n/default/act", sent(t, page, "from", "-3h", "act", "1")...)
	runs, err := api.ListScheduleRuns(t.Context(), &kagziv1.ListScheduleRunsRequest{ScheduleId: id})
	if n := len(runs.GetRuns()); err != nil || n < 3 || n > 4 {
		t.Errorf("%d runs were started, %v", n, err)
	}
}
