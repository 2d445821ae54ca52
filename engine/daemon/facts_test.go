package daemon

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kagzi/kagzi/engine/coordinator"
	"github.com/kagzi/kagzi/engine/daemon/internal/output"
	"github.com/kagzi/kagzi/engine/server"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestTheSettingsAreToldAsTheyHoldWithWhereTheyComeFrom(t *testing.T) {
	c, _, err := settle([]string{"--listen=127.0.0.1:0", "--db=postgres://kagzi:hunter2@db/kagzi"},
		map[string]string{"KAGZI_WORKER_VISIBILITY_TIMEOUT_SECS": "40"})
	if err != nil {
		t.Fatal(err)
	}
	c.Retention = time.Hour // set by a program
	facts := settingsOf(&c, opened{database: c.DB, listen: "127.0.0.1:5", http: "127.0.0.1:6"})
	if len(facts) != len(serverSettings) {
		t.Errorf("%d facts, want all %d settings", len(facts), len(serverSettings))
	}
	got := map[string]server.Fact{}
	for i, f := range facts {
		if f.Section != "settings" || f.Name != serverSettings[i].name {
			t.Errorf("fact %d is %+v, want the setting %s", i, f, serverSettings[i].name)
		}
		got[f.Name] = f
	}
	for name, want := range map[string][2]string{
		"listen": {"127.0.0.1:5", "flag"}, "db": {"postgres://kagzi@db/kagzi", "flag"}, "data-dir": {"", "default"},
		"http": {"127.0.0.1:6", "default"}, "retention": {"1h", ""},
		"worker-lease": {"40s", "environment KAGZI_WORKER_VISIBILITY_TIMEOUT_SECS"}, "poll-timeout": {"1m", "default"},
		"insecure": {"false", "default"},
	} {
		if f := got[name]; f.Value != want[0] || f.Source != want[1] {
			t.Errorf("%s = %q from %q, want %q from %q", name, f.Value, f.Source, want[0], want[1])
		}
	}
}

func TestADatabaseURLIsShownWithoutItsPassword(t *testing.T) {
	for url, want := range map[string]string{
		"sqlite:/a/b:c@d.db":                     "sqlite:/a/b:c@d.db",
		"postgres://u:hunter2@h:5/d":             "postgres://u@h:5/d",
		"postgresql://u:hun%2Fter2@h/d?a=b":      "postgresql://u@h/d?a=b",
		"postgres://h/d?user=u&password=hunter2": "postgres://h/d?user=u",
		"postgres://h/d?sslPassword=hunter2&x=y": "postgres://h/d?x=y",
		"postgres://u:hunter2@h:port/d":          "postgres:…",
		"postgres://u:hun%ter2@h/d":              "postgres:…",
		"postgres://h/d?password=%zzhunter2":     "postgres:…",
		"postgres://h/d":                         "postgres://h/d",
		"postgres://u:12/hunter2@h/d":            "postgres:…",
		"postgres://u:12?hunter2@h/d":            "postgres:…",
		"postgres://u:12#hunter2@h/d":            "postgres:…",
		"postgres:u:hunter2@h/d":                 "…",
		"u:hunter2@h/d":                          "…",
		"host=h user=u password=hunter2":         "…",
		"postgres://u:hun@ter/2@h/d":             "postgres:…",
		"/a/b.db":                                "/a/b.db",
		"":                                       "",
	} {
		if got := withoutPassword(url); got != want {
			t.Errorf("%s is shown as %s, want %s", url, got, want)
		}
	}
}

func TestServerInfoDescribesTheCoordinator(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 1e6, time.UTC)
	for _, c := range []struct {
		looks coordinator.Looks
		want  []string
	}{
		{coordinator.Looks{Interval: 5 * time.Second},
			[]string{"last pass", "none yet", "next due", "waiting for a notification", "interval", "5s"}},
		{
			coordinator.Looks{At: at, Took: 1234567, Next: at.Add(time.Minute), Interval: time.Hour},
			[]string{"last pass", "2026-11-20T12:00:00.001Z", "took", "1.235ms", "next due", "2026-11-20T12:01:00.001Z",
				"interval", "1h"},
		},
	} {
		var got []string
		for _, f := range looksOf(c.looks) {
			if f.Section != "coordinator" || f.Source != "" {
				t.Errorf("fact %+v", f)
			}
			got = append(got, f.Name, f.Value)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("facts (-want +got):\n%s", diff)
		}
	}
}

func TestAServerTellsItsFactsAndItsEventsOverTheWire(t *testing.T) {
	var log bytes.Buffer
	c := testConfig(t)
	c.Log = output.NewLog(&log, slog.LevelError, "text") // hide what the events show
	c.Listen, c.Insecure = "0.0.0.0:0", true             // causes a warning
	s := serve(t, c, embedded(nil))
	conn, err := grpc.NewClient(s.Client, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	admin := kagziv1.NewAdminServiceClient(conn)
	info, err := admin.GetServerInfo(ctx, &kagziv1.GetServerInfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, f := range info.Facts {
		values[f.Section+"/"+f.Name] = f.Value
	}
	for name, want := range map[string]string{
		"settings/listen": s.Address, "settings/data-dir": c.DataDir,
		"settings/db":          "sqlite:" + filepath.Join(c.DataDir, "kagzi.db"),
		"coordinator/interval": "5s",
	} {
		if values[name] != want {
			t.Errorf("%s = %q, want %q", name, values[name], want)
		}
	}
	if info.OpenConnections != 1 {
		t.Errorf("%d connections are open, want 1", info.OpenConnections)
	}
	events, err := admin.WatchEvents(ctx, &kagziv1.WatchEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = kagziv1.NewWorkflowScheduleServiceClient(conn).CreateWorkflowSchedule(
		ctx, &kagziv1.CreateWorkflowScheduleRequest{CronExpr: "* * * * * *", WorkflowType: "t"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"other machines can reach --listen", "other machines can reach this server",
		"server started", "schedule fired"} {
		if e, err := events.Recv(); err != nil || e.Sequence != int64(i+1) || !strings.HasPrefix(e.Message, want) {
			t.Errorf("event %d is %v, %v, want %q", i+1, e, err, want)
		}
	}
	s.stop()
	if err := <-s.done; err != nil {
		t.Fatal(err)
	}
	if log.Len() > 0 {
		t.Errorf("the log says more than its level lets: %q", log.String())
	}
}
